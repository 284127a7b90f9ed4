"""Refusals of the gRPC server are statuses that name the rule; limits hold; nobody acts for others."""

import hashlib
from pathlib import Path

import grpc
import pytest

from quadriga import si
from quadriga.si.access import Access
from quadriga.si.extension import extension_pb2 as ext
from quadriga.si.server import Limits, Server
from tests.si.certificates import access_by
from tests.si.wire import QUEUES, RM, House, house, node, refusal, until

# -- unary calls -----------------------------------------------------------------------------------


async def test_registration_without_an_id_or_with_queues_that_do_not_hold(place: House) -> None:
    code, text = await refusal(place.rm("").register())
    assert (code, text[:5]) == ("INVALID_ARGUMENT", "I10: ")
    code, text = await refusal(place.rm().register(config="partitions: [{name: 7"))
    assert code == "INVALID_ARGUMENT"
    assert "RegisterResourceManagerRequest.config" in text
    code, text = await refusal(place.rm("x" * 300).register())
    assert (code, text[:5]) == ("INVALID_ARGUMENT", "I10: ")
    assert place.server.refused["INVALID_ARGUMENT"] == 3


async def test_configuration_is_updated_all_or_nothing(place: House, rm: RM) -> None:
    update = rm.extension.UpdateConfiguration
    code, text = await refusal(update(si.UpdateConfigurationRequest(rmID="other")))
    assert (code, text[:5]) == ("NOT_FOUND", "I43: ")
    code, text = await refusal(update(si.UpdateConfigurationRequest(rmID="rm-1", config="x: [")))
    assert code == "INVALID_ARGUMENT"
    assert "UpdateConfigurationRequest.config" in text
    more = QUEUES.replace('submitacl: "*"', 'submitacl: "*", queues: [{name: extra}]')
    await update(si.UpdateConfigurationRequest(rmID="rm-1", config=more))
    assert place.service.read(lambda s: s.partition().queue("root.extra")) is not None


async def test_shutdown_and_step_by_the_extension(place: House, rm: RM) -> None:
    code, text = await refusal(rm.extension.Step(ext.StepRequest(rmID="rm-1", now=1)))
    assert (code, text[:6]) == ("FAILED_PRECONDITION", "Step: ")
    code, _ = await refusal(rm.extension.Shutdown(ext.ShutdownRequest(rmID="nobody")))
    assert code == "NOT_FOUND"
    await rm.extension.Shutdown(ext.ShutdownRequest(rmID="rm-1"))
    assert await place.state() == "Stopped"
    for wire in rm.wires.values():
        assert await wire.end() is None


async def test_bytes_that_are_no_message(place: House) -> None:
    channel = place.channel()
    for name in ("/si.v1.Scheduler/RegisterResourceManager", "/quadriga.v1.Extension/Step"):
        code, text = await refusal(channel.unary_unary(name)(b"\xff\xff\xff"))
        assert (code, text[:4]) == ("INVALID_ARGUMENT", "I1: ")
    call = channel.stream_stream("/si.v1.Scheduler/UpdateNode")()
    await call.write(b"\x0a\xff\xff\xff\xff\xff\x01")
    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


# -- streams ---------------------------------------------------------------------------------------


async def test_a_stream_of_an_unknown_rm(place: House) -> None:
    rm = place.rm()
    for bound in (True, False):
        wire = rm.open("UpdateNode", bound=bound)
        if not bound:
            await wire.say(node("n1"))
        await wire.is_refused("FAILED_PRECONDITION", "I43: ")


async def test_the_first_message_binds_and_others_may_not_differ(place: House) -> None:
    rm, other = place.rm(), place.rm("rm-2")
    await rm.register()
    await other.register()
    wire = rm.open("UpdateNode", bound=False)
    first = node("n1")
    first.rmID = "rm-1"
    await wire.say(first)
    await wire.say(node("n2"))  # its own, without saying so again
    await until(lambda: rm.nodes == ["n1", "n2"])
    foreign = node("n3")
    foreign.rmID = "rm-2"
    await wire.say(foreign)
    await wire.is_refused("PERMISSION_DENIED", "I11: ")
    assert not place.service.read(lambda s: s.partition(rm_id="rm-2").nodes)


async def test_a_request_refused_as_a_whole_ends_its_stream_only(place: House, rm: RM) -> None:
    release = si.AllocationRelease(partitionName="nowhere", applicationID="", UUID="u")
    bad = si.AllocationRequest(
        releases=si.AllocationReleasesRequest(allocationsToRelease=[release])
    )
    await rm.say(bad)
    wire = rm.wires["UpdateAllocation"]
    error = await wire.end()
    if error is not None:
        assert wire.status[0] == "INVALID_ARGUMENT"
        await place.becomes("Paused")
    await rm.open("UpdateAllocation").call.initial_metadata()
    await place.becomes("Running")


