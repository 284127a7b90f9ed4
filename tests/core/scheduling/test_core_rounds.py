"""What a round is (5.2), the order of reservations (5.8), and who is left alone for a while (2.2.2)."""

from collections.abc import Iterable

import pytest
from core_steps import later, on_nodes, partitions, run, serve, submit
from core_world import queues
from preemption_side import news, preempted, reserved
from service_side import apps, asks, nodes, of, register

from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.core.runtime.outbox import Output
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import ONE_QUEUE, Script


def full(
    *nodes: str, size: int = 2, config: str = ONE_QUEUE, queue: str = "root.default"
) -> Script:
    """Nodes filled with single vcores of ``other``; any number may be reserved, and root has room."""
    script = Script(config, options=Options(journal_size=None, bound_reservations=False))
    script.node("spare", si.NodeInfo.CREATE_DRAIN, vcore=100)
    script.app("other", queue)
    for node in nodes:
        script.node(node, vcore=size)
        serve(script, "other", *(f"{node}-{n}" for n in range(size)), priority=9, vcore=1)
    return script


def waits(script: Script, queue: str = "root.default") -> str:
    """Application ``app`` waits for a whole node; the one that is reserved for it."""
    submit(script, "app", "big", queue=queue, vcore=2)
    later(script, 2)
    (kept,) = reserved(script)
    return kept


def empty(script: Script, *names: str) -> None:
    for name in names:
        for number in range(2):
            script.release("other", f"{name}-{number}-0")


# -- a round ---------------------------------------------------------------------------------------


def test_5_2_or_one_reservation() -> None:
    """The scheduler says whether the limit ended it."""
    script = full("n1", "n2", "n3")
    submit(script, "app", *"abc", vcore=1)
    script.advance(2)
    for done in ("a", "ab"):
        assert script.schedule(1) == []
        assert sorted(reserved(script).values()) == [f"app/{key}" for key in done]
        assert script.scheduler.unfinished
    script.schedule(2)
    assert len(reserved(script)) == 3
    assert not script.scheduler.unfinished


def test_5_2_preemption_on_a_required_node_ends_no_round() -> None:
    """It happens on the way to the others, as in the reference."""
    script = full("n1")
    submit(script, "app", "d", priority=9, tags={TAG_REQUIRED_NODE: "n1"}, vcore=1)
    script.schedule(1)
    script.app("more")
    script.node("n2", vcore=1)
    script.ask("more", "m", vcore=1)
    heard = script.schedule(1)
    assert (preempted(heard), news(heard)) == (["other/n1-1-0"], ["more/m-0 on n2"])


def test_each_partition_has_a_round_of_its_own() -> None:
    script = on_nodes(partitions("default", "second"), n1=4)
    script.node("n2", attributes={"si/node-partition": "second"}, vcore=4)
    script.app("a")
    script.app("b", partition="second")
    script.ask("a", "x", "y", vcore=1)
    script.ask("b", "x", "y", partition="second", vcore=1)
    assert news(script.schedule(1)) == ["a/x-0 on n1", "b/x-0 on n2"]


def crowd(names: Iterable[str], pods: int) -> tuple[Scheduler, dict[str, list[str]]]:
    """Some resource managers with as many asks each, and what they will be told."""
    scheduler = Scheduler()
    keys = [f"{at}" for at in range(pods)]
    for name in names:
        scheduler.apply(register(name), 0)
        for message in (nodes("n", vcore=9_999), apps("app"), asks("app", *keys, vcore=1)):
            scheduler.apply(of(name, message), 0)
    return scheduler, {name: [] for name in names}


def allocations(outputs: list[Output]) -> list[tuple[str, si.AllocationResponse]]:
    return [(rm_id, said) for rm_id, said in outputs if isinstance(said, si.AllocationResponse)]


def test_with_a_budget_resource_managers_take_turns() -> None:
    """Nobody waits until another has got all it asked for, and everybody gets what it would alone."""
    names, pods = ("one", "three", "two"), 150
    scheduler, told = crowd(names, pods)
    served = []
    while not served or scheduler.unfinished:
        outputs = allocations(scheduler.schedule(0, budget=100))
        assert len(outputs) <= 100
        served.append({rm_id for rm_id, _ in outputs})
        for rm_id, message in outputs:
            told[rm_id] += [new.UUID for new in message.new]
    assert served[:3] == [{"one", "three"}, {"two", "one"}, {"three", "two"}]
    assert told == {name: [f"{at}-0" for at in range(pods)] for name in names}
    assert scheduler.check() == []


