"""Crews: which workers share one, in which order functions are served, and which queues are listed."""

from geartrain.engine.engine import Engine
from geartrain.model import Priority
from tests.unit.engine.recording import NOW, claim, hire, payloads


def fill(engine: Engine, *jobs: str) -> None:
    """Submit background jobs: 'f1' is a job of function f; 'f1!' is urgent, 'f1-' can wait."""
    marks = {"!": Priority.HIGH, "-": Priority.LOW}
    for text in jobs:
        priority = marks.get(text[-1], Priority.NORMAL)
        engine.submit(text[0].encode(), payload=text.encode(), priority=priority, background=True)


def test_workers_with_the_same_functions_are_one_crew_whatever_the_order(engine: Engine) -> None:
    one, two, three = hire(engine, b"f", b"g"), hire(engine, b"g", b"f"), hire(engine, b"f")
    for worker in (one, two, three):
        engine.sleep(worker)
    assert one.crew is two.crew
    assert one.crew is not three.crew
    assert set(engine.crews) == {frozenset({b"f", b"g"}), frozenset({b"f"})}
    assert one.crew is not None
    assert one.crew.size == 2
    assert list(one.crew.idle) == [one, two]


def test_a_crew_exists_from_the_first_claim_to_the_last_worker(engine: Engine) -> None:
    one, two = hire(engine, b"f"), hire(engine, b"f")
    assert engine.crews == {}
    engine.claim(one)
    engine.sleep(two)
    assert len(engine.crews) == 1
    engine.remove_worker(one)
    assert len(engine.crews) == 1
    engine.remove_worker(two)
    assert engine.crews == {}
    function = engine.functions[b"f"]
    assert [*function.idle_crews, *(entry for queue in function.queues for entry in queue.parked)] == []


def test_a_worker_that_changes_its_functions_has_a_crew_of_its_own(engine: Engine) -> None:
    one, two = hire(engine, b"f", b"g"), hire(engine, b"f", b"g")
    engine.claim(one)
    engine.claim(two)
    shared = one.crew
    engine.register(one, b"h")
    own = one.crew
    assert own is not None
    assert (own is not shared, own.size, two.crew is shared) == (True, 1, True)
    engine.unregister(one, b"h")
    assert one.crew is own, "it does not go back to the crew that has the same functions"
    engine.register(two, b"h")
    assert two.crew is shared, "the last worker of a crew keeps it"
    assert engine.crews == {}


def test_a_change_touches_one_function_of_the_own_crew(engine: Engine) -> None:
    worker = hire(engine, *(b"%d" % number for number in range(100)))
    engine.claim(worker)
    assert worker.crew is not None
    before = dict(worker.crew.functions)
    for _ in range(3):
        engine.register(worker, b"f")
        engine.claim(worker)
        engine.unregister(worker, b"f")
        engine.claim(worker)
    assert worker.crew.functions == before, "the same objects: they were not built again"


