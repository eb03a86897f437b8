"""Two servers that end and begin jobs of the same unique keys, each in one batch."""

import threading

import pytest

from geartrain.model import Job
from geartrain.store.contract import Batch
from geartrain.store.postgresql import PostgresqlStore
from tests.contract.stores.members import Join
from tests.contract.stores.members import join as join
from tests.contract.stores.test_shared import accepted, ended, ids, own
from tests.support import postgres_programs
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url

pytestmark = pytest.mark.peer(*postgres_programs.PEERS.values())

ROUNDS = 60
KEYS = [b"key-%d" % number for number in range(20)]


def both(ending: Batch, accepting: Batch) -> Batch:
    """A batch that ends jobs and accepts others."""
    accepting.finished = ending.finished
    return accepting


class Writer(threading.Thread):
    """Ends the jobs that it has, and begins one for each of the keys, again and again."""

    def __init__(self, store: PostgresqlStore, meeting: threading.Barrier, first: bool) -> None:
        super().__init__()
        self.store = store
        self._meeting = meeting
        self._first = first
        self.jobs: list[Job] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for number in range(ROUNDS):
                self._meeting.wait()
                self._commit(number)
        except BaseException as error:
            self.error = error
            self._meeting.abort()

    def _commit(self, number: int) -> None:
        half = len(KEYS) // 2
        mine = KEYS[:half] if (number % 2 == 0) is self._first else KEYS[half:]
        begun = [
            own(self.store, number * len(KEYS) + place + 1, unique=key) for place, key in enumerate((*mine, b"both"))
        ]
        outcome = self.store.commit(both(ended(*self.jobs), accepted(*begun)))
        self.jobs = [job for job in begun if job.id not in outcome.twins]


def test_no_batch_is_refused(join: Join, caplog: pytest.LogCaptureFixture) -> None:
    """Each ends jobs with the keys that the other one begins: they must not wait for each other."""
    meeting = threading.Barrier(2)
    writers = [Writer(join("one"), meeting, True), Writer(join("two"), meeting, False)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.error for writer in writers] == [None, None]
    assert [record for record in caplog.records if "trying again" in record.message] == []
    assert sorted(ids(writers[0].store)) == sorted(job.id for writer in writers for job in writer.jobs)
