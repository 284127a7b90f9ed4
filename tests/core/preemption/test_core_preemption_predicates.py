"""The resource manager's part in a preemption: predicates and preemption predicates (I37, X24)."""

from collections.abc import Callable

import pytest
from core_world import refuse
from preemption_side import QUOTA, TWO_QUEUES, ask, cluster, filled, news, reserved, victims
from tree_side import waited

from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.si import (
    NullCallback,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    RegisterResourceManagerRequest,
)
from quadriga.sim.scripted.script import Script

Answer = Callable[[str, int], int | None]
Asked = list[tuple[str, str, list[str], int]]


def answering(script: Script, answer: Answer) -> Asked:
    """Answers of the resource manager by node and start index; returns its questions."""
    asked: Asked = []

    def predicate(key: str, node: str, victims: list[str], start: int) -> int | None:
        asked.append((key, node, victims, start))
        return answer(node, start)

    script.scheduler.set_preemption_predicate(script.rm_id, predicate)
    return asked


@pytest.mark.parametrize(
    ("answer", "chosen", "questions"),
    [
        (lambda node, start: start + 1, ["low/n1-3-0", "low/n1-2-0"], 2),  # it needs one more
        (lambda node, start: None if node == "n1" else start, ["low/n2-3-0"], 2),
        (lambda node, start: None, [], 2),
        (lambda node, start: 17, [], 2),  # an index that does not exist is a refusal
    ],
    ids=["more victims", "one node refused", "all refused", "wrong index"],
)
def test_i37_it_may_require_more_victims_or_refuse_a_node(
    answer: Answer, chosen: list[str], questions: int
) -> None:
    script = filled(nodes=2)
    asked = answering(script, answer)
    assert victims(script) == chosen
    assert reserved(script) == ({chosen[0][4:6]: "high/h"} if chosen else {})
    assert [node for _, node, _, _ in asked] == ["n1", "n2"][:questions]


def test_5_9_ten_nodes_at_a_time_and_no_more_after_a_good_answer() -> None:
    script = filled(nodes=25, size=2)
    asked = answering(script, lambda node, start: start if node == "n25" else None)
    assert victims(script) == ["low/n25-1-0"]
    by_name = sorted(f"n{n}" for n in range(1, 26))
    assert [node for _, node, _, _ in asked] == by_name[: len(asked)]
    assert len(asked) % 10 in (0, 5)


def test_5_9_an_answer_without_an_originator_is_preferred() -> None:
    """n1 is first by name, but an originator would be evicted there."""
    script = cluster(TWO_QUEUES.replace("vcore: 2m", "vcore: 1m"))
    for number in range(1, 13):
        script.node(f"n{number:02}", vcore=1)
        ask(script, "low", f"k{number}", originator=number <= 11, vcore=1)
        script.schedule()
    asked = answering(script, lambda node, start: start)
    assert victims(script) == ["low/k12-0"]
    assert len(asked) == 12


def test_5_9_a_node_with_room_is_asked_about_with_the_ordinary_predicate() -> None:
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    script.node("n3", vcore=4)
    said = {"n2": "taint"}
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: said.get(node))
    assert victims(script) == ["low/n1-3-0"]
    assert reserved(script) == {"n3": "high/h"}


def test_5_6_an_ask_that_predicates_refuse_everywhere_may_still_preempt() -> None:
    """It preempts before the next ask of its group is tried."""
    script = filled(nodes=2, size=2)
    script.node("n3", vcore=2)
    refuse(script, lambda key, node: node == "n3", "taint")
    assert victims(script) == ["low/n1-1-0"]
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
    waited(script)
    assert reserved(script) == {}
    script.scheduler.set_predicate(script.rm_id, lambda key, node, a: "busy" if a else None)
    script.schedule()
    assert reserved(script) == {"n1": "app/h"}  # the tightest fit
    script.scheduler.set_predicate(script.rm_id, lambda key, node, allocate: None)
    assert news(script.schedule()) == ["app/h-0 on n2"]
    assert reserved(script) == {}


# -- the service -----------------------------------------------------------------------------------


class Manager(NullCallback):
    """A callback that answers which victims are needed, and records what it is asked."""

    def __init__(self, answer: PreemptionPredicatesResponse | Exception) -> None:
        self.answer = answer
        self.asked: list[PreemptionPredicatesArgs] = []

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
    for app in ("low", "high"):
        script.app(app, f"root.{app}")
    script.node("n1", vcore=4)
    script.ask("low", *"abcd", vcore=1)
    script.schedule()
    return victims(script)


def test_i37_the_service_asks_the_callback_which_may_refuse_or_fail(caplog: object) -> None:
    manager = Manager(PreemptionPredicatesResponse(success=True, index=1))
    assert served(manager) == ["low/d-0", "low/c-0"]
    (args,) = manager.asked
    assert (args.allocationKey, args.nodeID, args.startIndex) == ("h", "n1", 0)
    assert list(args.preemptAllocationKeys) == ["d", "c"]
    assert served(Manager(PreemptionPredicatesResponse(success=False))) == []
    assert served(Manager(RuntimeError("no answer"))) == []
