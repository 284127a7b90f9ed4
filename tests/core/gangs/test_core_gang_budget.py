"""The budget for capacity that is kept idle for gangs (Q10), and what is not kept at all."""

from typing import Any

import pytest
from core_world import news, queues, scripted

from quadriga.core import Options
from quadriga.core.model.gather_budget import GATHERINGS, WINDOW, GatherBudget
from quadriga.sim.scripted.script import Script

SECOND = 1_000_000_000
HOUR = 3600

#: seven days of the whole partition at 2 %, in hours
WHOLE = 7 * 24 * 0.02


def world(nodes: int, **properties: str) -> Script:
    """Nodes of ten vcores."""
    properties = {"gang.admission": "atomic", **properties}
    root = ", ".join(f"{name}: '{value}'" for name, value in properties.items())
    config = queues("default", root=f"properties: {{{root}}}")
    names = tuple(f"n{at}" for at in range(nodes))
    return scripted(config, nodes=names, options=Options(journal_size=None), vcore=10)


def single(script: Script, name: str, vcore: int, **more: Any) -> list[str]:
    script.app(name, queue=more.pop("queue", "default"), **more)
    script.ask(name, "a", vcore=vcore)
    return news(script.schedule())


def gang(script: Script, name: str, members: int, vcore: int = 10, **more: Any) -> None:
    script.app(name, gang={"vcore": members * vcore}, **more)
    keys = [f"{name}-p{at}" for at in range(members)]
    script.ask(name, *keys, group="g", placeholder=True, vcore=vcore)
    script.schedule()


def budget(script: Script) -> GatherBudget:
    (partition,) = script.scheduler.partitions()
    return partition.gather_budget


def gatherings(script: Script) -> dict[str, int]:
    counts = budget(script).counts
    return {each: counts[each] for each in GATHERINGS if counts[each]}


def kept(script: Script, name: str) -> int:
    """The nodes on which the start of the gang is planned."""
    plan = script.scheduler.partition().node_index.planned
    return len(plan.needs) if plan is not None and plan.app.app_id == name else 0


def hours_kept(script: Script) -> float:
    """The hours of the whole partition that were kept idle."""
    return budget(script).kept_idle / SECOND / HOUR


def wait(script: Script, hours: float) -> None:
    script.advance(round(hours * HOUR))
    script.schedule()


def test_q10_a_node_that_services_hold_for_ever_is_not_kept() -> None:
    """Services hold six of ten vcores of each node. A gang that fits the empty cluster has to wait for
    them, and keeps nothing from jobs of one vcore, for 350 hours."""
    script = world(10)
    for at in range(10):
        assert single(script, f"service{at}", 6)
    gang(script, "g", 10)
    for hour in range(400):
        wait(script, 1)
        name = f"small{hour}"
        assert single(script, name, 1), f"after {hour} h"
        script.release(name, "a-0")
        assert not kept(script, "g")
    assert not gatherings(script)


def test_q10_services_that_are_young_are_kept_for_the_patience_at_most() -> None:
    """Nobody knows yet that they have no end. The gang gains nothing, gives up and rests as long."""
    script = world(10, **{"gang.gather.after": "1h"})
    for at in range(10):
        assert single(script, f"service{at}", 6)
    gang(script, "g", 10)
    wait(script, 1)
    assert kept(script, "g") == 10
    assert not single(script, "s", 1)
    wait(script, 1)
    assert not kept(script, "g")
    assert single(script, "t", 1)
    assert gatherings(script) == {"begun": 1, "given up": 1}
    wait(script, 0.6)
    assert not kept(script, "g")
    script.release("t", "a-0")
    wait(script, 0.6)
    assert kept(script, "g")


@pytest.mark.parametrize(
    ("told", "keeps"), [(f"{3 * 24 * HOUR}", True), (f"{20 * 24 * HOUR}", False)], ids=str
)
def test_q10_what_is_to_run_beyond_the_window_is_not_waited_for(told: str, keeps: bool) -> None:
    script = world(2, **{"gang.gather.after": "48h"})
    for name in "ab":
        assert single(script, name, 6, tags={"expected.runtime": told})
    gang(script, "g", 2)
    wait(script, 48)
    assert bool(kept(script, "g")) is keeps


def test_q10_what_kept_nodes_have_free_is_charged() -> None:
    """Two nodes of four: eight of forty vcores, then eighteen, are kept for an hour each."""
    script = world(4, **{"gang.gather.after": "1h", "gang.gather.patience": "3h"})
    for name in "abcd":
        runs = HOUR * (4 if name in "ab" else 240)
        tags = {"expected.runtime": f"{runs}"}
        assert single(script, name, 6 if name in "ab" else 10, tags=tags)
    gang(script, "g", 2)
    wait(script, 1)
    assert kept(script, "g") == 2
    assert hours_kept(script) == 0
    wait(script, 1)
    assert hours_kept(script) == pytest.approx(8 / 40)
    script.release("a", "a-0")
    wait(script, 1)
    assert hours_kept(script) == pytest.approx(22 / 40)
    assert budget(script).left() / SECOND / HOUR == pytest.approx(WHOLE - 22 / 40)
    script.release("b", "a-0")
    script.schedule()
    assert len(script.scheduler.application("g").placeholders) == 2
    wait(script, 5)
    assert hours_kept(script) == pytest.approx(22 / 40)
    assert gatherings(script) == {"begun": 1, "started": 1}


