"""Everything that `make bench` measures: who takes part, and every row."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench import (
    bystanders,
    cluster,
    connections,
    contenders,
    crowd,
    danga,
    flatness,
    gearmonkey,
    http_load,
    latency,
    lists,
    load,
    memodb,
    periodic,
    plain_commands,
    task_queues,
    tubes,
)
from bench.contenders import Contender, Place
from bench.figures import Sample
from bench.groups import Act, Effort, Group, Row, SideBySide, sample, timed

RATE = "jobs/s"

MEMORY = Contender(
    "Geartrain, memory", "geartrain serve --store memory", contenders.geartrain("gearman", durable=False), ours=True
)
DURABLE = Contender(
    "Geartrain, durable",
    "geartrain serve --store sqlite: what is acknowledged is on disk; one fsync for all that came in meanwhile",
    contenders.geartrain("gearman", durable=True),
    ours=True,
)
GEARMAND = Contender("gearmand", "gearmand --threads=1, jobs in memory", contenders.gearmand(), "gearmand")
GEARMAND_SQLITE = Contender(
    "gearmand, SQLite",
    "gearmand --threads=1 --queue-type=libsqlite3: an fsync for each job",
    contenders.gearmand("--queue-type=libsqlite3", "--libsqlite3-db=queue.db"),
    "gearmand",
)
LISTS = Contender(
    "Redis lists",
    "redis-server --appendonly no, LPUSH and BRPOP: a job that was fetched is kept nowhere",
    contenders.redis("--appendonly", "no"),
    "redis-server",
)
LISTS_ON_DISK = Contender(
    "Redis lists, on disk",
    "redis-server --appendonly yes --appendfsync always, LPUSH: one fsync for all that came in meanwhile",
    contenders.redis("--appendonly", "yes", "--appendfsync", "always"),
    "redis-server",
)
BEANSTALKD = Contender(
    "beanstalkd", "beanstalkd -b DIR -f0: its log, with an fsync for each write", contenders.beanstalkd(), "beanstalkd"
)


class Speech(NamedTuple):
    """How the load talks to a contender."""

    round_trips: Callable[[int, bytes, int, int, int], crowd.Load] | None
    submits: Callable[[int, bytes, int, int], crowd.Load]
    drain: Callable[[int, bytes, int], crowd.Load]


GEARMAN_SPEECH = Speech(load.Load, load.Submits, load.Drain)
LISTS_SPEECH = Speech(lists.Load, lists.Submits, lists.Drain)
SPEECHES = {
    MEMORY: GEARMAN_SPEECH,
    DURABLE: GEARMAN_SPEECH,
    GEARMAND: GEARMAN_SPEECH,
    GEARMAND_SQLITE: GEARMAN_SPEECH,
    LISTS: LISTS_SPEECH,
    LISTS_ON_DISK: LISTS_SPEECH,
    BEANSTALKD: Speech(None, tubes.Submits, tubes.Drain),
    bystanders.FEW: GEARMAN_SPEECH,
    bystanders.MANY: GEARMAN_SPEECH,
}


def round_trips(clients: int, window: int, workers: int) -> Act:
    """Each job from its submission until its client has the result."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        make = SPEECHES[contender].round_trips
        assert make is not None
        return sample(make(place.port, b"trips-%d-%d" % (clients, window), clients, window, workers), place.pid, effort)

    return act


def submits(clients: int, window: int) -> Act:
    """Each job from its submission until it is acknowledged; nobody works."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        made = SPEECHES[contender].submits(place.port, b"submits-%d-%d" % (clients, window), clients, window)
        return sample(made, place.pid, effort)

    return act


def drain(workers: int) -> Act:
    """A full queue, from the first fetch until the last job was handed out."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        speech, jobs = SPEECHES[contender], effort.drained
        filling = speech.submits(place.port, b"drain", 4, 64)
        filling.run(jobs)
        filling.close()
        draining = speech.drain(place.port, b"drain", workers)
        try:
            return timed(lambda: draining.run(jobs), draining.waits, jobs, place.pid)
        finally:
            draining.close()

    return act


