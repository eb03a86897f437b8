"""Measure a Gearman server beside another one, in paired rounds, with a load generator in C.

    python bench/compare.py -- .venv/bin/geartrain serve --store memory --listen gearman://127.0.0.1:{port}
    python bench/compare.py --durable -- geartrain serve --store sqlite:///{dir}/jobs.db --listen gearman://127.0.0.1:{port}
    python bench/compare.py --rival 'old/geartrain serve --listen gearman://127.0.0.1:{port}' -- new/geartrain serve ...

In a COMMAND, {port} becomes a free port and {dir} an empty folder that is deleted afterwards. Each round starts both
servers anew. Every row runs on one of them and then at once on the other; which is first changes with the round. The
servers share one core, of which the one that is not measured uses nothing, and the load generator has another.
With --cores N, servers have N cores and the load has the others, or all if there are no others.

A busy machine slows down both halves of such a pair, so a ratio is taken within a pair, and the median over the rounds
counts. Above 1, the measured server is ahead. On a shared machine the rounds differ: the lowest and the highest ratio
tell how much. To see what a change brings, compare both builds with --rival rather than each with gearmand.

Variables named GEARTRAIN_* do not reach the servers; --rival 'env GEARTRAIN_PURE=1 geartrain serve ...' sets one.
"""

import argparse
import json
import pathlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import contenders, figures, gearman_load, machine, progress
from bench.contenders import Start
from bench.figures import Sample
from bench.gearman_load import Work
from tools import peers

IN_MEMORY = (
    Work("foreground, 1 client, 1 worker", "foreground", 8_000, clients=1, window=1, workers=1),
    Work("foreground, 8 clients, 8 workers", "foreground", 30_000, clients=8, window=1, workers=8),
    Work("foreground, 8 clients x 16 in flight", "foreground", 60_000, clients=8, window=16, workers=8),
    Work("foreground, 100 clients, 100 workers", "foreground", 30_000, clients=100, window=1, workers=100),
    Work("background submit", "background", 100_000, clients=4, window=64),
    Work("drain the background queue", "drain", 100_000, workers=8),
)
DURABLE = (
    Work("durable submit, 1 client", "background", 2_000, clients=1, window=1),
    Work("durable submit, 4 clients x 64 in flight", "background", 60_000, clients=4, window=64),
)
# gearmand's SQLite queue syncs every job by itself: as many jobs as above would take minutes.
GEARMAND_DURABLE_JOBS = {"durable submit, 1 client": 400, "durable submit, 4 clients x 64 in flight": 1_500}
GEARMAND_SQLITE = ("--queue-type=libsqlite3", "--libsqlite3-db=queue.db")
QUICK = 100  # --quick divides the number of jobs by this

COLUMNS = "{:42} {:>12} {:>12} {:>11} {:>14} {:>10} {:>10}"
LEGEND = (
    "rate ratio: jobs per second, measured over {rival}, within a round: the median. range: lowest to highest.",
    "cpu ratio: the same for the processor time that the server takes for a job. Above 1, the measured one is ahead.",
    "load busy: how busy the core of the load was with the measured server; near 100%, the server could do more.",
)


class Server(NamedTuple):
    """One of the two that are compared."""

    name: str
    start: Start
    works: tuple[Work, ...]  # the same titles for both, not always the same number of jobs


