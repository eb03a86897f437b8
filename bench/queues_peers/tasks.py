"""The tasks, the same for every queue."""


class FirstAttemptError(Exception):
    """What the first attempt at a task raises."""


def empty() -> None:
    """Nothing."""


def echo(number: int) -> int:
    """A result that the submitter can check."""
    return number


def add(numbers: list[int]) -> int:
    """The end of a chord: all results of the other tasks."""
    return sum(numbers)


def fail_first(attempt: int) -> None:
    """Fail once; the first attempt is 1."""
    if attempt == 1:
        raise FirstAttemptError
