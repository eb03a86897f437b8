"""What a store that several servers share promises beyond the contract of every store."""

import contextlib
import re
import threading
import time

import psycopg
import pytest

from geartrain.errors import StoreError
from geartrain.model import Job, JobState
from geartrain.store import contract
from geartrain.store.contract import Batch, Query, Record, Retention, Twin
from geartrain.store.contract import Quota as Quota
from geartrain.store.postgresql import PostgresqlStore
from geartrain.store.shared import FencedError, IdRange, Member, Node, WentBackError
from tests.contract.stores.factories import job, record
from tests.contract.stores.members import Join
from tests.contract.stores.members import join as join
from tests.support import postgres_pair, postgres_programs, postgres_proxy
from tests.support.postgres import Cluster
from tests.support.postgres_fixtures import Clusters
from tests.support.postgres_fixtures import cluster as cluster
from tests.support.postgres_fixtures import clusters as clusters
from tests.support.postgres_fixtures import schema as schema
from tests.support.postgres_fixtures import schema_url as schema_url
from tests.support.postgres_proxy import CuttingProxy, Message, Moment

pytestmark = pytest.mark.peer(*postgres_programs.PEERS.values())


def accepted(*jobs: Job) -> Batch:
    batch = Batch()
    batch.accepted = [contract.row(job) for job in jobs]
    return batch


def own(store: PostgresqlStore, number: int, **changes: object) -> Job:
    """A job with an id of the store's range."""
    id = (store.node << 32) + number
    return job(id, handle=b"H:c:%d" % id, **changes)


def finished(job: Job) -> Record:
    return record(job.id, handle=job.handle, unique=job.unique)


def ended(*jobs: Job) -> Batch:
    batch = Batch()
    batch.finished = list(map(finished, jobs))
    return batch


def ids(store: PostgresqlStore) -> list[int]:
    """All jobs that the database has."""
    return [job.id for jobs in store.jobs_of(IdRange(0, 2**63), Job) for job in jobs]


def seen(store: PostgresqlStore, other: PostgresqlStore) -> Node:
    """The other server, as this one sees it."""
    return next(node for node in store.look(0).nodes if node.id == other.node)


class TestRanges:
    def test_every_server_has_ids_of_its_own(self, join: Join) -> None:
        one, two = join("one"), join("two")
        one.commit(accepted(own(one, 1)))
        two.commit(accepted(own(two, 1)))
        assert ids(one) == [(one.node << 32) + 1, (two.node << 32) + 1]
        assert [job.id for job in one.jobs(Job)] == [(one.node << 32) + 1]

    def test_all_servers_have_the_handle_prefix_of_the_first(self, join: Join) -> None:
        one = join("one", handle_prefix=b"H:one")
        two = join("two", handle_prefix=b"H:two")
        assert (one.handle_prefix, two.handle_prefix) == (b"H:one", b"H:one")

    def test_a_range_that_is_half_used_is_followed_by_another(self, join: Join) -> None:
        store = join("one")
        batch = accepted(own(store, 1))
        batch.ids_until = (store.node << 32) + 2**31
        first = store.commit(batch).first_id
        assert first > (store.node + 1) << 32
        batch = accepted(job(first))
        batch.ids_until = first + 1
        assert store.commit(batch).first_id == 0, "it is new"
        assert [job.id for job in store.jobs(Job)] == [(store.node << 32) + 1, first]

    def test_a_name_can_be_used_once(self, join: Join) -> None:
        one = join("one")
        stop = threading.Event()

        def live() -> None:
            while not stop.wait(0.05):
                one.commit(Batch())

        thread = threading.Thread(target=live)
        thread.start()
        try:
            with pytest.raises(StoreError, match="a server named 'one' is running in this cluster"):
                join("one")
        finally:
            stop.set()
            thread.join()

    def test_a_server_that_starts_again_fences_its_earlier_start(self, join: Join) -> None:
        before = join("one")
        before.commit(accepted(own(before, 1)))
        after = join("one", is_gone=lambda node: True)
        with pytest.raises(FencedError):
            before.commit(accepted(own(before, 2)))
        assert after.take(10) == IdRange(before.node << 32, (before.node + 1) << 32)
        assert ids(after) == [(before.node << 32) + 1]

    def test_a_start_under_the_name_of_one_that_has_stood_still_fences_it(self, join: Join) -> None:
        before = join("one", lease=2.0)
        join("one", lease=2.0)
        with pytest.raises(FencedError):
            before.commit(Batch())


