"""What the peer may do that is being served: the engine's edge, where rights are asked for.

Whoever calls verbs for a peer sets `actor` and `peer` first. Verbs ask by themselves for the rights to submit and to
work; doors ask for those that their other commands need, and leave out of lists what the peer may not read. What is
refused is recorded here, in the audit log.
"""

from geartrain.audit import REFUSED, Audit, Peer
from geartrain.engine.function_table import FunctionTable
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import JOB_BYTES, Policy
from geartrain.errors import ForbiddenError
from geartrain.rights import READ, SUBMIT, Identity
from geartrain.usage import UserUsage


class Permissions(FunctionTable):
    """The functions, and for whom verbs are called."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.actor: Identity | None = None  # for whom verbs are called now; None: they may do everything
        self.peer: Peer | None = None  # that is being served now; None: the server itself calls verbs
        self.audit: Audit | None = None  # where refusals are recorded
        self.usages: dict[str, UserUsage] = {}  # by the names of users; those that have jobs, at least

    def require(self, scope: str, name: bytes) -> None:
        """Raise ForbiddenError unless the peer that is being served may do this with the function `name`."""
        actor = self.actor
        if actor is None:
            return
        try:
            if name not in self.builtin_workers:
                actor.require(scope, name)
            elif not actor.control:
                raise ForbiddenError(f"{actor.name} may not use {name.decode()}")
        except ForbiddenError as error:
            self._record_refusal(scope, name, error)
            raise

    def require_everywhere(self, scope: str) -> None:
        """Raise ForbiddenError unless the peer that is being served may do this with all functions."""
        if self.actor is None:
            return
        try:
            self.actor.require_everywhere(scope)
        except ForbiddenError as error:
            self._record_refusal(scope, b"", error)
            raise

    def require_somewhere(self, scope: str) -> None:
        """Raise ForbiddenError unless the peer that is being served may do this with some function."""
        if self.actor is None:
            return
        try:
            self.actor.require_somewhere(scope)
        except ForbiddenError as error:
            self._record_refusal(scope, b"", error)
            raise

    def count_job(self, job: LiveJob) -> None:
        """Count a job for the user that it has."""
        usage = self.usages.get(job.user)
        if usage is None:
            usage = self.usages[job.user] = UserUsage(job.user)  # a user that was removed
        usage.jobs += 1
        usage.bytes += job.payload_size + JOB_BYTES

    def uncount_job(self, job: LiveJob) -> None:
        """Undo `count_job`: the job has ended."""
        usage = self.usages[job.user]
        usage.jobs -= 1
        usage.bytes -= job.payload_size + JOB_BYTES

    def _usage_for(self, name: bytes) -> UserUsage | None:
        """Whose quota a job of the function `name` counts for that is submitted now; None: nobody's."""
        actor = self.actor
        return actor.usage if actor is not None and name not in self.builtin_workers else None

    def _record_refusal(self, scope: str, name: bytes, error: ForbiddenError) -> None:
        """Record it under the name of the command, or else of the scope that it needs."""
        if self.audit is None:
            return
        command = self.peer.origin().command if self.peer is not None else ""
        arguments = {"function": name} if name else None
        self.audit.record(
            command or scope, REFUSED, identity=self.actor, peer=self.peer, arguments=arguments, why=str(error)
        )

    def visible(self, job: LiveJob | None) -> LiveJob | None:
        """The job, if the peer that is being served may know of it."""
        return job if job is not None and self.may_follow(job.function) else None

    def may_follow(self, name: bytes) -> bool:
        """Whether the peer that is being served may know of single jobs of the function `name`."""
        if self.actor is None:
            return True
        rights = self.actor.rights
        return rights.allow(SUBMIT, name) or rights.allow(READ, name)

    def may_read(self, name: bytes) -> bool:
        """Whether lists for the peer that is being served contain the function `name`."""
        return self.actor is None or self.actor.rights.allow(READ, name)
