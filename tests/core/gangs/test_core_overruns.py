"""What was lent a node until a planned start and overran is preempted, by option (``gang.gather.preempt``)."""

from typing import Any

import pytest
from core_world import news, queues, scripted
from event_lines import RecordReader
from preemption_side import NEVER, PREEMPTED, preempted

from quadriga.core import Options
from quadriga.core.model.gather_budget import LENDING
from quadriga.si import TerminationType
from quadriga.sim.scripted.script import Script
from quadriga.web.pages.data.application import application

REPLACED = TerminationType.PLACEHOLDER_REPLACED
OPTION = "gang.gather.preempt: overrun"


def cluster(
    option: str = OPTION,
    others: str = "",
    partition: str = "",
    *,
    willing: bool = True,
    width: tuple[int, int] = (4, 4),
) -> Script:
    """Two nodes of four vcores: ``long`` has all of n1 for 1,000 s, and the start of ``wide`` is planned when it ends.
    ``late`` has n2 until then, as it tells that it runs for 500 s."""
    own = f"properties: {{{option}}}" if option else ""
    config = queues("a", "b", a=own, b=others, root="properties: {gang.gather.after: 60s}")
    config = config.replace("name: default", f"name: default{partition}")
    script = scripted(
        config,
        nodes=("n1", "n2"),
        options=Options(journal_size=None, gang_admission="atomic"),
        vcore=4,
    )
    submit(script, "long", 4, 1000, node="n1")
    wide = {"gang.placeholders": "none", "expected.runtime": "10"}
    script.app("wide", "root.a", gang={"vcore": sum(width)}, tags=wide)
    for at, vcore in enumerate(width):
        script.ask("wide", f"p{at}", preempt=(True, willing), vcore=vcore)
    assert news(script.schedule()) == []
    script.advance(60)
    script.schedule()
    assert budget(script) == [0, 0, 0]
    return script


def submit(
    script: Script, name: str, vcore: int, told: int, *, queue: str = "b", node: str, **ask: Any
) -> None:
    script.app(name, f"root.{queue}", tags={"expected.runtime": f"{told}"})
    script.ask(name, "x", vcore=vcore, **ask)
    assert news(script.schedule()) == [f"{name}/x-0 on {node}"]


def budget(script: Script) -> list[int]:
    counts = script.scheduler.partition().gather_budget.counts
    return [counts[each] for each in LENDING]