class TestKeys:
    def test_the_job_that_has_the_key_stands_for_the_other(self, join: Join) -> None:
        one, two = join("one"), join("two")
        first, second = own(one, 1, unique=b"key"), own(two, 1, unique=b"key")
        assert one.commit(accepted(first)).twins == {}
        outcome = two.commit(accepted(second, own(two, 2)))
        assert outcome.twins == {second.id: (first.id, first.handle)}
        assert ids(one) == [first.id, (two.node << 32) + 2]

    def test_a_job_whose_row_is_there_already_does_not_stand_for_itself(self, join: Join) -> None:
        one = join("one")
        job = own(one, 1, unique=b"key")
        assert one.commit(accepted(job)).twins == {}
        assert one.commit(accepted(job)).twins == {}
        assert ids(one) == [job.id]

    def test_keys_belong_to_functions(self, join: Join) -> None:
        one, two = join("one"), join("two")
        one.commit(accepted(own(one, 1, unique=b"key", function=b"f")))
        assert two.commit(accepted(own(two, 1, unique=b"key", function=b"g"))).twins == {}

    def test_a_key_is_free_when_its_job_has_ended(self, join: Join) -> None:
        one, two = join("one"), join("two")
        first = own(one, 1, unique=b"key")
        one.commit(accepted(first))
        batch = ended(first)
        batch.accepted = [contract.row(own(one, 2, unique=b"key"))]
        assert one.commit(batch).twins == {}, "it ends in the same batch"
        one.commit(ended(own(one, 2, unique=b"key")))
        assert two.commit(accepted(own(two, 1, unique=b"key"))).twins == {}

    def test_dead_jobs_hold_no_key_and_get_it_back_if_it_is_free(self, join: Join) -> None:
        one, two = join("one"), join("two")
        first, second = own(one, 1, unique=b"key"), own(two, 1, unique=b"key")
        one.commit(accepted(first))
        dead = Batch()
        dead.changed = [contract.row(own(one, 1, unique=b"key", state=JobState.DEAD))]
        one.commit(dead)
        assert two.commit(accepted(second)).twins == {}
        revived = Batch()
        revived.revived = [contract.row(first)]
        assert one.commit(revived).twins == {first.id: (second.id, second.handle)}
        assert [job.state for job in one.jobs(Job)] == [JobState.DEAD]
        two.commit(ended(second))
        assert one.commit(revived).twins == {}
        assert [job.state for job in one.jobs(Job)] == [JobState.QUEUED]

    def test_a_failed_job_keeps_its_record_if_its_key_is_taken(self, join: Join) -> None:
        one, two = join("one"), join("two")
        first, second = own(one, 1, unique=b"key"), own(two, 1, unique=b"key")
        one.commit(accepted(first))
        failed = ended(first)
        failed.finished = [finished(first)._replace(state=int(JobState.FAILED))]
        failed.failed = [contract.row(own(one, 1, unique=b"key", state=JobState.FAILED))]
        one.commit(failed)
        two.commit(accepted(second))
        retried = Batch()
        retried.revived, retried.removed_records = [contract.row(first)], [first.id]
        assert one.commit(retried).twins.keys() == {first.id}
        assert [record.id for record in two.records(Query())] == [first.id]
        assert one.failed_jobs([first.id], Job, 100)[0] is not None

    def test_servers_that_use_the_same_keys_do_not_block_each_other(self, join: Join) -> None:
        """Each inserts them in its own order, in many batches at once."""
        stores = [join("one"), join("two")]
        keys = [b"%d" % number for number in range(200)]
        owners: list[dict[bytes, int]] = [{}, {}]

        def submit(index: int) -> None:
            store, order = stores[index], keys if index else keys[::-1]
            for number in range(20):
                jobs = [own(store, number * 1000 + i, unique=key) for i, key in enumerate(order, 1)]
                twins = store.commit(accepted(*jobs)).twins
                mine = [job for job in jobs if job.id not in twins]
                owners[index] |= {job.unique: job.id for job in mine}
                store.commit(ended(*mine))

        threads = [threading.Thread(target=submit, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert owners[0].keys() | owners[1].keys() == set(keys)
        assert ids(stores[0]) == []


class TestFence:
    def test_a_server_that_has_not_moved_is_fenced_and_one_that_has_is_not(self, join: Join) -> None:
        one, two = join("one"), join("two")
        before = seen(one, two)
        two.commit(Batch())
        assert not one.accuse(before), "it has committed since"
        assert one.accuse(seen(one, two))
        with pytest.raises(FencedError):
            two.commit(accepted(own(two, 1)))
        assert ids(one) == []

    def test_a_server_that_hangs_in_a_transaction_is_fenced(self, join: Join, cluster: Cluster, schema: str) -> None:
        """PostgreSQL waits for the rows of its COPY, where no timeout helps."""
        one, two = join("one"), join("two")
        with cluster.connect() as hanging, hanging.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT {schema}.fence(%s, '(0,0)', 1000, 0)".encode(), (two.node,))
            with contextlib.suppress(Exception), cursor.copy(f"COPY {schema}.meta (name) FROM STDIN".encode()) as copy:
                copy.write(b"x\n")
                assert one.accuse(seen(one, two))
            assert hanging.closed
        with pytest.raises(FencedError):
            two.commit(Batch())

    def test_one_server_leads_until_it_is_gone(self, join: Join) -> None:
        one, two = join("one"), join("two")
        two.serve("")
        assert one.lead()
        assert not two.lead()
        assert two.accuse(seen(two, one))
        assert two.lead()

    def test_servers_know_of_each_other_by_their_commits(self, join: Join) -> None:
        one, two = join("one"), join("two")
        assert seen(two, one).seen < two.node
        batch = Batch()
        batch.known_node = two.node
        one.commit(batch)
        assert seen(two, one).seen == two.node

    def test_an_operator_can_ask_a_server_to_drain(self, join: Join) -> None:
        one, two = join("one"), join("two")
        assert two.ask_to_drain("one")
        assert seen(two, one).draining
        assert not two.ask_to_drain("three")


class TestTakeover:
    def test_jobs_are_taken_in_pieces(self, join: Join) -> None:
        one, two = join("one"), join("two")
        one.commit(accepted(*(own(one, number) for number in range(1, 26))))
        assert two.take(10) is None, "it lives"
        assert two.accuse(seen(two, one))
        pieces = []
        while (ids := two.take(10)) is not None:
            pieces.append([job.id - (one.node << 32) for jobs in two.jobs_of(ids, Job) for job in jobs])
        assert pieces == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]
        assert two.look(0).orphans == 0

    def test_a_range_that_was_taken_since_the_statement_began_is_not_taken_again(
        self, join: Join, cluster: Cluster
    ) -> None:
        """The statement of `two` has its snapshot, and finds the range unlocked only when `one` has taken it."""
        one, two, gone = join("one"), join("two"), join("gone")
        gone.commit(accepted(own(gone, 1)))
        assert one.accuse(seen(one, gone))
        waits = "(SELECT count(*) FROM pg_advisory_xact_lock(77)) = 1"
        taken: list[IdRange | None] = []
        with cluster.connect() as connection:
            statement = two._nodes._orphan.as_string(connection)
            two._nodes._orphan = psycopg.sql.Composed(
                [psycopg.sql.SQL(re.sub("WHERE (.*) ORDER", rf"WHERE (\1) AND {waits} ORDER", statement))]
            )
            connection.execute("SELECT pg_advisory_lock(77)")
            taker = threading.Thread(target=lambda: taken.append(two.take(10)))
            taker.start()
            while not cluster.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                assert taker.is_alive()
            assert one.take(10) is not None
            connection.execute("SELECT pg_advisory_unlock(77)")
            taker.join()
        assert taken == [None]

    def test_a_server_that_leaves_is_taken_over_at_once(self, schema_url: str, join: Join) -> None:
        two = join("two")
        one = PostgresqlStore(schema_url, member=Member(name="one"))
        one.open()
        one.commit(accepted(own(one, 1)))
        one.close(0)
        assert two.look(0).orphans == 1
        assert two.take(10) is not None
        assert [job.id for job in two.jobs(Job)] == [(one.node << 32) + 1]

    @pytest.mark.parametrize("jobs", [0, 1])
    def test_a_server_that_was_cut_off_meanwhile_is_fenced(self, join: Join, jobs: int) -> None:
        """It must not take the database for one that went back in time, and write the jobs of others again."""
        one, two = join("one"), join("two")
        one.commit(accepted(*(own(one, number + 1) for number in range(jobs))))
        assert two.accuse(seen(two, one))
        while two.take(10) is not None:
            pass
        one._disconnect()  # as if the network had been cut
        with pytest.raises(FencedError):
            one.commit(Batch())

    def test_ranges_without_jobs_are_forgotten_with_their_servers(self, join: Join) -> None:
        one, two = join("one"), join("two")
        assert two.accuse(seen(two, one))
        assert two.take(10) is None
        assert [node.id for node in two.look(0).nodes] == [two.node]

    def test_the_row_of_a_server_is_removed_when_it_is_long_gone(
        self, join: Join, cluster: Cluster, schema: str
    ) -> None:
        one, two = join("one"), join("two")
        assert two.accuse(seen(two, one))
        assert two.take(10) is None
        cluster.query(f"UPDATE {schema}.nodes SET beat = beat - interval '31 days' WHERE id = {one.node}")
        assert two.take(10) is None
        assert cluster.query(f"SELECT id FROM {schema}.nodes") == [(two.node,)]


class TestValues:
    def test_a_look_shows_what_others_have_saved_since(self, join: Join) -> None:
        one, two = join("one"), join("two")
        version = two.look(0).version
        batch = Batch()
        batch.saved_values = {"order.f": b"paused"}
        outcome = one.commit(batch)
        view = two.look(version)
        assert (view.values, view.version) == ({"order.f": b"paused"}, outcome.version)
        assert two.look(view.version).values == {}


SMALL, LARGE = 1, 50  # jobs of a batch


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("key", [b"", b"key %d"], ids=["no keys", "keys"])
class TestInDoubt:
    """The connection breaks during a commit."""

    def commit(
        self, join: Join, cluster: Cluster, schema: str, moment: Moment, size: int, key: bytes
    ) -> PostgresqlStore:
        with CuttingProxy(cluster.port) as proxy:
            store = join("one", proxy.url(schema=schema))
            proxy.cut_at(moment)
            jobs = [own(store, number, unique=key % number if key else b"") for number in range(1, size + 1)]
            batch = accepted(*jobs)
            batch.finished = [finished(own(store, 1000 + number)) for number in range(size)]
            assert store.commit(batch).twins == {}
            proxy.wait_until_cut()
            assert len(ids(store)) == size
            assert len(store.records(Query(limit=1000))) == size
            store.commit(accepted(own(store, 5000)))
            store.close(0)
        return store

    def test_before_it_arrives_it_is_repeated(
        self, join: Join, cluster: Cluster, schema: str, size: int, key: bytes
    ) -> None:
        store = self.commit(join, cluster, schema, postgres_proxy.commit, size, key)
        assert store.in_doubt == {"committed": 0, "repeated": 1}

    def test_after_it_is_carried_out_it_is_not_repeated(
        self, join: Join, cluster: Cluster, schema: str, size: int, key: bytes
    ) -> None:
        store = self.commit(join, cluster, schema, postgres_proxy.commit_answer, size, key)
        assert store.in_doubt == {"committed": 1, "repeated": 0}


def test_a_commit_that_is_found_carried_out_renews_the_lease_from_its_beginning(
    join: Join, cluster: Cluster, schema: str
) -> None:
    """The others have seen the counter move then, and count their lease from there."""
    cut: list[float] = []

    def answer(message: Message) -> bool:
        if postgres_proxy.commit_answer(message):
            cut.append(time.monotonic())
            return True
        return False

    with CuttingProxy(cluster.port) as proxy:
        store = join("one", proxy.url(schema=schema))
        proxy.cut_at(answer)
        store.commit(accepted(own(store, 1)))
        assert store.in_doubt["committed"] == 1
        assert store.renewed_at <= cut[0]
        store.close(0)


def test_a_backend_that_outlives_its_connection_commits_once(join: Join, cluster: Cluster, schema: str) -> None:
    """The commit arrives while the batch is being repeated."""
    with CuttingProxy(cluster.port) as proxy:
        store = join("one", proxy.url(schema=schema))
        proxy.cut_at(postgres_proxy.commit, outlive=True)
        batch = accepted(*(own(store, number) for number in range(1, LARGE + 1)))
        threading.Timer(0.5, proxy.release).start()
        store.commit(batch)
        assert len(ids(store)) == LARGE
        assert store.in_doubt["committed"] == 1
        store.close(0)


@pytest.mark.parametrize("takes_first", [False, True])
def test_a_commit_that_was_given_up_and_carried_out_is_undone(
    join: Join, cluster: Cluster, schema: str, takes_first: bool
) -> None:
    with CuttingProxy(cluster.port) as proxy:
        store = join("one", proxy.url(schema=schema), patience=0.2)
        old = own(store, 1)
        store.commit(accepted(old))
        proxy.cut_at(lambda message: postgres_proxy.commit_answer(message) and not proxy.cut_off())  # type: ignore[func-returns-value]
        given_up = accepted(own(store, 2))
        given_up.finished = [finished(old)]
        with pytest.raises(StoreError):
            store.commit(given_up)
        proxy.restore()
        if takes_first:
            assert store.take(10) is None
        later = accepted(own(store, 3))
        given_up.rejoin(later, {own(store, 2).id})
        store.commit(later)
        assert ids(store) == [own(store, 3).id]
        assert [record.id for record in store.records(Query())] == [old.id], "once"
        store.close(0)


def test_a_take_that_was_given_up_and_carried_out_is_found_by_the_next(
    join: Join, cluster: Cluster, schema: str
) -> None:
    with CuttingProxy(cluster.port) as proxy:
        store = join("one", proxy.url(schema=schema), patience=0.2)
        gone = join("gone")
        gone.commit(accepted(own(gone, 1)))
        assert store.accuse(seen(store, gone))
        proxy.cut_at(lambda message: postgres_proxy.commit_answer(message) and not proxy.cut_off())  # type: ignore[func-returns-value]
        with pytest.raises(StoreError):
            store.take(10)
        proxy.restore()
        assert store.take(10) == IdRange(gone.node << 32, (gone.node + 1) << 32)
        assert store.take(10) is None
        store.close(0)


def test_a_database_that_went_back_in_time_gets_all_jobs_again() -> None:
    with postgres_pair.Pair(synchronous=False) as pair:
        store = PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name="one"))
        store.open()
        jobs = [own(store, number, unique=b"%d" % number) for number in range(1, 11)]
        store.commit(accepted(*jobs[:5]))
        pair.leave_behind()
        store.commit(accepted(*jobs[5:]))
        store.commit(ended(jobs[0]))
        pair.fail_over()
        with pytest.raises(WentBackError):
            store.commit(Batch())
        with pytest.raises(WentBackError):
            store.commit(accepted(own(store, 99)))
        everything = Batch()
        everything.is_whole, everything.changed = True, [contract.row(job) for job in jobs[1:]]
        store.commit(everything)
        assert ids(store) == [job.id for job in jobs[1:]]
        assert store.resynced == 5
        store.commit(ended(*jobs[1:]))
        assert ids(store) == []
        store.close(0)


