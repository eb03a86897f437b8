"""Workflows of any shape, whatever becomes of their members, with restarts at any moment, retries and a cancel.

The engine writes into a journal that keeps what a store would have; a restart makes a new engine of that. A model says
which members may run: those whose parents have ended, as each of them wishes.
"""

from typing import Final

import hypothesis.strategies as st
from hypothesis import given, note

from geartrain.engine.engine import Engine, PollingWorker
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.names import WORKFLOW
from geartrain.engine.worker import Worker
from geartrain.engine.workflow_verbs import MemberJob
from geartrain.model import JobState
from geartrain.store import contract, rows

FUNCTION: Final = b"f"
DONE, FAILED, CANCELLED = JobState.DONE, JobState.FAILED, JobState.CANCELLED


class StoringJournal(Journal):
    """What a store has of all jobs after every verb."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[object, ...]] = {}
        self.ends: dict[int, JobState] = {}
        self.whole: dict[int, tuple[object, ...]] = {}

    def accepted(self, job: LiveJob) -> None:
        assert job.id not in self.rows
        self.rows[job.id] = contract.row(job)

    def changed(self, job: LiveJob) -> None:
        assert job.id in self.rows
        self.rows[job.id] = contract.row(job)

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        del self.rows[job.id]
        assert job.id not in self.ends, "a job ends once"
        self.ends[job.id] = job.state

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self.finished(job, result, worker)
        self.whole[job.id] = contract.row(job)

    def retried(self, job: LiveJob) -> None:
        del self.ends[job.id], self.whole[job.id]
        self.rows[job.id] = contract.row(job)


@st.composite
def graphs(draw: st.DrawFn) -> list[MemberJob]:
    """Members that wait for some of those before them, in any order."""
    count = draw(st.integers(1, 8))
    places = draw(st.permutations(range(count)))
    members = [MemberJob(FUNCTION)] * count
    for number, place in enumerate(places):
        parents = draw(st.sets(st.sampled_from(places[:number]), max_size=3)) if number else set()
        members[place] = MemberJob(FUNCTION, b"%d" % place, tuple(parents), draw(st.booleans()))
    return members


class Scene:
    """An engine, what it has stored, and which members should have ended how."""

    def __init__(self, members: list[MemberJob]) -> None:
        self.members = members
        self.journal = StoringJournal()
        self.engine = Engine(journal=self.journal)
        self.hire()
        self.first = self.engine.submit_workflow(members).id + 1
        self.ends: dict[int, JobState] = {}  # by place, as they should be

    def hire(self) -> None:
        self.worker = PollingWorker("test")
        self.engine.register(self.worker, FUNCTION)

    def restart(self) -> None:
        self.engine = Engine(first_id=self.engine.next_id, journal=self.journal)
        self.engine.now = 10.0
        for row in list(self.journal.rows.values()):
            self.engine.restore(rows.job(row, LiveJob))
        self.engine.settle()
        self.hire()

    def end_one(self, is_good: bool) -> bool:
        """Run the next member, if there is one; return whether there was."""
        job = self.engine.claim(self.worker)
        if job is None:
            return False
        place = int(job.payload)
        assert place not in self.ends, "it has ended already"
        member = self.members[place]
        assert all(parent in self.ends for parent in member.after), "it runs too early"
        assert member.runs_anyway or all(self.ends[parent] is DONE for parent in member.after)
        if is_good:
            self.engine.complete(self.worker, job, b"")
        else:
            self.engine.fail(self.worker, job)
        self.ends[place] = DONE if is_good else FAILED
        self.cancel_children()
        return True

    def cancel_children(self) -> None:
        """Those that wait for a member that ended badly, and for those in turn."""
        changed = True
        while changed:
            changed = False
            for place, member in enumerate(self.members):
                bad = any(self.ends.get(parent, DONE) is not DONE for parent in member.after)
                if bad and not member.runs_anyway and place not in self.ends:
                    self.ends[place] = CANCELLED
                    changed = True

    def check(self) -> None:
        """The store has what the model has, and the workflow has ended exactly if all members have."""
        stored = {id - self.first: end for id, end in self.journal.ends.items() if id >= self.first}
        assert stored == self.ends
        is_over = len(self.ends) == len(self.members)
        assert (self.first - 1 in self.journal.ends) is is_over
        if is_over:
            is_good = set(self.ends.values()) == {DONE}
            assert self.journal.ends[self.first - 1] is (DONE if is_good else FAILED)
            assert (len(self.engine.jobs), self.engine.blocked) == (0, 0)

    def retry(self) -> None:
        """Run again what ended badly, as an operator does it with what the store has."""
        kept = {id: rows.failed_job(row, LiveJob) for id, row in self.journal.whole.items()}
        bad = [place for place, end in self.ends.items() if end is not DONE]
        assert set(kept) == {self.first - 1, *(self.first + place for place in bad)}, "all that it needs is kept"
        self.engine.retry_workflow(kept.pop(self.first - 1), list(kept.values()))
        for place in bad:
            del self.ends[place]


@given(graphs(), st.lists(st.sampled_from(["good", "good", "bad", "restart"]), max_size=30), st.data())
def test_members_run_when_they_may(members: list[MemberJob], steps: list[str], data: st.DataObject) -> None:
    scene = Scene(members)
    for step in steps:
        note(step)
        if step == "restart":
            scene.restart()
        elif not scene.end_one(step == "good") and FAILED in scene.ends.values():
            scene.check()
            scene.retry()
        scene.check()
    if data.draw(st.booleans(), "cancel"):
        workflow = scene.engine.jobs.get(scene.first - 1)
        if workflow is not None:
            assert workflow.function == WORKFLOW
            scene.engine.cancel(workflow)
            assert scene.journal.ends[workflow.id] is CANCELLED
            assert not scene.journal.rows
        return
    while scene.end_one(is_good=True):
        scene.check()
    assert not scene.journal.rows, "nothing hangs"
