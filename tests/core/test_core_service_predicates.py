"""Predicates of the resource manager, asked through its callback (I36, I37)."""

from __future__ import annotations

from typing import Any

import pytest
from service_side import SECOND, Heard, apps, asks, begin, nodes, placed

from quadriga import si
from quadriga.core import SchedulerService


@pytest.fixture
def manual() -> SchedulerService:
    return SchedulerService(manual=True, clock=lambda: 0)


# -- predicates ------------------------------------------------------------------------------------


class Picky(Heard):
    """Refuses nodes by name; notes what it was asked."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[tuple[str, str, bool]] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked.append((args.allocationKey, args.nodeID, args.allocate))
        return "taint" if args.nodeID in self.refused else None


def test_i36_predicates_decide_about_nodes(manual: SchedulerService) -> None:
    heard = Picky("n1")
    begin(manual, heard, nodes("n1", "n2"), apps("app"), asks("app", "a"))
    manual.step(1)
    assert heard.asked == [("a", "n1", True), ("a", "n2", True)]
    assert placed(heard) == [("a-0", "n2")]


def test_i36_an_ask_that_no_node_may_take_is_tried_again(manual: SchedulerService) -> None:
    heard = Picky("n1", "n2")
    begin(manual, heard, nodes("n1", "n2"), apps("app"), asks("app", "a", "b"))
    manual.step(1)
    assert placed(heard) == []
    heard.refused = ("n1",)
    manual.step(2)
    assert placed(heard) == [("a-0", "n2"), ("b-0", "n2")]


class Careful(Picky):
    """Tells a decision from an explanation."""

    def __init__(self, *refused: str) -> None:
        super().__init__(*refused)
        self.read: list[str] = []

    def refusal(self, args: si.PredicatesArgs) -> str | None:
        self.read.append(args.nodeID)
        return "taint" if args.nodeID in self.refused else None


def test_i36_an_explanation_leads_to_no_decision(manual: SchedulerService) -> None:
    heard = Careful("n1", "n2")
    begin(manual, heard, nodes("n1", "n2"), apps("app"), asks("app", "a"))
    manual.step(1)
    heard.asked.clear()
    told = manual.explain("rm", "default", "app", "a").result()
    assert (heard.asked, sorted(heard.read)) == ([], ["n1", "n2"])
    assert "2 nodes: taint" in told.reasons
    assert [each.text for each in told.checks] == list(told.reasons)


def test_i36_allocate_is_false_for_a_reservation(manual: SchedulerService) -> None:
    heard = Picky()
    begin(manual, heard, nodes("n1", "n2", "n3", vcore=2000), apps("app", "big"))
    manual.update_allocation(asks("app", "a", "b", "c", vcore=1200))
    manual.step(1 * SECOND)
    manual.update_allocation(asks("big", "x", vcore=2000))
    heard.asked.clear()
    manual.step(2 * SECOND)
    manual.step(4 * SECOND)
    assert heard.asked == [("x", "n1", False)]
    node = manual.read(lambda core: core.partition().nodes["n1"])
    assert node.reservation.ask.ask_key == "x"


def test_i36_allocate_is_false_for_a_replacement(manual: SchedulerService) -> None:
    heard = Picky()
    begin(manual, heard, nodes("n1"), apps("app", gang=1000))
    manual.update_allocation(asks("app", "p", group="g", placeholder=True))
    manual.step(1)
    manual.update_allocation(asks("app", "r", group="g"))
    heard.asked.clear()
    manual.step(2)
    assert heard.asked == [("r", "n1", False)]


def test_i36_a_manager_without_predicates_is_not_asked(manual: SchedulerService) -> None:
    class Bare:
        def update_node(self, response: si.NodeResponse) -> None: ...
        def update_application(self, response: si.ApplicationResponse) -> None: ...
        def update_allocation(self, response: si.AllocationResponse) -> None:
            self.placed = [n.nodeID for n in response.new]

    bare: Any = Bare()
    begin(manual, bare, nodes("n1"), apps("app"), asks("app", "a"))
    manual.step(1)
    assert bare.placed == ["n1"]


def raises(service: SchedulerService) -> None:
    raise OSError("no answer")


def removes_the_node(service: SchedulerService) -> None:
    service.update_node(nodes("n1", action=si.NodeInfo.DECOMISSION))


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [(raises, "no answer"), (removes_the_node, "a predicate cannot send requests")],
)
def test_i36_predicates_that_raise_or_send_requests_say_no(
    wrong: Any, said: str, threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: Any = Heard()
    with SchedulerService(manual=not threaded, clock=lambda: 0) as service:
        heard.predicates = lambda args: wrong(service) if args.nodeID == "n1" else None
        begin(service, heard, nodes("n1", "n2"), apps("app"), asks("app", "a"))
        if not threaded:
            service.step(1)
        heard.wait_for(lambda messages: bool(placed(heard)))
        assert service.read(lambda core: sorted(core.partition().nodes)) == ["n1", "n2"]
        assert service.read(lambda core: core.check()) == []
    assert placed(heard) == [("a-0", "n2")]
    assert said in caplog.text


def test_i37_x24_the_null_callback_takes_the_first_try() -> None:
    args = si.PreemptionPredicatesArgs(
        allocationKey="a", nodeID="n1", preemptAllocationKeys=["x", "y", "z"], startIndex=2
    )
    answer = si.NullCallback().preemption_predicates(args)
    assert answer == si.PreemptionPredicatesResponse(success=True, index=2)
