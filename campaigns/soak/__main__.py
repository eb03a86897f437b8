"""Run a soak, and print its account.

    python -m campaigns.soak --minutes 2
    python -m campaigns.soak --minutes 30 --seed 7    the jobs and faults of an earlier run

The seed decides which jobs are submitted and which faults occur in which order. Their times vary with the machine. The
exit code is 1 if a job is lost, or if anything else is not as it has to be.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from campaigns.soak import plan
from campaigns.soak.account import MOST_SHOWN, Account, Answer
from campaigns.soak.campaign import SoakCampaign, SoakFigures

MINUTES = 2.0


def table(account: Account, figures: SoakFigures) -> str:
    """What was done and seen."""
    lines = [f"{'client':<14} {'acknowledged':>12} {'refused':>8} {'uncertain':>9} {'foreground':>10}"]
    for source in account.sources:
        numbers = [account.count(source, answer) for answer in Answer]
        lines.append("{:<14} {:>12} {:>8} {:>9} {:>10}".format(source, *numbers, account.foreground[source]))
    lines.append("errors of clients: " + _listed(account.errors))
    lines.append("faults: " + _listed(figures.faults))
    lines.append(f"lives of the server: {figures.lives}")
    if figures.verdict is not None:
        lines.append("acknowledged jobs in the store: " + _listed(figures.verdict.states))
        lines.append(
            f"runs: {figures.ran}, of these {figures.verdict.duplicates} repeated a job; "
            f"submitted again by the library: {figures.verdict.resubmitted}"
        )
    if figures.begin is not None and figures.end is not None:
        memory = f"{figures.begin.memory} KiB at first, {figures.end.memory} KiB at the end"
        lines.append(f"memory of the server: {memory}, {figures.most_memory} KiB at most")
        lines.append(f"descriptors: {figures.begin.descriptors} at first, {figures.end.descriptors} at the end")
    if figures.missing:
        lines.append(f"not installed here, so left out: {', '.join(figures.missing)}")
    return "\n".join(lines)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def say(text: str) -> None:
    print(text, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(words)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    say(f"seed {seed}, {options.minutes:g} minutes")
    home = Path(tempfile.mkdtemp(prefix="geartrain-soak-"))
    campaign = SoakCampaign(seed, home, say)
    try:
        figures = campaign.run(plan.faults(seed), options.minutes * 60)
    except BaseException:
        say(f"the soak of seed {seed} failed; its files are in {home}")
        raise
    say(table(campaign.account, figures))
    if not figures.problems:
        shutil.rmtree(home)
        say(f"every acknowledged job is accounted for (seed {seed}, {figures.seconds:.0f} s)")
        return 0
    for problem in figures.problems[:MOST_SHOWN]:
        say(f"PROBLEM: {problem}")
    say(f"{len(figures.problems)} problems; repeat with make soak SOAK_SEED={seed}; the files are in {home}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