def test_a_budget_is_all_for_one_resource_manager_alone() -> None:
    scheduler, _ = crowd(["only"], 300)
    assert len(allocations(scheduler.schedule(0, budget=200))) == 200
    assert scheduler.unfinished


# -- those with reservations -----------------------------------------------------------------------


def test_5_8_by_the_order_of_submission_whatever_the_priorities() -> None:
    """Two applications of one queue may both use the same node: the older one does."""
    script = full("n1", "n2", "n3")
    submit(script, "old", "o", vcore=2)
    submit(script, "new", "n", priority=5, vcore=2)
    later(script, 2)
    (left,) = {"n1", "n2", "n3"} - set(reserved(script))
    empty(script, left)
    assert news(script.schedule()) == [f"old/o-0 on {left}"]


def test_5_6_the_next_ask_in_order_reserves_also_across_shapes() -> None:
    """The first of one shape has reserved already; the next in order is of the other."""
    script = full("n1", "n2", "n3")
    submit(script, "app", "a1", vcore=1)
    script.ask("app", "b1", vcore=2)
    script.ask("app", "a2", vcore=1)
    script.advance(2)
    for expected in (["a1"], ["a1", "b1"], ["a1", "a2", "b1"]):
        script.schedule(1)
        assert sorted(key.partition("/")[2] for key in reserved(script).values()) == expected


def test_5_8_predicates_that_refused_the_reserved_node_are_asked_again() -> None:
    script = full("n1")
    waits(script)
    answer: list[str | None] = ["taint"]
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: answer[0])
    empty(script, "n1")
    assert script.schedule() == []
    answer[0] = None
    assert news(script.schedule()) == ["app/big-0 on n1"]


BACKOFF = "application.unschedasks.backoff: '3', application.unschedasks.backoff.delay: 10s"
CONFIG = queues("a", "b", a=f"properties: {{{BACKOFF}}}")


def waiting(asks: int, queue: str = "root.a") -> Script:
    script = on_nodes(CONFIG, n1=2)
    run(script, "app", *(f"k{n}" for n in range(asks)), queue=queue, vcore=4)
    return script


def reasons(script: Script, key: str = "k0") -> str:
    return "; ".join(script.scheduler.explain("app", key).reasons)


def test_2_2_2_three_asks_that_find_no_place_are_enough() -> None:
    script = waiting(3)
    app = script.scheduler.application("app")
    assert app.backoff_until == 10 * 10**9
    assert "left alone for 10 s" in reasons(script)
    script.node("n2", vcore=8)
    assert script.schedule() == []
    assert later(script, 9.9) == []
    script.advance(0.1)
    assert app.backoff_until == 0
    assert news(script.schedule()) == ["app/k0-0 on n2", "app/k1-0 on n2"]


@pytest.mark.parametrize(("asks", "queue"), [(2, "root.a"), (9, "root.b")])
def test_2_2_2_two_are_not_nor_are_more_in_other_queues(asks: int, queue: str) -> None:
    script = waiting(asks, queue)
    assert script.scheduler.application("app").backoff_until == 0
    script.node("n2", vcore=8)
    assert news(script.schedule()) == ["app/k0-0 on n2", "app/k1-0 on n2"]


def test_2_2_2_asks_behind_them_are_not_looked_at_and_asks_before_them_are() -> None:
    script = on_nodes(CONFIG, n1=3)
    submit(script, "app", "before", queue="root.a", vcore=1)
    script.ask("app", "k0", "k1", "k2", vcore=4)
    script.ask("app", "small", vcore=1)
    submit(script, "another", "x", queue="root.a", vcore=1)
    assert news(script.schedule()) == ["app/before-0 on n1", "another/x-0 on n1"]
    assert later(script, 10) == []
    assert script.scheduler.application("app").backoff_until == 20 * 10**9