QUEUES_IN_MEMORY = (MEMORY, DURABLE, GEARMAND, LISTS)
ON_DISK = (DURABLE, GEARMAND_SQLITE, BEANSTALKD, LISTS_ON_DISK)
TRIP = (
    "Foreground jobs with 64 bytes, from the submission until the client has the result, by workers that give them back"
)
SUBMIT = "Background jobs with 64 bytes, from the submission to the acknowledgement, with no worker"
DRAINED = "8 workers come to a queue of background jobs with 64 bytes, and finish one after the other"


def trips(key: str, clients: int, window: int, workers: int) -> tuple[Row, Act]:
    few = clients == 1
    title = "round trips, " + ("1 client, 1 worker" if few else f"{clients} clients, {workers} workers")
    title += f", {window} in flight each" if window > 1 else ""
    what = f"{TRIP}; " + ("one client" if few else f"each of {clients} clients") + f" has {window} under way."
    return Row(key, title, what, RATE, QUEUES_IN_MEMORY), round_trips(clients, window, workers)


GEARMAN = SideBySide(
    "gearman",
    "Jobs through the server",
    [
        trips("gearman-1x1", 1, 1, 1),
        trips("gearman-8x8", 8, 1, 8),
        trips("gearman-8x16", 8, 16, 8),
        trips("gearman-100x100", 100, 1, 100),
        (
            Row(
                "gearman-submit",
                "background submits, 4 clients, 64 in flight each",
                f"{SUBMIT}; on disk for Geartrain, durable; in memory for all others.",
                RATE,
                QUEUES_IN_MEMORY,
            ),
            submits(4, 64),
        ),
        (
            Row(
                "gearman-drain",
                "drain, 8 workers",
                f"{DRAINED}.",
                RATE,
                QUEUES_IN_MEMORY,
            ),
            drain(8),
        ),
    ],
)

SUBMIT_ON_DISK = "Background jobs with 64 bytes, from the submission until they are acknowledged as being on disk"
DISK = SideBySide(
    "durable",
    "Jobs on disk before they are acknowledged",
    [
        (
            Row(
                "durable-submit-1",
                "durable submits, one client that waits for each",
                f"{SUBMIT_ON_DISK}; one client that waits for each before the next.",
                RATE,
                ON_DISK,
            ),
            submits(1, 1),
        ),
        (
            Row(
                "durable-submit-256",
                "durable submits, 256 in flight",
                f"{SUBMIT_ON_DISK}; 4 clients with 64 under way each.",
                RATE,
                ON_DISK,
            ),
            submits(4, 64),
        ),
    ],
)


def memodb_act(window: int) -> Act:
    kinds = {
        "Geartrain, whole jobs": (memodb.JOB + memodb.PAYLOAD, memodb.PAYLOAD),
        "Geartrain, replies": (memodb.QUESTION, memodb.ANSWER),
        "pynng, echoes": (memodb.PAYLOAD, memodb.PAYLOAD),
    }

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        return sample(memodb.Load(place.port, window, *kinds[contender.name]), place.pid, effort)

    return act


MEMODB_CONTENDERS = (
    Contender(
        "Geartrain, whole jobs",
        "geartrain serve --store memory, its MemoDB door; a job is two requests and two replies",
        contenders.geartrain("memodb+tcp", durable=False),
        ours=True,
    ),
    Contender(
        "Geartrain, replies",
        "the same, requests that the server answers by itself",
        contenders.geartrain("memodb+tcp", durable=False),
        ours=True,
    ),
    Contender("pynng, echoes", "a bare echo server made with pynng, 8 threads", contenders.pynng, "pynng"),
)
MEMODB = SideBySide(
    "memodb",
    "The MemoDB door beside a bare echo of NNG's Python binding",
    [
        (
            Row(
                f"memodb-{window}",
                f"MemoDB, {window} in flight",
                f"Requests with 64 bytes over one connection, {window} under way, from the request to its reply.",
                "requests/s",
                MEMODB_CONTENDERS,
            ),
            memodb_act(window),
        )
        for window in memodb.WINDOWS
    ],
)


