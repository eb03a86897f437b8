"""Every exception of ours, in one place. The text is for the person who reads it."""


class GeartrainError(Exception):
    """The root: catch this to catch everything that Geartrain raises on purpose."""


class WireError(GeartrainError):
    """A peer sent bytes that its protocol does not allow.

    `code` is the protocol's own short name for the fault, `text` says what was wrong. After a fatal one the
    stream makes no sense any more and its connection has to close; after another the next packet may be fine.
    """

    def __init__(self, code: str, text: str, fatal: bool = True) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text
        self.fatal = fatal


class LineError(WireError):
    """The same for a line of a text protocol, to be answered in text."""


class QueueFullError(GeartrainError):
    """A function has as many jobs as its limit allows; nothing was queued."""

    def __init__(self, function: bytes, limit: int) -> None:
        super().__init__(f"the queue of {function.decode('utf-8', 'replace')!r} is full ({limit} jobs)")
        self.function = function
        self.limit = limit


class DuplicateKeyError(GeartrainError):
    """A dead job cannot be retried: another job holds its unique key now."""


class StoreError(GeartrainError):
    """A store cannot be opened, or could not make a change durable; the text says why and what to do."""


class NotDurableError(StoreError):
    """A change could not be written to disk, so it was undone or will be written later."""

    def __init__(self) -> None:
        super().__init__("the change cannot be written to disk now; see the server's log")


class ClientError(GeartrainError):
    """What was asked of the client library cannot be had."""


class NoWorkersError(ClientError):
    """A roll call found nobody who offers the function; nothing was submitted."""


class UncertainError(ClientError):
    """The connection broke while a job was being queued: it may be queued or not. `id` is the job's."""

    def __init__(self, text: str, id: int = 0) -> None:
        super().__init__(text)
        self.id = id


class JobTimeoutError(ClientError):
    """A job was not finished in the time that its client waited; it goes on. `id` is the job's."""

    def __init__(self, text: str, id: int = 0) -> None:
        super().__init__(text)
        self.id = id


class UnsupportedError(ClientError):
    """The protocol of this URL has no word for what was asked; the text says which protocols have."""


class ServerGoneError(ClientError):
    """No server could be reached, or the connection broke and nobody knows what became of the job."""


class RefusedError(ClientError):
    """A server did not take an order, and said why."""


class JobFailedError(ClientError):
    """A job failed, was cancelled or was given up. `data` is what its worker said, as bytes."""

    def __init__(self, text: str, reason: str = "", code: int = 1, data: bytes = b"") -> None:
        super().__init__(text)
        self.reason = reason
        self.code = code
        self.data = data


class CodecError(ClientError):
    """A value cannot be written in a codec, or bytes cannot be read with it."""


class ArgumentsError(ClientError):
    """A payload is no call of the task that it was sent to; the text names the argument that does not fit."""


class AdminError(GeartrainError):
    """What an operator asked for cannot be done. `kind` is bad-request, not-found, conflict or unsupported."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


SteeringError = AdminError  # its name in version 0.1


class LifecycleError(GeartrainError):
    """A job was asked to make a transition that the lifecycle table does not allow: a bug of ours."""


class AddressError(GeartrainError):
    """A URL that names no address we can listen on or connect to."""


class SettingsError(GeartrainError):
    """A flag, an environment variable or a line of the settings file that makes no sense."""


class StartError(GeartrainError):
    """The server cannot start as asked: an address is taken, a file is not ours to write."""
