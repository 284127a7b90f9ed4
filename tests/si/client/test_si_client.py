"""The client of a remote scheduler: requests and answers, lost connections, leaving (I2, I6, I7, I43)."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quadriga import si
from quadriga.core.views import Views
from quadriga.si.client import (
    CONNECTED,
    AsyncClient,
    ClientError,
    RegisterAgain,
    channels,
    registration,
)
from quadriga.si.server import Limits
from tests.si.certificates import access_by
from tests.si.remote_side import (
    PATIENCE,
    SOON,
    Heard,
    Make,
    Serving,
    Told,
    Wire,
    placed,
    registered,
    state_of,
    until,
)
from tests.si.requests import apps, asks, nodes, register, releases

REPLACED = si.TerminationType.PLACEHOLDER_REPLACED
WRONG_QUEUES = si.RegisterResourceManagerRequest(rmID="rm", config="nonsense: 1")

# -- requests and answers --------------------------------------------------------------------------


def test_i3_i43_before_the_registration_nothing_can_be_said(client: Make) -> None:
    rm = client()
    assert isinstance(rm, si.SchedulerAPI)
    for call in (rm.flush, lambda: rm.update_node(nodes("n1")), lambda: rm.step(0)):
        with pytest.raises(RegisterAgain):
            call()


def test_what_is_refused_here_is_refused_as_there(client: Make, serving: Serving) -> None:
    rm, heard = registered(client, watcher=(watcher := Told()))
    for call in (
        lambda api: api.register_resource_manager(register(""), Heard()),
        lambda api: api.register_resource_manager(WRONG_QUEUES, Heard()),
        lambda api: api.register_resource_manager(
            register(extraConfig={"rm.pauseTimeout": "soon"}), Heard()
        ),
        lambda api: api.update_allocation(si.AllocationRequest(rmID="other")),
    ):
        told = []
        for api in (rm, serving.service):
            with pytest.raises(si.RequestError) as error:
                call(api)
            told.append(error.value.args)
        assert told[0] == told[1]
    with pytest.raises(si.RequestError, match="printable"):
        rm.register_resource_manager(register("r\u00e9"), Heard())
    with pytest.raises(si.RequestError, match="clock of its own"):
        rm.step(0)
    request = nodes("n1")
    rm.update_node(request)  # the older registration is left
    request.nodes[0].nodeID = "n2"  # the client has its own copy
    heard.wait_for(lambda messages: len(messages) == 1)
    assert heard.messages[0].accepted[0].nodeID == "n1"
    assert watcher.states[-1] == CONNECTED


def test_closing_while_registering(client: Make, wire: Wire) -> None:
    """Whoever waits for a registration hears that it will not come."""
    wire.cut()
    rm = client()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(rm.register_resource_manager, register(), Heard())
        rm.close()
        with pytest.raises(ClientError):
            waiting.result(PATIENCE)


def test_a_request_that_is_refused_whole_is_told_and_the_others_go_on(client: Make) -> None:
    told, wrong = Told(), releases("", "x")
    rm, heard = registered(client, watcher=told)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    for request in (asks("a", "p"), wrong, asks("a", "q")):
        rm.update_allocation(request)
    heard.wait_for(lambda messages: sorted(placed(messages)) == ["p", "q"])
    told.wait_for(lambda told: bool(told.refusals))
    ((refused, error),) = told.refusals
    assert (refused, error.field) == (wrong, "releases.allocationsToRelease[0].applicationID")
    rm.flush()
    assert told.states == [CONNECTED]  # the connection itself was not lost


def test_a_callback_that_raises_does_not_stop_what_follows(client: Make) -> None:
    class Clumsy(Heard):
        def update_node(self, response: si.NodeResponse) -> None:
            super()._note(response)
            raise ValueError("clumsy")

    heard = Clumsy()
    rm, _ = registered(client, heard=heard)
    for n in range(1, 3):
        rm.update_node(nodes(f"n{n}"))
        heard.wait_for(lambda messages, n=n: len(messages) == n)


def test_many_threads_may_talk_at_once(client: Make) -> None:
    """With room for two requests only, so that they wait for each other."""
    rm, heard = registered(client, max_pending=2)
    names = [[f"n-{thread}-{n}" for n in range(25)] for thread in range(8)]

    def say(own: list[str]) -> None:
        for name in own:
            rm.update_node(nodes(name))

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(say, names)] == [None] * 8
    heard.wait_for(lambda messages: sum(len(m.accepted) for m in messages) == 200)
    found = [node.nodeID for message in heard.messages for node in message.accepted]
    for own in names:  # each thread's in its order
        assert [name for name in found if name in own] == own


def test_i36_predicates_that_raise_say_no(client: Make) -> None:
    class Picky(Heard):
        def predicates(self, args: si.PredicatesArgs) -> str | None:
            if args.nodeID == "n1":
                raise ValueError("never seen such a node")
            return None

    heard = Picky()
    rm, _ = registered(client, heard=heard)
    rm.update_node(nodes("n1", "n2"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "p"))
    heard.wait_for(lambda messages: placed(messages) == ["p"])
    (new,) = [m for m in heard.messages if isinstance(m, si.AllocationResponse)]
    assert new.new[0].nodeID == "n2"


def test_i4_it_has_a_part_of_the_state_dump(client: Make, serving: Serving) -> None:
    class Dumping(Heard):
        def get_state_dump(self) -> str:
            return '{"pods": 3}'

    rm = client()
    rm.register_resource_manager(register(), Dumping())
    dump = json.loads(serving.service.state_dump(Views(serving.service.scheduler)))
    assert dump["rmDiagnostics"] == {"pods": 3}


def test_explain_tells_where_and_why(client: Make) -> None:
    rm, heard = registered(client)
    rm.update_node(nodes("n1", vcore=1000))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "huge", vcore=9000))
    heard.wait_for(lambda messages: len(messages) >= 2)
    rm.flush()
    told = rm.explain("a", "huge")
    assert (told.queue, told.state) == ("root.default", "Accepted")
    assert told.reasons
    assert told.verdict == "No node is large enough for it: it needs 9 CPU on one node."
    assert not (told.gathers or told.reservedNodes)
    failing = {each.about: each for each in told.checks}
    assert [each.text for each in told.checks] == list(told.reasons)
    assert failing["node sizes"].remedy == "add a node with 9 CPU"
    assert failing["node sizes"].verdict == told.verdict
    assert not rm.explain("a").reasons
    assert not rm.explain("a").verdict
    with pytest.raises(si.RequestError, match="'nobody' in partition 'default' is not known"):
        rm.explain("nobody")


# -- who may ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Any) -> Iterator[Serving]:
    access = access_by(tmp_path, "shim rm:rm plain:s3cret-token-of-the-shim\n")
    with Serving(access=access) as serving:
        yield serving


def test_a_token_opens_and_no_other_does(client: Make, guarded: Serving) -> None:
    rm, _ = registered(client, address=guarded.address, token="s3cret-token-of-the-shim")
    rm.update_node(nodes("n1"))
    rm.flush()
    for token in (None, "wrong"):
        stranger = client(address=guarded.address, token=token)
        with pytest.raises(PermissionError) as error:
            stranger.register_resource_manager(register(), Heard())
        assert "wrong" not in str(error.value)
    with pytest.raises(PermissionError, match="other"):
        rm.register_resource_manager(register("other"), Heard())


# -- asyncio ---------------------------------------------------------------------------------------


async def test_the_same_with_await(serving: Serving) -> None:
    class Waiting:
        """Methods may be async, and those that are missing are not missed."""

        def __init__(self) -> None:
            self.news: asyncio.Queue[str] = asyncio.Queue()

        async def update_allocation(self, response: si.AllocationResponse) -> None:
            await asyncio.sleep(0)
            for new in response.new:
                await self.news.put(new.allocationKey)

        def update_application(self, response: Any) -> None:
            pass

        async def update_node(self, response: Any) -> None:
            await client.update_application(apps("a"))
            await client.update_allocation(asks("a", "p"))

        async def predicates(self, args: si.PredicatesArgs) -> str | None:
            await asyncio.sleep(0)
            return "not this one" if args.nodeID == "n1" else None

    callback: Any = Waiting()
    async with AsyncClient(serving.address, backoff=SOON) as client:
        await client.register_resource_manager(register(), callback)
        await client.update_node(nodes("n1", "n2"))
        assert await asyncio.wait_for(callback.news.get(), PATIENCE) == "p"
        await client.flush()
        assert (await client.explain("a")).queue == "root.default"
        await client.shutdown()
    assert serving.service.read(state_of) == "Stopped"


# -- much ------------------------------------------------------------------------------------------


def test_what_is_not_heard_pauses_the_rm(client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback stands still; when it goes on nothing is missing."""
    monkeypatch.setattr(registration, "_MAX_UNDELIVERED", 2)
    # else gRPC takes in megabytes before it lets the other side wait
    monkeypatch.setattr(channels, "_OPTIONS", (*channels._OPTIONS, ("grpc.http2.bdp_probe", 0)))
    go_on = threading.Event()

    class Stuck(Heard):
        def update_allocation(self, response: si.AllocationResponse) -> None:
            assert go_on.wait(PATIENCE)
            self._note(response)

    keys = [f"p-{n}" for n in range(4_000)]
    # Half of this much waits before the end, all of it never: else the scheduler might give the RM
    # up before it hears that the RM is slow.
    with Serving(limits=Limits(backlog_bytes=640_000, batch_bytes=2_000)) as small:
        heard = Stuck()
        rm = client(address=small.address)
        rm.register_resource_manager(register(), heard)
        rm.update_node(nodes("n1", vcore=10_000_000))
        rm.update_application(apps("a"))
        for n in range(0, len(keys), 100):
            rm.update_allocation(asks("a", *keys[n : n + 100]))
        until(small, lambda core: state_of(core) == "Paused")
        go_on.set()
        heard.wait_for_placed(len(keys))
        assert placed(heard.messages) == keys
        rm.close()


