"""All exceptions. The text of each is for people: what happened, to which job or peer, and what to do.

For users of the client library and of apps: ClientError and its subclasses, AdminError.
For operators who start a server or maintain a store: SettingsError, AddressError, StartError, StoreError.
For peers, as an answer of their protocol: WireError, RequestError and its subclasses, DuplicateKeyError, AdminError,
NotDurableError.
For maintainers, since it is a bug: LifecycleError, ColdJobError.
"""


class GeartrainError(Exception):
    """The base class of all exceptions that Geartrain raises on purpose."""


class WireError(GeartrainError):
    """A peer sent bytes that its protocol does not allow; the peer gets it as an error of its protocol.

    `code` is the protocol's short name for the error, `text` says what is wrong. After a fatal error the rest of the
    stream cannot be decoded and the connection must be closed; otherwise the next packet may be valid.
    """

    def __init__(self, code: str, text: str, fatal: bool = True) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text
        self.fatal = fatal


class LineError(WireError):
    """A WireError in a line of a text protocol, which is answered in text."""


class RequestError(GeartrainError):
    """The engine refuses what a peer asks for; the peer gets it as an error of its protocol.

    `code` is a short name for protocols that send one.
    """

    code = "REQUEST_REFUSED"


class InvalidNameError(RequestError):
    """A function or a unique key has a name that is not allowed; for the peer that chose it."""

    code = "INVALID_NAME"


class LimitError(RequestError):
    """A limit of the server is reached; for the peer. The text names the setting."""

    code = "LIMIT_REACHED"


class QueueFullError(LimitError):
    """A submission was refused because its function, or the server, has as many jobs as the limit allows."""

    code = "QUEUE_FULL"


class ParentError(RequestError):
    """A submission names a job to wait for that cannot be waited for."""

    code = "CANNOT_WAIT"


class WorkflowError(RequestError):
    """A workflow was refused as a whole; for whoever submitted it."""

    code = "INVALID_WORKFLOW"


class ForbiddenError(RequestError):
    """A peer asks for something that it has no right to; for the peer. Nothing of it happens."""

    code = "NOT_ALLOWED"


class DuplicateKeyError(GeartrainError):
    """A dead or failed job cannot be retried because another job has its unique key; for the operator."""


class StoreError(GeartrainError):
    """A store cannot be opened, read or written; for the operator. The text has the reason and what to do."""


class NotDurableError(StoreError):
    """A change could not be written to disk, so it was undone or will be written later; for who requested it."""

    def __init__(self) -> None:
        super().__init__("the change cannot be written to disk now; see the server's log")


class ClientError(GeartrainError):
    """The base class of the client library's exceptions; raised itself for wrong arguments and wrong use."""


class NoWorkersError(ClientError):
    """No worker offers the function, so nothing was submitted; for the program that submits."""


class UncertainError(ClientError):
    """The connection broke during a submission: the job may be queued or not. `id` is the job's id.

    For the program that submits: submit again if running the job twice does no harm.
    """

    def __init__(self, text: str, id: int = 0) -> None:
        super().__init__(text)
        self.id = id


class JobTimeoutError(ClientError):
    """A job did not finish within the client's timeout; it continues. `id` is the job's id."""

    def __init__(self, text: str, id: int = 0) -> None:
        super().__init__(text)
        self.id = id


class UnsupportedError(ClientError):
    """The protocol of this URL does not support the request; the text names protocols that do."""


class ServerGoneError(ClientError):
    """No server could be reached, or the connection broke while a client waited for its job."""


class RefusedError(ClientError):
    """A server refused a request; the text has the server's reason."""


class AuthenticationError(RefusedError):
    """A server did not accept a token, or requires one; for the program that connects. Trying again does not help."""


class JobFailedError(ClientError):
    """A job failed, was cancelled or is dead; for the program that waits for it. `data` is its worker's error."""

    def __init__(self, text: str, reason: str = "", code: int = 1, data: bytes = b"") -> None:
        super().__init__(text)
        self.reason = reason
        self.code = code
        self.data = data


class ExpiredError(JobFailedError):
    """No worker got a job before it expired; for the program that waits for it."""


class ResultGoneError(ClientError):
    """The result of a job is not kept: its record was removed, or it was submitted without keeping its result."""


class ResultCutError(ClientError):
    """Only the beginning of a result is kept, because it was larger than the server's settings allow.

    `geartrain show --result --part` and `GET /jobs/{handle}/result?part=true` return the beginning.
    """


class CodecError(ClientError):
    """A value cannot be encoded, or bytes cannot be decoded; for the author of a task or of its caller."""


class ArgumentsError(ClientError):
    """A payload does not fit the task's function; for the caller's author. The text names the argument."""


class AppError(GeartrainError):
    """An app is not where it was looked for, or has not the requested tasks; for the person who starts a worker."""


class AdminError(GeartrainError):
    """A request of an operator was refused.

    `kind` is bad-request, not-found, conflict, unsupported, result-gone or result-cut.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


SteeringError = AdminError  # its name in version 0.1


class LifecycleError(GeartrainError):
    """A transition of a job that the lifecycle table does not allow: a bug in Geartrain."""


class ColdJobError(GeartrainError):
    """The payload of a job was asked for while it is on disk only: a bug in Geartrain."""


class AddressError(GeartrainError):
    """A URL that is not a valid address to listen on or to connect to; for its author."""


class SettingsError(GeartrainError):
    """An invalid flag, environment variable or line of the settings file; for the operator."""


class StartError(GeartrainError):
    """The server cannot start, because an address is in use or a file cannot be opened; for the operator."""