def test_a_key_that_another_server_has_used_since_does_not_keep_a_server_from_writing_all_jobs_again() -> None:
    """Both jobs were acknowledged, so both stay; the key is that of the one which was accepted last."""
    with postgres_pair.Pair(synchronous=False) as pair:
        one, two = (PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name=name)) for name in ("one", "two"))
        one.open()
        two.open()
        pair.leave_behind()
        first = own(one, 1, unique=b"key")
        one.commit(accepted(first))
        pair.fail_over()
        second = own(two, 1, unique=b"key")
        assert two.commit(accepted(second)).twins == {}
        with pytest.raises(WentBackError):
            one.commit(Batch())
        everything = Batch()
        everything.is_whole, everything.changed = True, [contract.row(first)]
        one.commit(everything)
        assert ids(one) == [first.id, second.id]
        first.attempts += 1
        later = Batch()
        later.changed = [contract.row(first)]
        one.commit(later)
        third = own(one, 2, unique=b"key")
        assert one.commit(accepted(third)).twins == {third.id: Twin(second.id, second.handle)}
        for member in (one, two):
            member.close(0)


def test_servers_that_wait_for_keys_of_each_other_write_all_jobs_again() -> None:
    """Each has a key that a job of the other one had before it ended, and the database does not know of the end."""
    with postgres_pair.Pair(synchronous=False) as pair:
        one, two = (PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name=name)) for name in ("one", "two"))
        one.open()
        two.open()
        before = [own(one, 1, unique=b"a"), own(two, 1, unique=b"b")]
        one.commit(accepted(before[0]))
        two.commit(accepted(before[1]))
        pair.leave_behind()
        one.commit(ended(before[0]))
        two.commit(ended(before[1]))
        after = [own(one, 2, unique=b"b"), own(two, 2, unique=b"a")]
        one.commit(accepted(after[0]))
        two.commit(accepted(after[1]))
        pair.fail_over()
        for store, job in zip((one, two), after, strict=True):
            with pytest.raises(WentBackError):
                store.commit(Batch())
            everything = Batch()
            everything.is_whole, everything.changed = True, [contract.row(job)]
            store.commit(everything)
        assert ids(one) == [job.id for job in after]
        for member in (one, two):
            member.close(0)