def test_a_request_that_is_too_large_is_refused_here(client: Make) -> None:
    rm, heard = registered(client, max_request_bytes=10_000)
    with pytest.raises(si.RequestError, match="has .* bytes, more than the 10000"):
        rm.update_node(nodes(*(f"node-{n}" for n in range(1000))))
    rm.update_node(nodes("n1"))
    heard.wait_for(lambda messages: len(messages) == 1)


def test_a_request_larger_than_the_scheduler_lets_in_is_given_up(client: Make) -> None:
    """gRPC ends the stream without saying which it was; those behind it go out again."""
    heard, told = Heard(), Told()
    with Serving(limits=Limits(message_bytes=20_000, items=10, resource_managers=1)) as small:
        rm = client(address=small.address, watcher=told)
        rm.register_resource_manager(register(), heard)
        with pytest.raises(ClientError, match="RESOURCE_EXHAUSTED"):
            client(address=small.address).register_resource_manager(register("two"), Heard())
        large, many = nodes("x" * 30_000), nodes(*(f"node-{n}" for n in range(11)))
        for request in (nodes("n1"), large, nodes("n2"), many, nodes("n3")):
            rm.update_node(request)
        rm.update_application(apps("a"))
        rm.update_allocation(asks("a", "p"))
        heard.wait_for(lambda messages: placed(messages) == ["p"])
        told.wait_for(lambda told: len(told.refusals) == 2)
        assert [request for request, _ in told.refusals] == [large, many]
        reasons = [error.reason for _, error in told.refusals]
        assert "the scheduler lets in 20000 at once" in reasons[0]
        assert reasons[1] == "11 items in one NodeRequest, at most 10"
        rm.flush()
        rm.close()
    told = [n.nodeID for m in heard.messages if isinstance(m, si.NodeResponse) for n in m.accepted]
    assert told == ["n1", "n2", "n3"]


def test_g3_a_release_is_confirmed_over_the_wire(client: Make, serving: Serving) -> None:
    """A gang's placeholder is asked back, and replaced when the RM has confirmed (G29)."""

    class Confirming(Heard):
        def update_allocation(self, response: si.AllocationResponse) -> None:
            for gone in response.released:
                if gone.terminationType == REPLACED:
                    rm.update_allocation(releases("g", gone.UUID, kind=REPLACED))
                    rm.flush()
            self._note(response)

    heard = Confirming()
    rm, _ = registered(client, heard=heard)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("g", gang={"vcore": 200}))
    rm.update_allocation(asks("g", "ph-0", "ph-1", group="tg", placeholder=True))
    rm.update_allocation(asks("g", "m-0", "m-1", group="tg"))
    heard.wait_for(lambda messages: {"m-0", "m-1"} <= {*placed(messages)})
    until(serving, lambda core: not core.application("g").placeholders)
