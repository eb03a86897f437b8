"""Retry policies: which exceptions of a task lead to another attempt, and when."""

import dataclasses
import os
import random
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Final

from geartrain.backoff import Backoff
from geartrain.errors import ArgumentsError, CodecError

ExceptionTypes = tuple[type[BaseException], ...]

# Of the whole library: middleware of ours can be among the callers of a task.
_PACKAGE: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")

# Errors in the payload, which is the same in every attempt.
NOT_RETRIED: ExceptionTypes = (ArgumentsError, CodecError)


class Retry(Exception):  # noqa: N818  # a request of the task, not an error
    """Raise it in a task to request another attempt; `after`, in seconds, overrules the backoff.

    It counts as a failed attempt: when none is left, the task fails as with any other exception.
    """

    def __init__(self, why: str = "the task requested another attempt", after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class GiveUp(Exception):  # noqa: N818  # a decision of the task, not an error
    """Raise it in a task to prevent any further attempt."""


@dataclasses.dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a task is retried."""

    retries: int = 0  # attempts after the first
    backoff: Backoff = Backoff()  # noqa: RUF009  # frozen
    retry_on: ExceptionTypes = (Exception,)
    give_up_on: ExceptionTypes = ()

    def delay_after(
        self, error: BaseException, attempt: int, draw: Callable[[float, float], float] = random.uniform
    ) -> float | None:
        """Seconds until the next attempt; None: there is none. `attempt` is the number of the failed one, from 1.

        >>> RetryPolicy(retries=1).delay_after(Retry(after=5), 1)
        5
        >>> RetryPolicy(retries=1).delay_after(Retry(after=5), 2) is None
        True
        """
        if attempt > self.retries or isinstance(error, (GiveUp, *NOT_RETRIED, *self.give_up_on)):
            return None
        if isinstance(error, Retry):
            return self.backoff.after(attempt, draw) if error.after is None else max(error.after, 0)
        return self.backoff.after(attempt, draw) if isinstance(error, self.retry_on) else None


def reason_of(error: BaseException) -> str:
    """The reason of a failure for people: the exception's name and text; of our own exceptions the text alone.

    >>> reason_of(ValueError("no such user")), reason_of(GiveUp("the account is closed"))
    ('ValueError: no such user', 'the account is closed')
    """
    text = str(error)
    if isinstance(error, (GiveUp, Retry, *NOT_RETRIED)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_frames(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of this package that called the task; None if the task was not reached."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frames = frames.tb_next
    return frames


def traceback_of(error: BaseException, longest: int = 1000) -> str:
    """The traceback of a failure in a task's own code, without its beginning if it is too long; empty if there is none.

    Servers keep so many characters of a reason, from the first on, so the end must be within them.
    """
    frames = own_frames(error)
    if frames is None or isinstance(error, (GiveUp, Retry, *NOT_RETRIED)):
        return ""
    text = "".join(traceback.format_exception(type(error), error, frames, chain=False)).rstrip()
    if len(text) <= longest:
        return text
    head = f"{text.partition(chr(10))[0]}\n  ...\n"
    return head + text[len(head) - longest :]
