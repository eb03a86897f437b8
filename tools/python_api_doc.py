"""Write docs/python-api.md from the docstrings of the public classes, or check with --check that it is up to date.

python tools/python_api_doc.py [--check]
"""

import enum
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "python-api.md"

OPENING = """\
# Python API

<!-- Written by tools/python_api_doc.py from the docstrings of the source; change those instead. -->

Every public name of the library, from the docstrings of the source. [The library's guide](library.md) and
[the guide to tasks](app.md) show how to use them.
"""

# By section: the module that offers the names, and the names.
SECTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Clients": (
        "geartrain",
        ("Client", "SyncJob", "SyncWorkflow", "AsyncClient", "AsyncJob", "AsyncWorkflow", "WorkflowJob"),
    ),
    "Workers": ("geartrain", ("Worker", "AsyncWorker", "Job")),
    "Tasks": (
        "geartrain.app",
        (
            "App", "Task", "TaskHandle", "SyncTaskHandle", "Workflow", "WorkflowHandle", "SyncWorkflowHandle",
            "OutputHandle", "SyncOutputHandle", "Retry", "GiveUp", "Backoff", "Call", "Running", "current_task",
            "Middleware", "Codec", "PickleCodec", "register_codec",
        ),
    ),
    "OpenTelemetry": ("geartrain.otel", ("Tracing", "Metrics")),
    "Outbox": (
        "geartrain.outbox", ("submit", "submit_async", "create_table", "create_table_async", "Relay"),
    ),
    "Testing": ("geartrain.testing", ("InMemory", "Clock", "Submitted")),
    "Orders and events": ("geartrain.client.order", ("Order", "Status", "Capabilities")),
    "Events": ("geartrain.client.job_events", ("Progressed", "Data", "Warned", "Completed", "Failed")),
    "Errors": (
        "geartrain",
        (
            "GeartrainError", "ClientError", "ServerGoneError", "RefusedError", "AuthenticationError", "JobFailedError",
            "ExpiredError", "JobTimeoutError", "NoWorkersError", "UncertainError", "UnsupportedError",
            "ResultGoneError", "ResultCutError", "CodecError", "ArgumentsError", "AdminError", "AddressError",
        ),
    ),
}  # fmt: skip
# Classes whose objects a program receives, and does not make.
NOT_MADE = frozenset(
    {
        "SyncJob", "AsyncJob", "SyncWorkflow", "AsyncWorkflow", "Job", "Task", "TaskHandle", "SyncTaskHandle",
        "Workflow", "WorkflowHandle", "SyncWorkflowHandle", "OutputHandle", "SyncOutputHandle", "Running", "Call",
        "Codec",
    }
)  # fmt: skip
_PATHS = re.compile(r"\b(?:geartrain|collections|asyncio|datetime|types|typing)(?:\.[a-z_]+)*\.(?=[A-Z])")


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for title, (module, names) in SECTIONS.items():
        parts.append(f"## {title}\n")
        source = importlib.import_module(module)
        parts += [_entry(f"{module}.{name}", getattr(source, name)) for name in names]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    lines = [f"### {name.removeprefix('geartrain.')}\n"]
    if not inspect.isclass(thing):
        return "\n".join(
            [*lines, _code(f"def {thing.__name__}{_signature(thing)}"), _text(inspect.getdoc(thing) or "")]
        )
    if not issubclass(thing, BaseException | enum.Enum) and thing.__name__ not in NOT_MADE:
        lines.append(_code(f"{thing.__name__}{_signature(thing)}"))
    lines.append(_text(inspect.getdoc(thing) or ""))
    for member, value in _members(thing):
        kind, function = _kind(value)
        if kind == "property":
            lines.append(f"**`{member}`** {_first(inspect.getdoc(value) or '')}\n")
        else:
            prefix = "async def " if inspect.iscoroutinefunction(function) else "def "
            lines += [_code(f"{prefix}{member}{_signature(function)}"), _text(inspect.getdoc(function) or "")]
    return "\n".join(line for line in lines if line)


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class and of its bases in this package, in the order of the source."""
    found: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("geartrain"):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    for name, value in found.items():
        if _kind(value)[0] and inspect.getdoc(value):
            yield name, value


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, property):
        return "property", value.fget
    if isinstance(value, classmethod | staticmethod):
        return "method", value.__func__
    return ("method", value) if inspect.isfunction(value) else ("", value)


def _signature(function: Any) -> str:
    """The parameters without `self`, one per line where they are long."""
    signature = inspect.signature(function)
    parameters = [value for name, value in signature.parameters.items() if name not in ("self", "cls")]
    words = list(map(_parameter, parameters))
    kinds = [parameter.kind for parameter in parameters]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if keyword in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(keyword), "*")
    returned = signature.return_annotation
    end = "" if inspect.isclass(function) else f" -> {_annotation(returned)}"
    line = f"({', '.join(words)}){end}"
    return line if len(line) < 90 else "(\n    " + ",\n    ".join(words) + f",\n){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    words = str(parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty))
    if parameter.annotation is not inspect.Parameter.empty:
        words += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        words += f" = {_default(parameter.default)}"
    return words


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "..." if text.startswith("<") else _PATHS.sub("", text)


def _annotation(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Unpack:  # every version of Python shows it in another way
        return f"Unpack[{_annotation(typing.get_args(annotation)[0])}]"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _PATHS.sub("", text).replace("'", "").replace("~", "")


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _first(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")


def _text(docstring: str) -> str:
    """A docstring as Markdown: examples become fenced blocks."""
    blocks = [block for block in docstring.split("\n\n") if block.strip()]
    lines: list[str] = []
    for block in blocks:
        if block.startswith(">>> "):
            lines.append(f"```pycon\n{block}\n```\n")
        elif block.startswith("    "):
            lines.append(_code(inspect.cleandoc(block)))
        elif _is_code(block):
            lines.append(_code(block))
        else:
            lines.append(f"{block}\n")
    return "\n".join(lines).replace("```\n\n```python\n", "\n")


def _is_code(block: str) -> bool:
    """Whether a block that is not indented is an example: the formatter unindents what follows the first line."""
    return bool(re.match(r"(async with |with |async def |def |job = |worker = |@|import |from )", block))


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE} is out of date: run python tools/python_api_doc.py", file=sys.stderr)
        return 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
