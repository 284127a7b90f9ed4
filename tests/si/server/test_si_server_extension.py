"""What a remote RM has beside its three streams: predicates, events, states, the state dump (I4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from preemption_side import TWO_QUEUES

from quadriga.si import AllocationRequest, NodeInfo, NodeRequest
from quadriga.si.extension import extension_pb2 as ext
from quadriga.si.predicates import ANSWER_PENDING
from quadriga.si.server import Limits
from quadriga.si.server.predicates.pending_questions import QueuedPredicates
from quadriga.si.server.predicates.questions import QuestionIds
from tests.si.wire import PATIENCE, RM, House, application, ask, house, node, until


class Answering:
    """Answers predicates as a function says; keeps what it was asked and told."""

    def __init__(self, rm: RM, fits: Callable[[str, str], str] | None = None) -> None:
        self.rm = rm
        self.fits = fits
        self.questions: list[Any] = []
        self.preemptions: list[Any] = []
        self.events: list[Any] = []
        self.states: list[Any] = []
        self.ready = asyncio.Event()
        self.wire: Any = None
        self.task: asyncio.Task[None] | None = None

    async def begin(self, **has: bool) -> Answering:
        self.wire = self.rm.open("Callbacks")
        await self.wire.say(ext.CallbackAnswer(hello=ext.Hello(rmID=self.rm.rm_id, **has)))
        self.task = asyncio.create_task(self._answer())
        async with asyncio.timeout(PATIENCE):
            await self.ready.wait()
        return self

    async def _answer(self) -> None:
        seen = 0
        while not self.wire.ended:
            for callback in self.wire.got[seen:]:
                seen += 1
                await self._one(callback)
            await asyncio.sleep(0.001)

    async def _one(self, callback: Any) -> None:
        kind = callback.WhichOneof("callback")
        if kind == "ready":
            self.ready.set()
        elif kind == "predicates":
            question = callback.predicates
            self.questions.append(question)
            if self.fits is not None:
                reasons = [self.fits(question.allocationKey, each) for each in question.nodeIDs]
                answer = ext.PredicatesAnswer(id=question.id, reasons=reasons)
                await self.wire.say(ext.CallbackAnswer(predicates=answer))
        elif kind == "preemptionPredicates":
            question = callback.preemptionPredicates
            self.preemptions.append(question)
            agreed = [{"success": True, "index": each.startIndex} for each in question.args]
            answer = ext.PreemptionPredicatesAnswer(id=question.id, responses=agreed)
            await self.wire.say(ext.CallbackAnswer(preemptionPredicates=answer))
        elif kind == "events":
            self.events.extend(callback.events.events)
        elif kind == "schedulingStates":
            self.states.extend(callback.schedulingStates.states)

    async def end(self) -> None:
        await self.wire.lose()
        if self.task is not None:
            await self.task


async def three_nodes(rm: RM, *pods: str) -> None:
    """And an application, with these pods."""
    for name in ("n1", "n2", "n3"):
        await rm.has_node(name)
    await rm.submits()
    for key in pods:
        await rm.say(ask("app-1", key))


@asynccontextmanager
async def answering(
    rm: RM, fits: Callable[[str, str], str] | None = None, **has: bool
) -> AsyncIterator[Answering]:
    """With predicates, if nothing else is said."""
    told = await Answering(rm, fits).begin(**(has or {"predicates": True}))
    yield told
    await told.end()


async def test_i36_predicates_choose_the_node_and_are_asked_in_batches(rm: RM) -> None:
    """A member of a gang that is to take over a placeholder's place is asked about as well."""
    async with answering(rm, lambda key, name: "" if name == "n3" else "not here") as told:
        await three_nodes(rm, "pod-1")
        await until(lambda: rm.allocations)
        assert rm.allocations[0].nodeID == "n3"
        (question,) = told.questions
        assert (question.allocationKey, question.allocate) == ("pod-1", True)
        assert [*question.nodeIDs] == ["n1", "n2", "n3"]
        await rm.submits("gang", gang=2000)
        for number in range(2):
            await rm.say(ask("gang", f"hold-{number}", group="tg", placeholder=True))
        await until(lambda: len(rm.allocations) == 3)
        for number in range(2):
            await rm.say(ask("gang", f"pod-{number}", group="tg"))
        await until(lambda: len(rm.heard("UpdateAllocation", "released")) == 2)
        assert [q.allocate for q in told.questions[1:]] == [True, True, False, False]


async def test_an_rm_that_does_not_answer_holds_up_nobody() -> None:
    pods = [f"pod-{number}" for number in range(10)]
    async with house(limits=Limits(predicate_timeout_s=3600)) as place:
        mute, quick = await place.rm("mute").begin(), await place.rm("quick").begin()
        async with answering(mute) as told:
            await three_nodes(mute, *pods)
            await until(lambda: len(told.questions) == 10)
            await three_nodes(quick, *pods)
            await until(lambda: len(quick.allocations) == 10)
            assert not mute.allocations
            # late, but there: each ask is tried again
            for question in told.questions:
                answer = ext.PredicatesAnswer(id=question.id, reasons=["", "", ""])
                await told.wire.say(ext.CallbackAnswer(predicates=answer))
            await until(lambda: len(mute.allocations) == 10)


