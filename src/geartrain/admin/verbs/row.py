"""What a row of the table of verbs says, and the arguments that several rows have."""

from typing import Final, NamedTuple

# Types of arguments.
TEXT: Final = "text"
BYTES: Final = "bytes"  # text, or {"base64": "..."}
INTEGER: Final = "integer"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
TEXTS: Final = "texts"  # a list
MEMBERS: Final = "members"  # a list of objects, the jobs of a workflow
FILTER: Final = "filter"  # an object with the arguments of FILTER_ARGUMENTS

# Scopes, as tokens have them.
READ: Final = "read"
SUBMIT: Final = "submit"
WORK: Final = "work"
ADMIN: Final = "admin"

# What a verb is about.
SERVER: Final = "server"
FUNCTION: Final = "function"
JOB: Final = "job"
WORKER: Final = "worker"
SCHEDULE: Final = "schedule"
CLUSTER: Final = "cluster"

# Which servers of a cluster answer a verb.
HERE: Final = "here"  # the one that is asked
EVERYBODY: Final = "everybody"  # all, and their answers are put together
HOME: Final = "home"  # the one that has the job
APPLIED: Final = "applied"  # the one that is asked; the others have applied the change before it is answered

STATES: Final = ("scheduled", "blocked", "queued", "running", "done", "failed", "cancelled", "dead", "expired")
PRIORITIES: Final = ("high", "normal", "low")
MISSED_POLICIES: Final = ("skip", "once", "all")
SORTS: Final = ("name", "queued", "oldest", "running", "failed")
DEFAULT: Final = "default"  # of a function's setting: the server's setting applies
FAILURES: Final = ("keep", "dead", "forget", DEFAULT)
DEFAULT_SECONDS: Final = -1  # the same, where the setting is a time
DEFAULT_NUMBER: Final = -1  # of a limit: what the code of the task says applies
NO_LIMIT: Final = "none"  # of a limit that is a text
LONGEST_SECONDS: Final = 10**9  # of a function's setting
DUMP_PARTS: Final = ("header", "values", "jobs", "failed", "records", "retried")
EVENTS: Final = (
    "submitted",
    "started",
    "progress",
    "requeued",
    "scheduled",
    "done",
    "failed",
    "cancelled",
    "dead",
    "expired",
)


class Argument(NamedTuple):
    """An argument of a verb, as every way to the verb reads it.

    HTTP refuses values outside `minimum`, `maximum` and `longest` before the verb runs. The control function passes
    them on: the verb itself refuses or clamps them.
    """

    name: str
    type: str = TEXT
    help: str = ""
    required: bool = False
    default: str | int | float | bool | None = None  # of an argument that is not required
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None  # characters
    required_by_http: bool = False  # where leaving it out by mistake would do harm
    positional: bool = False  # on the command line; required ones always are
    metavar: str = ""  # on the command line
    private: bool = False  # a payload or a secret, which the audit log must not have


class Http(NamedTuple):
    """The HTTP route of a verb.

    A name in braces in the path is the verb's first argument. The other arguments are query parameters of a GET, and
    fields of the JSON body of any other method.
    """

    method: str
    path: str  # below /api/v1
    shows: str = ""  # the verb whose answer is sent, for a verb that has none of its own
    field: str = ""  # sends the answer as an object with this one field
    status: int = 200  # 204 where there is nothing to send
    problems: tuple[str, ...] = ()  # kinds that it may answer with, besides those that follow from the method


class CliCommand(NamedTuple):
    """The command of a verb: `geartrain cancel`, or `geartrain cron run` in the group `cron`."""

    name: str
    group: str = ""
    many: bool = False  # takes several values of its first argument, and repeats the verb for each
    report: str = ""  # printed afterwards; default: the first argument and the verb's `past`
    epilog: str = ""


class Button(NamedTuple):
    """The dashboard's button for a verb."""

    label: str
    label_all: str = ""  # for every job that matches a filter
    danger: bool = False
    question: str = ""  # asked before; `{name}` is the job, function or schedule
    detail: str = ""  # below the question


class Verb(NamedTuple):
    """A row of the table."""

    name: str  # in the control function; the name of the method of `Admin`
    about: str
    help: str  # one line, without a full stop
    arguments: tuple[Argument, ...] = ()
    scopes: tuple[str, ...] = (READ,)  # one of them is needed
    changes: bool = False  # answered when the change is durable
    query: bool = False  # the method takes a JobQuery made from the arguments
    streams: bool = False  # runs until its client leaves; only the control function has such verbs
    states: tuple[str, ...] = ()  # of jobs that it can be applied to
    action: str = ""  # its name in `bulk`
    engine_method: str = ""  # what the action does to each job
    past: str = ""  # "job H:1 is ...", when it is done
    place: str = HERE  # which servers of a cluster answer it
    http: Http | None = None
    command: CliCommand | None = None
    button: Button | None = None


PAGE: Final = (
    Argument("limit", INTEGER, "Entries per page", default=100, minimum=1, maximum=1000),
    Argument("after", TEXT, "`after` of the previous page", default="", longest=4000),
)
LOCAL: Final = Argument("local", BOOLEAN, "Only this server, where it is one of a cluster", default=False)
FILTER_ARGUMENTS: Final = (
    Argument("state", TEXT, "Only jobs in this state", default="", choices=STATES),
    Argument("function", BYTES, "Only jobs of exactly this function", default=""),
    Argument("search", TEXT, "Part of a handle, a function, a unique key or a payload", default=""),
    Argument("door", TEXT, "Only jobs that were submitted by this protocol", default=""),
    Argument(
        "reason", TEXT, "Only failed and dead jobs with this reason, as `failures` groups them", default="", longest=200
    ),
    Argument("since", NUMBER, "Not before this time, in seconds of the epoch", default=0.0, minimum=0, maximum=1e12),
    Argument("until", NUMBER, "Before this time, as `since`; 0: now", default=0.0, minimum=0, maximum=1e12),
)