def test_a_function_that_is_added_later_takes_its_turn_after_the_others(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.claim(worker)
    fill(engine, "f1", "f2", "g1", "g2", "h1", "h2")
    engine.register(worker, b"h")
    assert payloads(engine, worker) == [b"f1", b"g1", b"h1", b"f2", b"g2", b"h2"]


def test_an_idle_worker_that_adds_a_function_with_jobs_is_woken(engine: Engine) -> None:
    worker = hire(engine, b"f", asleep=True)
    fill(engine, "g1")
    engine.register(worker, b"g")
    assert not worker.idle
    assert claim(engine, worker).payload == b"g1"


def test_a_function_that_is_removed_from_a_crew_is_not_served(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.claim(worker)
    fill(engine, "f1", "g1", "g2-")
    engine.unregister(worker, b"g")
    assert payloads(engine, worker) == [b"f1"]


def test_within_a_function_first_come_first_served(engine: Engine) -> None:
    fill(engine, "f1", "f2", "f3")
    assert payloads(engine, hire(engine, b"f")) == [b"f1", b"f2", b"f3"]


def test_within_a_priority_the_functions_take_turns(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g", b"h")
    engine.claim(worker)
    fill(engine, "f1", "f2", "f3", "g1", "h1", "h2")
    assert payloads(engine, worker) == [b"f1", b"g1", b"h1", b"f2", b"h2", b"f3"]


def test_priority_is_global_over_the_functions_of_a_worker(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.claim(worker)
    fill(engine, "f1-", "f2", "g1-", "g2!", "f3!", "g3")
    assert payloads(engine, worker) == [b"g2!", b"f3!", b"f2", b"g3", b"f1-", b"g1-"]


def test_a_new_crew_lists_queues_that_have_jobs(engine: Engine) -> None:
    fill(engine, "f1-", "g1", "h1!", "f2")
    assert payloads(engine, hire(engine, b"f", b"g", b"h")) == [b"h1!", b"g1", b"f2", b"f1-"]


def test_the_turns_of_a_new_crew_begin_with_the_function_registered_last(engine: Engine) -> None:
    fill(engine, "f1", "f2", "g1", "g2", "h1", "h2")
    assert payloads(engine, hire(engine, b"f", b"g", b"h")) == [b"h1", b"g1", b"f1", b"h2", b"g2", b"f2"]


def test_the_workers_of_a_crew_share_the_order_of_functions(engine: Engine) -> None:
    one, two = hire(engine, b"f", b"g"), hire(engine, b"g", b"f")
    engine.claim(one)
    fill(engine, "f1", "f2", "g1", "g2")
    order = [claim(engine, worker).payload for worker in (one, two, one, two)]
    assert order == [b"f1", b"g1", b"f2", b"g2"]


def test_every_crew_has_its_own_order_of_functions(engine: Engine) -> None:
    both, all_three = hire(engine, b"f", b"g"), hire(engine, b"f", b"g", b"h")
    engine.claim(both)
    engine.claim(all_three)
    fill(engine, "f1", "f2", "f3", "g1", "g2", "h1")
    assert claim(engine, both).payload == b"f1"
    assert claim(engine, all_three).payload == b"f2"
    assert claim(engine, both).payload == b"g1"
    assert claim(engine, all_three).payload == b"g2"
    assert claim(engine, all_three).payload == b"h1"
    assert claim(engine, both).payload == b"f3"


def test_a_queue_that_another_crew_emptied_is_parked_and_unparked(engine: Engine) -> None:
    both, other = hire(engine, b"f", b"g"), hire(engine, b"f")
    engine.claim(both)
    fill(engine, "f1", "g1")
    assert claim(engine, other).payload == b"f1"
    assert claim(engine, both).payload == b"g1"
    assert engine.claim(both) is None
    fill(engine, "f2")
    assert claim(engine, both).payload == b"f2"


def test_functions_with_jobs_alternate(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    engine.claim(worker)
    fill(engine, "f1", "g1", "f2", "f3")
    assert claim(engine, worker).payload == b"f1"
    fill(engine, "f4")
    assert claim(engine, worker).payload == b"g1"
    fill(engine, "g2")
    assert payloads(engine, worker) == [b"f2", b"g2", b"f3", b"f4"]


def test_many_jobs_of_one_function_do_not_starve_another(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    fill(engine, *["f"] * 50)
    claim(engine, worker)
    fill(engine, "g1")
    assert b"g1" in [claim(engine, worker).payload for _ in range(2)]


def test_a_paused_function_is_parked_until_it_is_resumed(engine: Engine) -> None:
    worker = hire(engine, b"f", b"g")
    fill(engine, "f1", "f2-", "g1")
    engine.pause(b"f")
    assert payloads(engine, worker) == [b"g1"]
    fill(engine, "f3!")
    assert engine.claim(worker) is None
    engine.resume(b"f")
    assert payloads(engine, worker) == [b"f3!", b"f1", b"f2-"]


def test_has_work_agrees_with_next_ready(engine: Engine) -> None:
    worker, other = hire(engine, b"f", b"g"), hire(engine, b"f")
    engine.claim(worker)
    crew = worker.crew
    assert crew is not None
    assert not crew.has_work()
    fill(engine, "f1-")
    assert crew.has_work()
    claim(engine, other)
    assert not crew.has_work()
    assert crew.next_ready() is None


def test_last_claim_at_is_the_time_of_the_last_assignment(engine: Engine) -> None:
    worker = hire(engine, b"f")
    assert engine.claim(worker) is None
    assert worker.crew is not None
    assert worker.crew.last_claim_at == 0.0
    fill(engine, "f1")
    engine.now = NOW + 7
    claim(engine, worker)
    assert worker.crew.last_claim_at == NOW + 7
