"""What was taken from an application is remembered of it, whatever ends the allocation that was asked
back: the confirmation, a stop by the resource manager, the node's removal, the application's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quadriga.core.views import Views
from quadriga.fsm import allocation as allocation_fsm
from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.script import Script

from .preemption_side import ask, filled, preempted

ENDS: dict[str, Callable[[Script], object]] = {
    "confirmed": lambda script: script.confirm(TerminationType.PREEMPTED_BY_SCHEDULER),
    "stopped": lambda script: script.release("low", "n1-3-0"),
    "node removed": lambda script: script.node("n1", NodeInfo.DECOMISSION),
    "application removed": lambda script: script.remove_app("low"),
}


def asked_back() -> Script:
    """One of the four allocations of ``low`` is evicted for ``high``."""
    script = filled()
    script.advance(10)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    return script


def test_2_8_an_application_counts_its_victims() -> None:
    script = asked_back()
    low, high = (script.scheduler.application(name) for name in ("low", "high"))
    assert (low.preempting, low.preempted) == (1, 0)
    assert (high.preempting, high.preempted) == (0, 0)


@pytest.mark.parametrize("end", ENDS)
def test_2_8_a_victim_keeps_its_reason_whatever_ends_it(end: str) -> None:
    script = asked_back()
    low: Any = script.scheduler.application("low")
    taken = low.allocations["n1-3-0"]
    ENDS[end](script)
    assert taken.state == (
        allocation_fsm.PREEMPTED if end == "confirmed" else allocation_fsm.COMPLETED
    )
    assert taken.reason == allocation_fsm.PREEMPTION
    assert taken.message.endswith("to run ask: h")
    assert (low.preempting, low.preempted) == (0, 1)
    partition = script.scheduler.partition()
    views = Views(script.scheduler)
    history = views.application(partition.name, "low")["resourceHistory"]
    assert [each["vcore"] for each in history["preemptedResource"].values()] == [11]  # 1 for 11 s
    assert script.scheduler.check() == []


def test_2_8_the_number_of_victims_outlasts_the_application() -> None:
    script = asked_back()
    script.remove_app("low")
    ended = next(iter(script.scheduler.partition().ended))
    assert (ended.app_id, ended.preempted, ended.reason) == ("low", 1, "application removed")


def test_2_8_an_application_without_victims_counts_none() -> None:
    script = filled()
    low: Any = script.scheduler.application("low")
    script.release("low", "n1-3-0")
    script.node("n1", NodeInfo.DECOMISSION)
    assert (low.preempting, low.preempted) == (0, 0)