MONKEY_IN_MEMORY = (
    Contender(
        "Geartrain, memory",
        "geartrain serve --store memory, its GearMonkey door",
        contenders.geartrain("gearmonkey", durable=False),
        ours=True,
    ),
    Contender("Redis", "redis-server --appendonly no", LISTS.start, "redis-server"),
)
MONKEY_ON_DISK = (
    Contender(
        "Geartrain, durable",
        "geartrain serve --store sqlite, its GearMonkey door",
        contenders.geartrain("gearmonkey", durable=True),
        ours=True,
    ),
    Contender(
        "Redis, on disk",
        "redis-server --appendonly yes --appendfsync always: one fsync for all that came in meanwhile",
        LISTS_ON_DISK.start,
        "redis-server",
    ),
)


def monkey_jobs(key: str, way: str) -> list[tuple[Row, Act]]:
    """Jobs of the library, in memory and on disk."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        url = f"gearmonkey://127.0.0.1:{place.port}/0"
        before = contenders.processor_seconds(place.pid)
        rate, jobs = gearmonkey.measure(url, effort.seconds, gearmonkey.WAYS[way])
        return Sample(rate, (contenders.processor_seconds(place.pid) - before) / jobs * 1e6)

    what = (
        "Jobs with 64 bytes, from the submission to the stored result, with our library as one client and one worker "
        "process; both on the load's core."
    )
    return [
        (Row(f"gearmonkey-{key}", f"GearMonkey jobs, {way}", what, RATE, MONKEY_IN_MEMORY), act),
        (Row(f"gearmonkey-{key}-disk", f"GearMonkey jobs on disk, {way}", what, RATE, MONKEY_ON_DISK), act),
    ]


def monkey_commands(key: str, how: str, window: int) -> list[tuple[Row, Act]]:
    """The document's commands, without our library."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        return sample(plain_commands.PlainCommands(place.port, window), place.pid, effort)

    what = (
        "The commands of GearMonkey's document as programs with redis-py send them, 17 for each job with 64 bytes, "
        f"{how}; a client and a worker that take turns."
    )
    return [
        (Row(f"gearmonkey-{key}", f"GearMonkey's commands, {how}", what, RATE, MONKEY_IN_MEMORY), act),
        (Row(f"gearmonkey-{key}-disk", f"GearMonkey's commands on disk, {how}", what, RATE, MONKEY_ON_DISK), act),
    ]


BATCHES, ONE_BY_ONE, IN_FLIGHT = gearmonkey.WAYS
GEARMONKEY = SideBySide(
    "gearmonkey",
    "The GearMonkey door beside a real Redis",
    [
        *monkey_jobs("jobs", BATCHES),
        *monkey_jobs("one", ONE_BY_ONE),
        *monkey_jobs("flight", IN_FLIGHT),
        *monkey_commands("commands", "one after the other", 1),
        *monkey_commands("pipelines", f"{gearmonkey.IN_FLIGHT} jobs in each pipeline", gearmonkey.IN_FLIGHT),
    ],
)


class PeriodicRun:
    """One kind of a Periodic load, in today's dialect, in the shape of the others."""

    def __init__(self, port: int, command: int) -> None:
        self.load = periodic.PeriodicLoad(port, crc=True)
        self.command = command
        self.waits: list[float] = []
        if command == periodic.SUBMIT:
            self.load.dismiss_workers()

    def run(self, jobs: int) -> float:
        return self.load.run(jobs, self.command)

    def close(self) -> None:
        self.load.close()


class MemodbJobs(memodb.Load):
    """Whole jobs in the shape of the other doors' loads: workers that take one at a time."""

    def __init__(self, port: int) -> None:
        body, ending = memodb.JOB + memodb.PAYLOAD, memodb.PAYLOAD
        clients, window, workers = periodic.CLIENTS, periodic.WINDOW, periodic.WORKERS
        super().__init__(port, window, body, ending, clients, workers, slots=1)


Made = Callable[[int], crowd.Load]  # a load on the door at a port


def door_act(made: Made, beside: Made) -> Act:
    """The same work through a door and through the Gearman door of a server like it."""

    def act(contender: Contender, place: Place, effort: Effort) -> Sample:
        ports = [int(url.rpartition(":")[2].partition("/")[0]) for url in place.urls]
        return sample(beside(ports[0]) if not contender.ours else made(ports[1]), place.pid, effort)

    return act


