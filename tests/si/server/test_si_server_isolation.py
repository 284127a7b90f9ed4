"""What one resource manager (RM) may learn of another over gRPC, and do to it: nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from quadriga import si
from quadriga.core import Options
from quadriga.si.extension import extension_pb2 as ext
from tests.si.certificates import access_by
from tests.si.wire import QUEUES, RM, House, application, ask, house, refusal, until

A, B = "the-token-of-rm-a", "the-token-of-rm-b"


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[tuple[House, RM, RM]]:
    """Both run a pod of the same name in an application of the same name on a node of the same name."""
    access = access_by(folder, f"a rm:rm-a plain:{A}\nb rm:rm-b plain:{B}\n")
    async with house(access=access, options=Options()) as place:
        rms = place.rm("rm-a", A), place.rm("rm-b", B)
        for rm in rms:
            await rm.begin()
            await rm.has_node()
            await rm.submits()
            await rm.say(ask("app-1", "pod-1"))
            await until(lambda rm=rm: rm.allocations)  # type: ignore[misc]
        yield place, *rms


def allocations(core: Any, rm_id: str) -> list[Any]:
    return [each for n in core.partition(rm_id=rm_id).nodes.values() for each in n.allocations]


async def test_no_call_acts_for_another_and_no_stream_is_opened(tmp_path: Path) -> None:
    async with two(tmp_path) as (place, a, b):
        thief, stub, mine = RM(place.channels[0], "rm-b", A), a.extension, {"metadata": a.metadata}
        queues = si.UpdateConfigurationRequest(rmID="rm-b", config=QUEUES)
        for call in (
            stub.Shutdown(ext.ShutdownRequest(rmID="rm-b"), **mine),
            stub.Step(ext.StepRequest(rmID="rm-b"), **mine),
            stub.UpdateConfiguration(queues, **mine),
            stub.Explain(ext.ExplainRequest(rmID="rm-b", applicationID="app-1"), **mine),
            thief.register(),
        ):
            code, details = await refusal(call)
            assert code == "PERMISSION_DENIED"
            assert "token" not in details
        assert await place.state("rm-b") == "Running"
        for name in ("UpdateAllocation", "UpdateApplication", "UpdateNode", "Callbacks"):
            await thief.open(name).is_refused("PERMISSION_DENIED")
        assert not any(wire.ended for wire in b.wires.values())


async def test_what_has_the_same_name_in_another_rm_is_not_touched(tmp_path: Path) -> None:
    """The same names in two RMs are two things: nodes, applications, asks, allocations."""
    async with two(tmp_path) as (place, a, b):
        theirs = b.allocations[0]
        keys = {"applicationID": "app-1", "partitionName": "default"}
        release = si.AllocationRequest()
        release.releases.allocationsToRelease.add(UUID=theirs.UUID, terminationType=1, **keys)
        gone = si.NodeInfo(nodeID="n1", action=si.NodeInfo.DECOMISSION)
        more = si.NodeInfo(nodeID="n2", action=si.NodeInfo.UPDATE)
        requests = release, si.ApplicationRequest(remove=[keys]), si.NodeRequest(nodes=[gone])
        for request in requests:
            await a.say(request)
        for partition in ("[rm-b]default", "rm-b"):
            stranger = application("app-2")
            stranger.new[0].partitionName = partition
            await a.say(stranger)
        await until(lambda: len(a.heard("UpdateApplication", "rejected")) == 2)
        await a.say(ask("app-1", "pod-9"))
        await until(lambda: a.heard("UpdateAllocation", "rejected"))
        await a.say(si.NodeRequest(nodes=[more]))
        await until(lambda: a.heard("UpdateNode", "rejected"))

        def look(core: Any) -> Any:
            found = core.partition(rm_id="rm-b")
            return [*found.nodes], [*found.applications], len(allocations(core, "rm-b"))

        assert place.service.read(look) == (["n1"], ["app-1"], 1)
        assert not b.heard("UpdateAllocation", "released")
        assert place.service.read(lambda scheduler: scheduler.check()) == []


async def test_a_stream_of_ones_own_says_nothing_for_another(tmp_path: Path) -> None:
    async with two(tmp_path) as (place, a, b):
        uuid = b.allocations[0].UUID
        release = si.AllocationRelease(applicationID="app-1", UUID=uuid, partitionName="default")
        for rm_id, partition in (("rm-b", "default"), ("", "[rm-b]default")):
            request = si.AllocationRequest(rmID=rm_id)
            request.releases.allocationsToRelease.append(release)
            request.releases.allocationsToRelease[0].partitionName = partition
            wire = a.open("UpdateAllocation")
            await wire.call.initial_metadata()
            await wire.say(request)
            if rm_id:
                await wire.is_refused("PERMISSION_DENIED")
            else:  # nothing of that name is its own, and its stream goes on
                await wire.say(ask("app-1", "more", vcore=1))
                await until(lambda wire=wire: any(m.new for m in wire.got))  # type: ignore[misc]
        assert place.service.read(lambda core: len(allocations(core, "rm-b"))) == 1


async def test_hello_cannot_be_for_another_nor_answers_be_made_up(tmp_path: Path) -> None:
    async with two(tmp_path) as (_, a, b):
        wire = a.open("Callbacks")
        await wire.say(ext.CallbackAnswer(hello=ext.Hello(rmID="rm-b", events=True)))
        await wire.is_refused("PERMISSION_DENIED")
        ours = b.open("Callbacks")
        await ours.say(ext.CallbackAnswer(hello=ext.Hello(rmID="rm-b", predicates=True)))
        await until(lambda: ours.got)
        theirs = a.open("Callbacks")
        await theirs.say(ext.CallbackAnswer(hello=ext.Hello(rmID="rm-a")))
        await until(lambda: theirs.got)
        await b.say(ask("app-1", "asked-about"))
        await until(lambda: any(m.WhichOneof("callback") == "predicates" for m in ours.got))
        question = next(m.predicates for m in ours.got if m.WhichOneof("callback") == "predicates")
        # every id that there could be, from the stream of another
        for number in range(question.id + 3):
            await theirs.say(ext.CallbackAnswer(predicates={"id": number, "reasons": [""]}))
            await theirs.say(ext.CallbackAnswer(stateDump={"id": number, "json": "{}"}))
        await a.say(ask("app-1", "after-that"))
        await until(lambda: len(a.allocations) == 2)
        assert len(b.allocations) == 1  # it still waits for the answer of its own RM
        answer = {"id": question.id, "reasons": [""] * len(question.nodeIDs)}
        await ours.say(ext.CallbackAnswer(predicates=answer))
        await until(lambda: len(b.allocations) == 2)
