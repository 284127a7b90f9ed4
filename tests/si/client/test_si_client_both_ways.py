"""The same conversation in process and over gRPC: the same messages, word for word, in one order."""

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest
from preemption_side import TWO_QUEUES

from quadriga import si
from quadriga.core import Output
from quadriga.sim.scripted import flows
from quadriga.sim.scripted.script import ONE_QUEUE, Script
from tests.si.remote_side import RemoteScript

#: in turn, for the wire does not know what it carries; test_si_client_oracle.py plays many more
ORDERS = ("design", "k8shim")


def said(output: Output) -> tuple[str, str, bytes]:
    message = output.message
    return output.rm_id, type(message).__name__, message.SerializeToString(deterministic=True)


@pytest.fixture
def scripts() -> Iterator[Callable[..., tuple[Any, Any]]]:
    """Two scripts that are alike but for the way to their schedulers."""
    made: list[RemoteScript] = []

    def make(*args: Any, **how: Any) -> tuple[Script, RemoteScript]:
        questions = how.pop("questions", None)
        here = Script(*args, **how)
        if questions is not None:
            _ask_here(here, questions)
        made.append(RemoteScript(*args, questions=questions, **how))
        return here, made[-1]

    yield make
    for script in made:
        script.stop()


def _ask_here(script: Script, questions: Any) -> None:
    """As `SchedulerService` does for a callback that has them."""

    def fits(key: str, node: str, allocate: bool) -> str | None:
        args = si.PredicatesArgs(allocationKey=key, nodeID=node, allocate=allocate)
        answer: str | None = questions.predicates(args)
        return answer

    def makes_room(key: str, node: str, victims: list[str], start: int) -> int | None:
        answer = questions.preemption_predicates(
            si.PreemptionPredicatesArgs(
                allocationKey=key, nodeID=node, preemptAllocationKeys=victims, startIndex=start
            )
        )
        return answer.index if answer.success else None

    script.scheduler.set_predicate(script.rm_id, fits)
    script.scheduler.set_preemption_predicate(script.rm_id, makes_room)


def same(here: Script, there: Script) -> None:
    assert [said(output) for output in there.messages] == [said(o) for o in here.messages]
    assert there.events == here.events
    assert there.log == here.log
    assert here.log or here.events  # something was said at all


@pytest.mark.parametrize(("name", "order"), [*zip(flows.FLOWS, cycle(ORDERS))])
def test_the_flows_of_the_design(scripts: Callable[..., Any], name: str, order: str) -> None:
    here, there = scripts(extra={"si.messageOrder": order})
    for script in (here, there):
        flows.FLOWS[name][1](script)
    same(here, there)


class Picky(si.NullCallback):
    """A resource manager with questions of its own: no node but n2 will do, and two have to go."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return None if args.nodeID == "n2" else "wrong kind of node"

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse:
        enough = len(args.preemptAllocationKeys) > args.startIndex + 1
        return si.PreemptionPredicatesResponse(success=enough, index=args.startIndex + 1)


def test_i37_preemption_predicates(scripts: Callable[..., Any]) -> None:
    """The first try does not do it, so the second victim has to go as well."""
    here, there = scripts(TWO_QUEUES, questions=Picky())
    for script in (here, there):
        script.node("n2", vcore=4)
        script.app("low", "root.low")
        script.ask("low", *(f"pod-{n}" for n in range(4)), vcore=1, preempt=(True, True))
        script.schedule()
        script.app("high", "root.high")
        script.ask("high", "big", vcore=1, preempt=(True, True))
        script.advance(1)
        script.schedule()
        script.confirm()
        script.schedule()
    same(here, there)
    assert sum("PREEMPTED_BY_SCHEDULER" in line for line in there.log) == 2
    assert "new high/big-0 on n2" in there.log


def test_i38_i39_i40_events_states_and_configurations(scripts: Callable[..., Any]) -> None:
    smaller = TWO_QUEUES.replace("guaranteed: {vcore: 4m}", "max: {vcore: 1}")
    here, there = scripts(TWO_QUEUES)
    for script in (here, there):
        script.node("n1", vcore=4000)
        script.configure(smaller)
        script.app("a", "root.high")
        script.ask("a", "p", "q", vcore=1000)
        script.app("b", "root.low")
        script.ask("b", "huge", vcore=9000)
        script.schedule()
        script.advance(10)
        script.schedule()
        with pytest.raises(si.RequestError, match="nonsense") as error:
            script.configure("nonsense: 1")
        assert error.value.field == "config"
    same(here, there)
    assert sum(line.startswith("new") for line in there.log) == 1
    assert any(line.startswith(("FAILED", "SKIPPED")) for line in there.log)
    assert {record.type for record in there.events} >= {si.EventRecord.APP, si.EventRecord.NODE}


def test_x20_r6_i7_refusals_and_a_second_registration(scripts: Callable[..., Any]) -> None:
    """Requests of different streams take effect one right behind the other."""
    here, there = scripts()
    told = []
    for script in (here, there):
        script.node("n1", vcore=1000)
        script.node("n1", vcore=1000)
        script.node("n7", si.NodeInfo.DRAIN_NODE)
        script.app("a", "root.nowhere")
        script.ask("b", "p", vcore=1)
        script.app("c")
        script.ask("c", "p", vcore=-1)
        script.ask("c", "p", repeat=-1, vcore=1)
        script.release("c", "nobody")
        script.remove_app("nobody")
        with pytest.raises(si.RequestError) as error:
            script.release("", "x")
        told.append(error.value)
        script.send(si.RegisterResourceManagerRequest(rmID=script.rm_id, config=ONE_QUEUE))
        for n in range(20):
            script.app(f"app-{n}")
            script.ask(f"app-{n}", "p", vcore=100)
            script.node(f"n-{n}", vcore=100)
        script.schedule()
        for n in range(20):
            script.release(f"app-{n}", key="p", kind=si.TerminationType.STOPPED_BY_RM)
    assert str(told[0]) == str(told[1])
    assert told[0].args == told[1].args
    same(here, there)