def both_doors(scheme: str, name: str, on: str, durable: bool) -> tuple[Contender, Contender]:
    """A server with a door and the Gearman door, once for each of the two: the Gearman door is the first."""
    how = f"geartrain serve --store {'sqlite' if durable else 'memory'}"
    start = contenders.geartrain("gearman", scheme, durable=durable)
    store = "durable" if durable else "memory"
    return (
        Contender(f"{name} door, {store}", f"{how}, {on}", start, ours=True),
        Contender(f"Gearman door, {store}", how, start),
    )


def gearman_trips(window: int) -> Made:
    return lambda port: load.Load(port, b"beside", periodic.CLIENTS, window, periodic.WORKERS)


def gearman_submits(port: int) -> crowd.Load:
    return load.Submits(port, b"beside", periodic.CLIENTS, periodic.WINDOW)


PERIODIC_ON = "today's dialect; no Periodic server is packaged to compare with"
PERIODIC = SideBySide(
    "periodic",
    "The Periodic door beside the Gearman door",
    [
        (
            Row(
                "periodic-trips",
                "Periodic round trips, 8 clients, 8 workers, 8 in flight each",
                f"{TRIP}; each of 8 clients has 8 under way.",
                RATE,
                both_doors("periodic", "Periodic", PERIODIC_ON, durable=False),
            ),
            door_act(lambda port: PeriodicRun(port, periodic.RUN), gearman_trips(periodic.WINDOW)),
        ),
        (
            Row(
                "periodic-submit",
                "Periodic durable submits, 8 clients, 8 in flight each",
                f"{SUBMIT_ON_DISK}; 8 clients with 8 under way each.",
                RATE,
                both_doors("periodic", "Periodic", PERIODIC_ON, durable=True),
            ),
            door_act(lambda port: PeriodicRun(port, periodic.SUBMIT), gearman_submits),
        ),
    ],
)

DANGA_ON = "the draft of 2005, of which no other server exists"
DANGA = SideBySide(
    "danga",
    "The danga door beside the Gearman door",
    [
        (
            Row(
                "danga-trips",
                "danga round trips, 8 clients, 8 workers",
                f"{TRIP}; each of 8 clients has one under way, which is all that the draft allows.",
                RATE,
                both_doors("danga", "danga", DANGA_ON, durable=False),
            ),
            door_act(lambda port: danga.Load(port, b"beside", periodic.CLIENTS, periodic.WORKERS), gearman_trips(1)),
        ),
        (
            Row(
                "danga-submit",
                "danga durable submits, 8 clients, 8 in flight each",
                f"{SUBMIT_ON_DISK}; 8 clients with 8 under way each.",
                RATE,
                both_doors("danga", "danga", DANGA_ON, durable=True),
            ),
            door_act(lambda port: danga.Submits(port, b"beside", periodic.CLIENTS, periodic.WINDOW), gearman_submits),
        ),
    ],
)

HTTP_CLIENTS, HTTP_WORKERS = 64, 8
HTTP_DOOR = Contender(
    "HTTP door, memory",
    "geartrain serve --store memory, POST /api/v1/jobs; workers at its Gearman door",
    contenders.geartrain("gearman", "http", durable=False),
    ours=True,
)
BATCHES = Contender(
    "HTTP door, batches",
    f"the same, POST /api/v1/jobs/batch with {http_load.JOBS_PER_BATCH} jobs each",
    contenders.geartrain("gearman", "http", durable=False),
    ours=True,
)
GEARMAN_DOOR = Contender(
    "Gearman door, memory", "the same server and clients", contenders.geartrain("gearman", "http", durable=False)
)
HTTP_ECHO = Contender("bare HTTP echo", "uvloop and httptools, which answer with the body", http_load.echo)


def http_trips(contender: Contender, place: Place, effort: Effort) -> Sample:
    ports = [int(url.rpartition(":")[2]) for url in place.urls]
    made: crowd.Load
    if contender is HTTP_DOOR:
        made = http_load.Load(ports[1], ports[0], b"http-trips", HTTP_CLIENTS, HTTP_WORKERS)
    else:
        made = load.Load(ports[0], b"trips", HTTP_CLIENTS, 1, HTTP_WORKERS)
    return sample(made, place.pid, effort)


