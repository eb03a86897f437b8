"""Which tasks of an app a worker runs: `only` and `exclude`, by name or pattern."""

import fnmatch
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from geartrain.app.task import Task
from geartrain.errors import AppError

if TYPE_CHECKING:
    from geartrain.app.app import App


def select(app: "App", only: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[Task[Any, Any]]:
    """The tasks that match `only`, or all, without those that match `exclude`.

    A pattern is the name of a task, with or without the app's name, and may contain `*`, `?` and `[...]`. One that
    matches nothing is a AppError, because it is probably misspelled.

    >>> from geartrain.app import App
    >>> app = App("shop")
    >>> for name in ("shop.mail.send", "shop.mail.fetch", "shop.invoice"):
    ...     task = app.task(name=name)(print)
    >>> select(app, only=["mail.*"], exclude=["shop.mail.fetch"])
    [<Task shop.mail.send>]
    """
    tasks = list(app.tasks.values())
    if not tasks:
        raise AppError(f"app {app.name!r} has no tasks; import the modules that define them beside the app")
    for pattern in (*only, *exclude):
        if not any(_matches(app, task, (pattern,)) for task in tasks):
            raise AppError(f"app {app.name!r} has no task {pattern!r}; it has {_names(tasks)}")
    chosen = [task for task in tasks if not only or _matches(app, task, only)]
    chosen = [task for task in chosen if not _matches(app, task, exclude)]
    if not chosen:
        raise AppError(f"all tasks of app {app.name!r} are excluded; it has {_names(tasks)}")
    return chosen


def _matches(app: "App", task: Task[Any, Any], patterns: Iterable[str]) -> bool:
    names = (task.name, task.name.removeprefix(f"{app.name}."))
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _names(tasks: Iterable[Task[Any, Any]]) -> str:
    return ", ".join(sorted(task.name for task in tasks))