def test_a_database_from_before_the_server_joined_gets_all_jobs_again() -> None:
    with postgres_pair.Pair(synchronous=False) as pair:
        first = PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name="first"))
        first.open()
        pair.leave_behind()
        store = PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name="late"))
        store.open()
        store.commit(accepted(own(store, 1)))
        pair.fail_over()
        with pytest.raises(WentBackError):
            store.commit(Batch())
        everything = Batch()
        everything.is_whole, everything.changed = True, [contract.row(own(store, 1))]
        store.commit(everything)
        assert ids(store) == [own(store, 1).id]
        newcomer = PostgresqlStore(pair.url_with(schema="jobs"), member=Member(name="newcomer"))
        newcomer.open()
        assert newcomer.node > store.node
        for member in (newcomer, store, first):
            member.close(0)


def test_only_values_that_were_removed_long_ago_are_forgotten(join: Join, cluster: Cluster, schema: str) -> None:
    store = join("one")
    batch = Batch()
    batch.saved_values = {"old": b"", "new": b"", "kept": b"value"}
    store.commit(batch)
    cluster.query(f"UPDATE {schema}.kept SET saved = saved - interval '2 days' WHERE name <> 'new'")
    quota = Quota(1e9, 100)
    store.prune(0.0, Retention(quota, quota))
    assert store.saved_values() == {"new": b"", "kept": b"value"}


