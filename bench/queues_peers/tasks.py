"""The task: it does nothing."""


def empty() -> None:
    """Nothing."""