async def test_no_answer_in_time_counts_as_refused() -> None:
    limits = Limits(predicate_timeout_s=0.05)
    async with house(limits=limits) as place:
        rm = await place.rm().begin()
        async with answering(rm) as told:
            await three_nodes(rm, "pod-1")
            await until(lambda: place.server.sessions["rm-1"].timed_out == 1)
            assert not rm.allocations
            told.fits = lambda key, name: ""
            # From now on any answer is in time.
            object.__setattr__(limits, "predicate_timeout_s", 3600.0)
            await rm.say(ask("app-1", "pod-2"))  # something happens: others are asked about
            await until(lambda: any(each.allocationKey == "pod-2" for each in rm.allocations))


async def test_a_message_that_says_nothing_makes_the_core_ask_again() -> None:
    """Predicates may answer otherwise although nothing has changed that the core counts."""
    async with house(limits=Limits(predicate_age_s=0.001)) as place:
        rm = await place.rm().begin()
        async with answering(rm, lambda key, name: "taint") as told:
            await three_nodes(rm, "pod-1")
            await until(lambda: len(told.questions) == 1)
            told.fits = lambda key, name: ""
            await asyncio.sleep(0.01)  # the answer is no longer valid
            await rm.say(AllocationRequest())
            await until(lambda: rm.allocations)


async def test_an_answer_is_void_when_the_node_or_the_ask_changes() -> None:
    async with house(limits=Limits(predicate_age_s=3600)) as place:
        rm = await place.rm().begin()
        async with answering(rm, lambda key, name: "full") as told:
            await three_nodes(rm, "pod-1")
            await until(lambda: len(told.questions) == 1)
            changed = NodeInfo(nodeID="n2", action=NodeInfo.UPDATE, attributes={"a": "b"})
            changed.schedulableResource.CopyFrom(node("n2").nodes[0].schedulableResource)
            await rm.say(NodeRequest(nodes=[changed]))
            await until(lambda: len(told.questions) == 2)
            assert [*told.questions[1].nodeIDs] == ["n2"]
            told.fits = lambda key, name: ""
            await rm.say(ask("app-1", "pod-1", priority=5))
            await until(lambda: rm.allocations)
            assert [*told.questions[2].nodeIDs] == ["n1", "n2", "n3"]


async def test_a_callbacks_lost_stream_pauses_and_is_asked_again(place: House, rm: RM) -> None:
    """To close one's own half means to have no callbacks."""
    async with answering(rm) as told:
        await three_nodes(rm, "pod-1")
        await until(lambda: told.questions)
    await place.becomes("Paused")
    async with answering(rm, lambda key, name: "") as told:
        await place.becomes("Running")
        await until(lambda: rm.allocations)
        await told.wire.call.done_writing()
        assert await told.wire.end() is None
        told.questions.clear()
        await rm.say(ask("app-1", "pod-2"))
        await until(lambda: len(rm.allocations) == 2)
        assert await place.state() == "Running"


async def test_i38_i40_events_and_states_go_to_those_who_want_them(place: House) -> None:
    rm, plain = await place.rm().begin(), await place.rm("plain").begin()
    nothing = await Answering(plain).begin()
    async with answering(rm, events=True, schedulingStates=True) as told:
        for each in (rm, plain):
            await three_nodes(each, "pod-1")
            await each.say(ask("app-1", "pod-2", vcore=1_000_000))
        await until(lambda: told.events and told.states)
    assert told.states[0].allocationKey == "pod-2"
    assert not nothing.events + nothing.states
    await nothing.end()


async def test_i37_preemption_predicates_are_asked_about_and_heard(place: House) -> None:
    rm = place.rm()
    await rm.register(config=TWO_QUEUES)
    await rm.connect()
    async with answering(rm, preemptionPredicates=True) as told:
        for name in ("n0", "n1"):
            await rm.has_node(name, 4)
        for name in ("low", "high"):
            new = application(name)
            new.new[0].queueName = f"root.{name}"
            await rm.say(new)
        await until(lambda: len(rm.applications) == 2)
        willing = {"preemptionPolicy": {"allowPreemptSelf": True, "allowPreemptOther": True}}
        for number in range(8):
            await rm.say(ask("low", f"low-{number}", 1, **willing))
        await until(lambda: len(rm.allocations) == 8)
        await rm.say(ask("high", "urgent", 1, **willing))
        await until(lambda: rm.heard("UpdateAllocation", "released"))
        (question,) = told.preemptions
        assert {each.nodeID for each in question.args} == {"n0", "n1"}
        assert {each.allocationKey for each in question.args} == {"urgent"}
        (release,) = rm.heard("UpdateAllocation", "released")
        assert release.allocationKey.startswith("low-")


async def test_i36_an_explanation_reads_answers_and_asks_no_question() -> None:
    woken, now = list[bool](), [0.0]
    questions = QueuedPredicates(
        Limits(), QuestionIds(), lambda: now[0], lambda: woken.append(True)
    )
    assert questions.known("pod", "n1", True) is ANSWER_PENDING
    assert (woken, questions.flush(), questions.awaits("pod")) == ([], [], False)
    assert questions("pod", "n1", True) is ANSWER_PENDING
    (question,) = questions.flush()
    assert questions.known("pod", "n1", True) is ANSWER_PENDING
    now[0] = 0.1
    assert questions.answer(question.predicates.id, ["taint"], "none")
    assert questions.known("pod", "n1", True) == "taint"
    assert questions.known("pod", "n1", False) is ANSWER_PENDING
    assert questions.known("pod", "n2", True) is ANSWER_PENDING
    now[0] += Limits().predicate_age_s + 1
    assert questions.known("pod", "n1", True) is ANSWER_PENDING
    assert questions.flush() == []
