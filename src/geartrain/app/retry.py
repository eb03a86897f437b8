"""What an exception means for a task: try again later, or give up."""

import dataclasses
import random
from collections.abc import Callable

from geartrain.backoff import Backoff
from geartrain.errors import ArgumentsError, CodecError

ExceptionTypes = tuple[type[BaseException], ...]

# What no second attempt can change: the payload stays what it is.
HOPELESS: ExceptionTypes = (ArgumentsError, CodecError)


class Retry(Exception):  # noqa: N818  # a request of the task, not a mistake
    """Raised by a task that wants to be tried again; `after` overrules the backoff.

    It counts as an attempt: when none is left, the task is given up as with any other exception.
    """

    def __init__(self, why: str = "the task asked for another attempt", after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class GiveUp(Exception):  # noqa: N818  # a decision of the task, not a mistake
    """Raised by a task for which no further attempt makes sense, however many are left."""


@dataclasses.dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A task's own rules."""

    retries: int = 0  # attempts after the first
    backoff: Backoff = Backoff()  # noqa: RUF009  # frozen
    retry_on: ExceptionTypes = (Exception,)
    give_up_on: ExceptionTypes = ()

    def delay_after(
        self, error: BaseException, attempt: int, draw: Callable[[float, float], float] = random.uniform
    ) -> float | None:
        """Seconds until the next attempt; None: there is none. `attempt` is the one that failed, from 1.

        >>> RetryPolicy(retries=1).delay_after(Retry(after=5), 1)
        5
        >>> RetryPolicy(retries=1).delay_after(Retry(after=5), 2) is None
        True
        """
        if attempt > self.retries or isinstance(error, (GiveUp, *HOPELESS, *self.give_up_on)):
            return None
        if isinstance(error, Retry):
            return self.backoff.after(attempt, draw) if error.after is None else max(error.after, 0)
        return self.backoff.after(attempt, draw) if isinstance(error, self.retry_on) else None


def reason_of(error: BaseException) -> str:
    """The words that people read: the exception's name and text, or the text alone where it was written for them.

    >>> reason_of(ValueError("no such user")), reason_of(GiveUp("the account is closed"))
    ('ValueError: no such user', 'the account is closed')
    """
    text = str(error)
    if isinstance(error, (GiveUp, Retry, *HOPELESS)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