async def test_what_must_come_first_and_be_a_number(rm: RM) -> None:
    for answer in (ext.CallbackAnswer(), ext.CallbackAnswer(predicates={"id": 1})):
        wire = rm.open("Callbacks", bound=False)
        await wire.say(answer)
        await wire.is_refused("INVALID_ARGUMENT", "I4: ")
    await rm.open("UpdateNode", received="many").is_refused("INVALID_ARGUMENT")
    # it cannot have got so many
    await rm.open("UpdateNode", received=7).is_refused("FAILED_PRECONDITION", "I43: ")


# -- limits ----------------------------------------------------------------------------------------


async def test_i11_i2_i9_items_streams_and_resource_managers_are_bounded() -> None:
    limits = Limits(items=3, streams_per_rm=3, streams=5, resource_managers=2)
    async with house(limits=limits) as place:
        rm = await place.rm().begin()
        await rm.open("Callbacks").is_refused("RESOURCE_EXHAUSTED", "I2: ")
        other = place.rm("rm-2")
        for _ in range(2):
            await other.register()
        for name in ("UpdateNode", "UpdateApplication"):
            await other.open(name).call.initial_metadata()
        await other.open("UpdateAllocation").is_refused("RESOURCE_EXHAUSTED", "I2: 5 streams")
        code, text = await refusal(place.rm("c").register())
        assert (code, text[:4]) == ("RESOURCE_EXHAUSTED", "I9: ")
        await rm.say(
            si.NodeRequest(nodes=[si.NodeInfo(nodeID=f"n{i}", action=1) for i in range(4)])
        )
        await rm.wires["UpdateNode"].is_refused("RESOURCE_EXHAUSTED", "I11: 4 items")
    with pytest.raises(ValueError, match="window"):
        Limits(window=0)


async def test_unary_calls_have_a_pace_and_streams_that_come_too_fast_are_read_later() -> None:
    limits = Limits(introduction_s=0.01, request_burst=2, requests_per_second=0.001)
    async with house(limits=limits) as place:
        rm = place.rm()
        await rm.open("UpdateNode", bound=False).is_refused("DEADLINE_EXCEEDED")
        for _ in range(2):
            await rm.register()
        assert (await refusal(rm.register()))[0] == "RESOURCE_EXHAUSTED"
    async with house(limits=Limits(request_burst=4, requests_per_second=200)) as place:
        rm = await place.rm().begin()
        for number in range(20):
            await rm.say(node(f"n{number}"))
        await until(lambda: len(rm.nodes) == 20)


# -- who may what ----------------------------------------------------------------------------------


@pytest.fixture
def tokens(tmp_path: Path) -> Access:
    hashed = hashlib.sha256(b"token-of-rm-1-aaaa").hexdigest()
    return access_by(
        tmp_path,
        f"first    rm:rm-1     sha256:{hashed}\n"
        f"second   rm:rm-2,rm:rm-3 plain:token-of-rm-2-bbbb\n"
        f"viewer   read        plain:token-of-viewer-cc\n"
        f"boss     admin       plain:token-of-boss-dddd\n",
    )


async def test_nobody_without_a_token(tokens: Access) -> None:
    async with house(access=tokens) as place:
        for token in ("", "token-of-nobody-zzz"):
            code, text = await refusal(place.rm("rm-1", token).register())
            assert code == "UNAUTHENTICATED"
            assert "token-of" not in text
            await place.rm("rm-1", token).open("UpdateNode").is_refused("UNAUTHENTICATED")


async def test_a_token_is_for_its_resource_managers(tokens: Access) -> None:
    async with house(access=tokens) as place:
        first = await place.rm("rm-1", "token-of-rm-1-aaaa").begin()
        second = await place.rm("rm-2", "token-of-rm-2-bbbb").begin()
        code, text = await refusal(place.rm("rm-1", "token-of-rm-2-bbbb").register())
        assert code == "PERMISSION_DENIED"
        assert "'second' may not act for resource manager 'rm-1'" in text
        viewer = place.rm("rm-1", "token-of-viewer-cc")
        assert (await refusal(viewer.register()))[0] == "PERMISSION_DENIED"
        await place.rm("rm-9", "token-of-boss-dddd").begin()
        for rm in (first, second):
            await rm.has_node()


async def test_where_it_may_listen(place: House) -> None:
    with pytest.raises(ValueError, match="plaintext on 0.0.0.0:0"):
        Server(place.service, address="0.0.0.0:0")
    Server(place.service, address="0.0.0.0:0", insecure=True)
    for address in ("localhost:0", "[::1]:0", "unix:/tmp/x"):
        Server(place.service, address=address)
    with pytest.raises(OSError, match="cannot listen"):
        await Server(place.service, address=place.address).start()