def http_submits(contender: Contender, place: Place, effort: Effort) -> Sample:
    port = int(place.urls[-1].rpartition(":")[2])
    made: crowd.Load
    if contender is HTTP_DOOR:
        made = http_load.Submits(port, b"http-submits", HTTP_CLIENTS, 1)
    elif contender is HTTP_ECHO:
        made = http_load.Submits(port, b"http-submits", HTTP_CLIENTS, 1, http_load.OK)
    else:
        made = load.Submits(place.port, b"submits", HTTP_CLIENTS, 1)
    return sample(made, place.pid, effort)


def http_batches(contender: Contender, place: Place, effort: Effort) -> Sample:
    made: crowd.Load
    if contender is BATCHES:
        made = http_load.Batches(int(place.urls[1].rpartition(":")[2]), b"http-bulk", 4, 1)
    else:
        made = load.Submits(place.port, b"bulk", 4, 64)
    return sample(made, place.pid, effort)


HTTP = SideBySide(
    "http",
    "The HTTP door beside the Gearman door and a bare HTTP echo",
    [
        (
            Row(
                "http-trips",
                f"HTTP round trips, {HTTP_CLIENTS} clients, {HTTP_WORKERS} workers",
                f"{TRIP}; each of {HTTP_CLIENTS} clients has one under way, on a connection that is kept alive.",
                RATE,
                (HTTP_DOOR, GEARMAN_DOOR),
            ),
            http_trips,
        ),
        (
            Row(
                "http-submits",
                f"HTTP submits, {HTTP_CLIENTS} clients",
                f"{SUBMIT}; each of {HTTP_CLIENTS} clients has one under way. The echo gets the same requests.",
                RATE,
                (HTTP_DOOR, GEARMAN_DOOR, HTTP_ECHO),
            ),
            http_submits,
        ),
        (
            Row(
                "http-bulk",
                "HTTP bulk submits, 4 clients",
                f"{SUBMIT}; HTTP has {http_load.JOBS_PER_BATCH} in a request, Gearman 64 under way.",
                RATE,
                (BATCHES, GEARMAN_DOOR),
            ),
            http_batches,
        ),
    ],
)

MEMODB_DOOR = SideBySide(
    "memodb-door",
    "The MemoDB door beside the Gearman door",
    [
        (
            Row(
                "memodb-trips",
                "MemoDB round trips, 8 clients, 8 workers, 8 in flight each",
                f"{TRIP}; each of 8 clients has 8 under way. The protocol has no other jobs.",
                RATE,
                both_doors("memodb+tcp", "MemoDB", "its MemoDB door", durable=False),
            ),
            door_act(MemodbJobs, gearman_trips(periodic.WINDOW)),
        )
    ],
)

BESIDE = "One server of ours has 10,000 connections beside this load, the other 1,000: 1 means that they cost nothing."


def beside(key: str, title: str, what: str, act: Act) -> tuple[Row, Act]:
    taking_part = (bystanders.MANY, bystanders.FEW)
    return Row(key, f"{title}, 10 thousand connections", f"{what} {BESIDE}", RATE, taking_part), act


BYSTANDERS = SideBySide(
    "bystanders",
    "What a job costs beside many connections",
    [
        beside("bystanders-trips", "round trips, 8 clients, 8 workers", f"{TRIP}.", round_trips(8, 1, 8)),
        beside("bystanders-submits", "submits, 4 clients, 64 in flight each", f"{SUBMIT}.", submits(4, 64)),
        beside("bystanders-drain", "drain the queue, 8 workers", f"{DRAINED}.", drain(8)),
    ],
)

LATENCY = latency.groups(
    (MEMORY, GEARMAND),
    (
        latency.Entry(DURABLE, "background"),
        latency.Entry(BEANSTALKD, "put"),
        latency.Entry(LISTS_ON_DISK, "push"),
    ),
)

GROUPS: Sequence[Group] = (
    GEARMAN,
    DISK,
    *LATENCY,
    MEMODB,
    GEARMONKEY,
    PERIODIC,
    DANGA,
    MEMODB_DOOR,
    HTTP,
    connections.group(MEMORY, GEARMAND),
    BYSTANDERS,
    flatness.Flatness(),
    task_queues.TaskQueues(),
    cluster.Cluster(),
)
