"""The resource manager's part in a preemption: predicates and preemption predicates (I37, X24)."""

from __future__ import annotations

from collections.abc import Callable

from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.si import (
    AllocationResponse,
    NullCallback,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    RegisterResourceManagerRequest,
)
from quadriga.sim.script import Script

from .preemption_side import TWO_QUEUES, ask, filled, news, preempted, reserved

Asked = list[tuple[str, str, list[str], int]]


def answering(script: Script, answer: Callable[[str, list[str], int], int | None]) -> Asked:
    """Answers of the resource manager by node, victims and start index; returns its questions."""
    asked: Asked = []

    def predicate(key: str, node: str, victims: list[str], start: int) -> int | None:
        asked.append((key, node, victims, start))
        return answer(node, victims, start)

    script.scheduler.set_preemption_predicate(script.rm_id, predicate)
    return asked


def high(script: Script, vcore: int = 1) -> list[str]:
    ask(script, "high", "h", vcore=vcore)
    script.advance(1)
    return preempted(script.schedule())


def test_i37_the_question_has_all_victims_and_the_start_index() -> None:
    script = filled()
    asked = answering(script, lambda node, victims, start: start)
    assert high(script) == ["low/n1-3-0"]
    assert asked == [("h", "n1", ["n1-3", "n1-2"], 0)]


def test_i37_it_may_require_more_victims() -> None:
    script = filled()
    answering(script, lambda node, victims, start: start + 1)
    assert high(script) == ["low/n1-3-0", "low/n1-2-0"]


def test_i37_it_may_refuse_a_node() -> None:
    script = filled(nodes=2)
    asked = answering(script, lambda node, victims, start: None if node == "n1" else start)
    assert high(script) == ["low/n2-3-0"]
    assert reserved(script) == {"n2": "high/h"}
    assert [node for _, node, _, _ in asked] == ["n1", "n2"]


def test_i37_it_may_refuse_them_all() -> None:
    script = filled(nodes=2)
    answering(script, lambda node, victims, start: None)
    assert high(script) == []


def test_i37_an_index_that_does_not_exist_is_a_refusal() -> None:
    script = filled()
    answering(script, lambda node, victims, start: 17)
    assert high(script) == []


def test_5_9_ten_nodes_at_a_time_and_no_more_after_a_good_answer() -> None:
    script = filled(nodes=25, size=2)
    refused = {f"n{n}" for n in range(1, 26)} - {"n25"}
    asked = answering(script, lambda node, victims, start: None if node in refused else start)
    assert high(script) == ["low/n25-1-0"]
    by_name = sorted(f"n{n}" for n in range(1, 26))
    assert [node for _, node, _, _ in asked] == by_name[: len(asked)]
    assert len(asked) % 10 in (0, 5)


def test_5_9_an_answer_without_an_originator_is_preferred() -> None:
    """n1 is first by name, but an originator would be evicted there."""
    script = Script(TWO_QUEUES.replace("vcore: 2m", "vcore: 1m"))
    script.app("low", "root.low")
    script.app("high", "root.high")
    for number in range(1, 13):
        script.node(f"n{number:02}", vcore=1)
        ask(script, "low", f"k{number}", originator=number <= 11, vcore=1)
        script.schedule()
    asked = answering(script, lambda node, victims, start: start)
    assert high(script) == ["low/k12-0"]
    assert len(asked) == 12


def test_x24_without_one_the_start_index_is_enough() -> None:
    script = filled()
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: None)
    assert high(script) == ["low/n1-3-0"]


def test_5_9_a_node_with_room_is_asked_about_with_the_ordinary_predicate() -> None:
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    script.node("n3", vcore=4)
    said = {"n2": "taint"}
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: said.get(node))
    assert high(script) == ["low/n1-3-0"]
    assert reserved(script) == {"n3": "high/h"}


QUOTA = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: top
            parent: true
            resources: {max: {vcore: 4m}}
            queues:
              - name: low
                resources: {guaranteed: {vcore: 1m}}
              - name: high
                properties: {preemption.delay: 1s}
                resources: {guaranteed: {vcore: 2m}}
"""


def test_5_6_an_ask_that_predicates_refuse_everywhere_may_still_preempt() -> None:
    """It preempts before the next ask of its group is tried."""
    script = filled(nodes=2, size=2)
    script.node("n3", vcore=2)
    script.scheduler.set_predicate(
        script.rm_id, lambda key, node, allocate: "taint" if node == "n3" else None
    )
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-1-0"]
    script.confirm()
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_5_6_an_ask_that_predicates_refuse_everywhere_may_still_reserve() -> None:
    script = Script()
    script.app("app")
    script.node("n1", vcore=2)
    script.node("n2", vcore=2)
    script.ask("app", "full", vcore=2)
    script.schedule()
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: "taint")
    script.ask("app", "h", vcore=1)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {}
    script.scheduler.set_predicate(
        script.rm_id, lambda key, node, allocate: "busy" if allocate else None
    )
    script.schedule()
    assert reserved(script) == {"n1": "app/h"}  # the tightest fit
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: None)
    assert news(script.schedule()) == ["app/h-0 on n2"]
    assert reserved(script) == {}


# -- the service -----------------------------------------------------------------------------------


class Manager(NullCallback):
    """A callback that answers which victims are needed, and records what it gets."""

    def __init__(self, answer: PreemptionPredicatesResponse | Exception) -> None:
        self.answer = answer
        self.asked: list[PreemptionPredicatesArgs] = []
        self.told: list[AllocationResponse] = []

    def update_allocation(self, response: AllocationResponse) -> None:
        self.told.append(response)

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        self.asked.append(args)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def served(callback: NullCallback) -> list[str]:
    """The victims in a service with this callback."""
    service = SchedulerService(Options(journal_size=None), manual=True, clock=lambda: 0)
    script = Script(TWO_QUEUES, scheduler=service.scheduler, rm_id="other")
    request = RegisterResourceManagerRequest(rmID="rm", config=TWO_QUEUES)
    service.register_resource_manager(request, callback)
    script.rm_id = "rm"
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    script.ask("low", "a", "b", "c", "d", vcore=1)
    script.schedule()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    return preempted(script.schedule())


def test_i37_the_service_asks_the_callback() -> None:
    manager = Manager(PreemptionPredicatesResponse(success=True, index=1))
    assert served(manager) == ["low/d-0", "low/c-0"]
    (args,) = manager.asked
    assert (args.allocationKey, args.nodeID, args.startIndex) == ("h", "n1", 0)
    assert list(args.preemptAllocationKeys) == ["d", "c"]


def test_i37_nothing_is_preempted_if_a_callback_refuses_or_fails(caplog: object) -> None:
    assert served(Manager(PreemptionPredicatesResponse(success=False))) == []
    assert served(Manager(RuntimeError("no answer"))) == []


def test_x24_a_callback_without_preemption_predicates_is_not_asked() -> None:
    assert served(NullCallback()) == ["low/d-0"]