def test_q10_what_others_have_left_is_charged_less() -> None:
    """Half of the memory is free everywhere: what is kept of it counts half, and no more than the vcores."""
    script = scripted(
        queues("default", root="properties: {gang.gather.after: 1h, gang.gather.patience: 3h}"),
        nodes=("n0", "n1"),
        options=Options(journal_size=None),
        vcore=10,
        memory=100,
    )
    for name in "ab":
        script.app(name)
        script.ask(name, "a", vcore=10, memory=50)
        assert news(script.schedule())
    script.app("g", gang={"vcore": 10, "memory": 100})
    script.ask("g", "p", group="g", placeholder=True, vcore=10, memory=100)
    script.schedule()
    wait(script, 1)
    assert kept(script, "g") == 1
    wait(script, 1)
    # 50 of 200 are kept, and 150 are used or kept
    assert hours_kept(script) == pytest.approx(50 / 200 * 150 / 200)


def spender(patience: str = "10m") -> Script:
    """A gang of nine has kept up to eight tenths of the cluster idle until the budget is spent."""
    script = world(
        10,
        **{"gang.gather.after": "1h", "gang.gather.patience": patience, "gang.gather.budget": "1%"},
    )
    for at in range(10):
        assert single(script, f"s{at}", 10)
    gang(script, "g", 9)
    wait(script, 1)
    for at in range(8):
        script.release(f"s{at}", "a-0")
        wait(script, 0.1)
    return script


def test_q10_a_spent_budget_ends_the_gathering_and_refuses_the_next() -> None:
    script = spender("4h")
    assert kept(script, "g") == 9
    gang(script, "h", 9)
    wait(script, 4)
    wait(script, 4)
    assert hours_kept(script) > WHOLE / 2
    assert kept(script, "g") == kept(script, "h") == 0
    assert single(script, "t", 10)
    wait(script, 24)
    assert gatherings(script) == {"begun": 1, "given up": 1, "refused": 2}


def test_q10_without_patience_a_gang_gives_up_when_the_budget_is_spent() -> None:
    script = spender("0s")
    began = hours_kept(script)
    while kept(script, "g"):
        wait(script, 0.1)
    # it had a sixth of an hour to gain something, and may have been looked at just before
    assert WHOLE / 2 < hours_kept(script) < WHOLE / 2 + 0.8 * 2 / 6
    assert began < WHOLE / 2


def test_q10_what_was_spent_is_forgotten_after_the_window() -> None:
    """The budget itself lets the gang gather again: nothing happens when it does."""
    script = spender("0s")
    while kept(script, "g"):
        wait(script, 0.1)
    for at in range(10):  # others keep the gang waiting
        if at >= 8:
            script.release(f"s{at}", "a-0")
        assert single(script, f"t{at}", 10, tags={"expected.runtime": f"{9 * 24 * HOUR}"})
    gave_back = script.now
    while not kept(script, "g"):
        wait(script, 1)
        assert script.now < gave_back + WINDOW + 5 * HOUR * SECOND
    assert script.now > gave_back + WINDOW // 2
    assert budget(script).counts["begun"] == 2


@pytest.mark.parametrize("others", [{}, {"expected.runtime": f"{5 * HOUR}"}], ids=["", "told"])
@pytest.mark.parametrize("own", [{}, {"expected.runtime": f"{HOUR}"}], ids=["", "itself told"])
def test_q10_a_spent_budget_is_larger_where_all_run_times_are_told(
    own: dict[str, str], others: dict[str, str]
) -> None:
    script = spender("0s")
    while kept(script, "g"):
        wait(script, 0.1)
    for at in range(10):
        if at >= 8:
            script.release(f"s{at}", "a-0")
        assert single(script, f"t{at}", 10, tags=others)
    gang(script, "h", 9, tags=own)
    wait(script, 1)
    assert bool(kept(script, "h")) is bool(own and others)
    assert not kept(script, "g")
    assert gatherings(script)["refused"] == 2 - kept(script, "h") // 9


def test_q10_a_budget_of_nothing_is_never_gathering() -> None:
    script = world(2, **{"gang.gather.after": "0s", "gang.gather.budget": "0%"})
    for name in "ab":
        assert single(script, name, 6)
    gang(script, "g", 2)
    wait(script, 1000)
    assert not kept(script, "g")
    assert gatherings(script) == {"refused": 1}