@pytest.mark.parametrize("version", postgres_programs.PEERS)
def test_a_schema_of_another_program_is_refused(clusters: Clusters, version: int) -> None:
    cluster = clusters(version)
    cluster.query("DROP SCHEMA IF EXISTS foreign_tables CASCADE")
    cluster.query("CREATE SCHEMA foreign_tables")
    cluster.query("CREATE TABLE foreign_tables.jobs (id int)")
    with pytest.raises(StoreError, match="tables of another program"):
        PostgresqlStore(cluster.url(schema="foreign_tables")).open()


def test_a_newer_layout_is_refused_if_it_does_not_allow_older_servers(
    join: Join, schema_url: str, cluster: Cluster, schema: str
) -> None:
    join("one")
    cluster.query(f"UPDATE {schema}.meta SET value = 99 WHERE name = 'layout'")
    join("two")
    cluster.query(f"UPDATE {schema}.meta SET value = 99 WHERE name = 'oldest_layout'")
    with pytest.raises(StoreError, match="newer Geartrain"):
        PostgresqlStore(schema_url).open()


class TestKeysOfForegroundJobs:
    """The store has the unique key of a foreground job, and nothing else of it."""

    def test_the_key_is_taken_until_the_job_has_ended(self, join: Join) -> None:
        one, two = join("one"), join("two")
        foreground, background = own(one, 1, unique=b"key"), own(two, 1, unique=b"key")
        one.commit(reserved(foreground))
        twins = two.commit(accepted(background)).twins
        assert {id: twin.handle for id, twin in twins.items()} == {background.id: foreground.handle}
        released = Batch()
        released.removed_jobs = [foreground.id]
        one.commit(released)
        assert not two.commit(accepted(background)).twins
        assert ids(one) == [background.id]

    def test_it_is_no_job(self, join: Join) -> None:
        store = join("one")
        store.commit(reserved(own(store, 1, unique=b"key", payload=b"secret")))
        assert ids(store) == []

    def test_it_is_free_when_its_server_is_gone(self, join: Join) -> None:
        one, two = join("one"), join("two")
        one.commit(reserved(own(one, 1, unique=b"key")))
        one.commit(accepted(own(one, 2)))
        assert two.accuse(seen(two, one))
        assert two.take(100) is not None
        assert ids(two) == [own(one, 2).id]
        assert not two.commit(accepted(own(two, 1, unique=b"key"))).twins

    def test_it_becomes_a_background_job(self, join: Join) -> None:
        store = join("one")
        job = own(store, 1, unique=b"key")
        store.commit(reserved(job))
        changed = Batch()
        changed.changed = [contract.row(job)]
        store.commit(changed)
        assert ids(store) == [job.id]

    def test_a_job_that_is_written_while_it_reserves_its_key_is_a_job(self, join: Join) -> None:
        """As after a failover, when all jobs are written again."""
        one, two = join("one"), join("two")
        job = own(one, 1, unique=b"key")
        job.state = JobState.RESERVING
        changed = Batch()
        changed.changed = [contract.row(job)]
        one.commit(changed)
        assert two.accuse(seen(two, one))
        assert two.take(100) is not None
        assert ids(two) == [job.id]


def reserved(job: Job) -> Batch:
    batch = Batch()
    batch.accepted = [contract.key_row(job)]
    return batch


def test_states_of_jobs_of_all_servers(join: Join) -> None:
    one, two = join("one"), join("two")
    waiting, dead, done = own(one, 1), own(one, 2, state=JobState.DEAD), own(two, 1)
    one.commit(accepted(waiting, dead))
    two.commit(accepted(done))
    two.commit(ended(done))
    assert two.states([waiting.id, dead.id, done.id, 99]) == {
        waiting.id: JobState.QUEUED, dead.id: JobState.DEAD, done.id: JobState.DONE,
    }  # fmt: skip