class Pairs:
    """What both servers did with one work, round by round."""

    def __init__(self) -> None:
        self.measured: list[Sample] = []
        self.rival: list[Sample] = []

    def rate_ratios(self) -> list[float]:
        return figures.ratios(self.measured, self.rival, less_is_better=False)

    def processor_ratio(self) -> float | None:
        """How many times less processor time the measured server takes for a job."""
        measured = [Sample(sample.server_us or 0.0) for sample in self.measured]
        rival = [Sample(sample.server_us or 0.0) for sample in self.rival]
        return figures.ratio(measured, rival, less_is_better=True)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        usage="%(prog)s [OPTIONS] -- COMMAND...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", metavar="N", type=int, default=3, help="default: 3")
    parser.add_argument("--payload", metavar="BYTES", type=int, default=64, help="of each job and result; default: 64")
    parser.add_argument("--durable", action="store_true", help="submits only; gearmand then keeps its queue in SQLite")
    parser.add_argument("--rival", metavar="COMMAND", type=shlex.split, help="the other server; default: gearmand")
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument("--unpinned", action="store_true", help="let servers and load use every core")
    cores.add_argument(
        "--cores", metavar="N", type=int, help="let servers use N cores, and gearmand its default number of threads"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table, with every round")
    parser.add_argument("--quick", action="store_true", help="see that everything runs; the figures mean nothing")
    parser.add_argument("command", metavar="COMMAND", nargs="+", help="the server to measure")
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.payload < 0:
        parser.error("--payload: at least 0")
    if options.cores is not None and options.cores < 1:
        parser.error("--cores: at least 1")
    for name, command in (("COMMAND", options.command), ("--rival", options.rival)):
        if command is not None and not any("{port}" in word for word in command):
            parser.error(f"{name}: {{port}} is not in it, so the server would not listen where the load connects")
    return options


def obstacle(options: argparse.Namespace) -> str:
    """Why nothing can be measured here; empty if it can."""
    if not contenders.PINNED:
        return "two cores are needed, one for the servers and one for the load, and this process may use only one"
    if options.cores is not None and options.cores > len(contenders.CORES):
        return f"--cores {options.cores}: this process may use only {len(contenders.CORES)}"
    needed = {"cc"} if options.rival else {"cc", "gearmand"}
    for peer in peers.PEERS:
        if peer.name in needed and (reason := peers.why_missing(peer)):
            return reason
    for command in filter(None, (options.command, options.rival)):
        if shutil.which(command[0]) is None:
            return f"{command[0]} is not a command"
    return ""


def servers(options: argparse.Namespace) -> tuple[Server, Server]:
    """The measured one, and its rival."""
    works = scaled(DURABLE if options.durable else IN_MEMORY, options.quick)
    measured = Server("measured", contenders.command(located(options.command)), works)
    if options.rival:
        return measured, Server("rival", contenders.command(located(options.rival)), works)
    threads = contenders.ONE_THREAD if options.cores is None else ""
    if not options.durable:
        return measured, Server("gearmand", contenders.gearmand(threads=threads), works)
    fewer = tuple(work._replace(jobs=GEARMAND_DURABLE_JOBS[work.title]) for work in DURABLE)
    start = contenders.gearmand(*GEARMAND_SQLITE, threads=threads)
    return measured, Server("gearmand", start, scaled(fewer, options.quick))


def scaled(works: tuple[Work, ...], quick: bool) -> tuple[Work, ...]:
    return tuple(work._replace(jobs=work.jobs // QUICK) for work in works) if quick else works


def located(command: Sequence[str]) -> list[str]:
    """The command by its full path: servers run in folders of their own."""
    program = shutil.which(command[0]) or command[0]
    return [str(pathlib.Path.cwd() / program), *command[1:]]


def measure(measured: Server, rival: Server, rounds: int, payload: int) -> dict[str, Pairs]:
    """The pairs of every work, by its title."""
    results = {work.title: Pairs() for work in measured.works}
    bar = progress.Progress(2 * rounds * len(measured.works))
    with tempfile.TemporaryDirectory(prefix="geartrain-bench-") as folder, contenders.own_core():
        program = gearman_load.compile_into(pathlib.Path(folder))
        for number in range(rounds):
            with contenders.running(measured.start) as ours, contenders.running(rival.start) as theirs:
                for work, rivals_work in zip(measured.works, rival.works, strict=True):
                    pairs = results[work.title]
                    halves = [(measured, ours, work, pairs.measured), (rival, theirs, rivals_work, pairs.rival)]
                    for server, place, its_work, samples in halves if number % 2 == 0 else halves[::-1]:
                        bar.step(f"round {number + 1}, {work.title}, {server.name}")
                        samples.append(gearman_load.run(program, place, its_work, payload))
                        bar.finish()
    bar.end()
    return results


def rows(results: Mapping[str, Pairs]) -> list[dict[str, Any]]:
    """The result for programs: medians, ratios, and every round."""
    return [
        {
            "work": title,
            "rival_per_s": figures.median(pairs.rival),
            "measured_per_s": figures.median(pairs.measured),
            "rate_ratio": figures.ratio(pairs.measured, pairs.rival, less_is_better=False),
            "rate_ratio_lowest": min(pairs.rate_ratios()),
            "rate_ratio_highest": max(pairs.rate_ratios()),
            "cpu_ratio": pairs.processor_ratio(),
            "load_busy": figures.median(pairs.measured, "load_busy"),
            "rounds": [
                {"rival": _round(rival), "measured": _round(measured)}
                for rival, measured in zip(pairs.rival, pairs.measured, strict=True)
            ],
        }
        for title, pairs in results.items()
    ]


def _round(sample: Sample) -> dict[str, float | None]:
    return {"per_s": sample.value, "server_us": sample.server_us, "load_busy": sample.load_busy}


def table(found: Sequence[Mapping[str, Any]], rival: str) -> list[str]:
    """The result for people."""
    heads = ("work", f"{rival}/s", "measured/s", "rate ratio", "range", "cpu ratio", "load busy")
    lines = [COLUMNS.format(*heads), *(_line(row) for row in found)]
    return [*lines, *(line.format(rival=rival) for line in LEGEND)]


def _line(row: Mapping[str, Any]) -> str:
    return COLUMNS.format(
        row["work"],
        f"{row['rival_per_s']:,.0f}",
        f"{row['measured_per_s']:,.0f}",
        figures.short(row["rate_ratio"]),
        f"{figures.short(row['rate_ratio_lowest'])}-{figures.short(row['rate_ratio_highest'])}",
        figures.short(row["cpu_ratio"]),
        f"{row['load_busy']:.0%}",
    )


def remarks(options: argparse.Namespace, host: Mapping[str, Any]) -> list[str]:
    """On what it was measured, and what a reader must not overlook."""
    lines = [
        f"{options.rounds} round(s), payloads of {options.payload} bytes, {host['processor']}, {host['cores']} cores, "
        f"load average {host['load_average']} at the start."
    ]
    if options.durable and host["filesystem"] in machine.IN_MEMORY:
        lines.append("The temporary folder is in memory, so nothing was written to a disk. Set TMPDIR.")
    if options.unpinned:
        lines.append("Servers and load could use every core.")
    if options.cores is not None:
        lines.append(f"A server could use {options.cores} cores; gearmand, where it is one, had its default threads.")
    if options.quick:
        lines.append("A quick run: the figures mean nothing.")
    return lines


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    if reason := obstacle(options):
        print(f"compare: {reason}", file=sys.stderr)
        return 1
    if options.unpinned:
        contenders.unpin()
    if options.cores is not None:
        contenders.serve_on(options.cores)
    host = machine.facts()
    measured, rival = servers(options)
    try:
        results = measure(measured, rival, options.rounds, options.payload)
    except (gearman_load.LoadError, contenders.StartError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    found = rows(results)
    if options.json:
        print(json.dumps({"rival": rival.name, "machine": host, "rows": found}, indent=1))
    else:
        print("\n".join([*table(found, rival.name), *remarks(options, host)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