def at(script: Script, seconds: int) -> list[str]:
    """What is preempted at this time."""
    script.advance(seconds - script.scheduler.now // 10**9)
    return preempted(script.schedule())


def test_q9_what_overran_is_preempted_when_the_gang_could_start_without() -> None:
    """Neither before a minute is over nor while ``long`` runs."""
    script = cluster()
    records = RecordReader(script)
    submit(script, "late", 3, 512, node="n2")
    submit(script, "brief", 1, 64, node="n2")
    assert at(script, 100) == []
    script.release("brief", "x-0")
    script.release("long", "x-0")
    assert at(script, 60 + 512 + 59) == []
    assert "overrun" not in script.scheduler.explain("wide", "p0").verdict
    assert at(script, 60 + 512 + 60) == ["late/x-0"]
    assert budget(script) == [2, 0, 1]
    told = script.scheduler.explain("wide", "p0")
    assert (
        told.verdict == "Others have been preempted for it: it gets its place when they are gone."
    )
    assert "preempted what overran on the nodes of its planned start" in str(told)
    said = "Gang preempts 1 allocations that overran on the nodes of its planned start: late/x-0"
    assert f"APP NONE wide ({said})" in records.new_lines("APP NONE wide")
    submit_none(script, "other")
    assert news(script.confirm(PREEMPTED) + script.schedule()) == [
        "wide/p0-0 on n1",
        "wide/p1-0 on n2",
    ]
    assert budget(script) == [2, 1, 1]
    assert not script.scheduler.check()


def submit_none(script: Script, name: str) -> None:
    """The room that victims leave is the gang's."""
    script.app(name, "root.b", tags={"expected.runtime": "1"})
    script.ask(name, "x", vcore=1)
    assert news(script.schedule()) == []


def test_q9_what_still_runs_elsewhere_keeps_what_overran_from_being_preempted() -> None:
    script = cluster()
    submit(script, "late", 3, 512, node="n2")
    assert at(script, 700) == []
    said = script.scheduler.explain("wide", "p0").verdict
    assert "1 of those that were lent its nodes has overrun and is preempted when it could" in said
    waiting = application(script.scheduler, "default", "wide")["waiting"]
    assert waiting is not None
    assert waiting["plannedStart"]["overran"] == 1
    script.release("long", "x-0")
    assert preempted(script.schedule()) == ["late/x-0"]


REFUSED: dict[str, dict[str, Any]] = {
    "by default": {"option": ""},
    "without preemption in the partition": {"partition": f", {NEVER}"},
    "a queue that loses nothing": {"others": "properties: {preemption.policy: disabled}"},
    "the guarantee of its queue": {"others": "resources: {guaranteed: {vcore: 4}}"},
    "a fence around the queue of the gang": {"option": f"{OPTION}, preemption.policy: fence"},
    "members that preempt nobody": {"willing": False},
    "a higher priority": {"priority": 1},
    "a queue that keeps who opted out": {
        "others": "properties: {preemption.optout: strict}",
        "preempt": (False, False),
    },
}


@pytest.mark.parametrize("why", REFUSED)
def test_q9_what_overran_stays_by_the_rules_of_other_preemption(why: str) -> None:
    case = dict(REFUSED[why])
    asks = {name: case.pop(name) for name in ("priority", "preempt") if name in case}
    script = cluster(**case)
    submit(script, "late", 3, 512, node="n2", **asks)
    script.release("long", "x-0")
    assert at(script, 700) == []
    script.release("late", "x-0")
    assert len(news(script.schedule())) == 2
    assert budget(script) == [1, 1, 0]


def test_q9_jobs_of_the_gangs_own_queue_are_preempted_and_only_those_in_the_way() -> None:
    """Of three that overran on n2, the one that n1 has room for, and no more, is needed by a gang of seven vcores."""
    script = cluster(width=(4, 3))
    for name in ("one", "two", "three"):
        submit(script, name, 1, 512, node="n2", queue="a")
    script.release("long", "x-0")
    assert at(script, 700) == ["three/x-0", "two/x-0"]
    assert budget(script) == [3, 0, 2]


def test_q9_a_member_that_took_over_a_lent_placeholder_is_preempted_and_no_placeholder_is() -> None:
    script = cluster()
    tags = {"expected.runtime": "512"}
    script.app("lent", "root.b", gang={"vcore": 3}, tags=tags)
    script.ask("lent", "y0", "y1", "y2", group="g", placeholder=True, vcore=1)
    assert len(news(script.schedule())) == 3
    script.ask("lent", "r0", "r1", group="g", vcore=1)
    script.schedule()
    script.confirm(REPLACED)
    script.release("long", "x-0")
    assert at(script, 700) == []
    script.ask("lent", "r2", group="g", vcore=1)
    script.schedule()
    script.confirm(REPLACED)
    assert at(script, 700 + 512) == []
    assert len(at(script, 700 + 512 + 60)) == 3
    assert budget(script) == [3, 0, 3]


def test_q9_what_predicates_would_refuse_the_gang_preempts_nothing() -> None:
    script = cluster()
    submit(script, "late", 3, 512, node="n2")
    script.release("long", "x-0")
    script.scheduler.set_predicate("rm", lambda key, node, _: "no" if node == "n2" else None)
    assert at(script, 700) == []
    script.scheduler.set_predicate("rm", None)
    assert at(script, 1500) == ["late/x-0"]
