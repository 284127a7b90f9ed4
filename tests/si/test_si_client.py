"""The client of a remote scheduler: requests and answers, lost connections, leaving (I2, I6, I7, I43)."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quadriga.core import Scheduler
from quadriga.core.views import Views
from quadriga.si import (
    AllocationRequest,
    AllocationResponse,
    NodeResponse,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    RequestError,
    SchedulerAPI,
    TerminationType,
    UpdateConfigurationRequest,
)
from quadriga.si.access import Access
from quadriga.si.client import (
    AWAY,
    CONNECTED,
    FORGOTTEN,
    AsyncClient,
    Client,
    ClientError,
    RegisterAgain,
    Unreachable,
)
from quadriga.si.server import Limits
from quadriga.sim.script import ONE_QUEUE
from tests.si.remote_side import PATIENCE, SOON, Heard, Serving, Told, Wire, placed
from tests.si.requests import apps, asks, nodes, releases

Make = Callable[..., Client]


@pytest.fixture
def serving() -> Iterator[Serving]:
    with Serving() as serving:
        yield serving


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with Wire(serving.port) as wire:
        yield wire


@pytest.fixture
def client(wire: Wire) -> Iterator[Make]:
    made: list[Client] = []

    def make(**how: Any) -> Client:
        how = {"backoff": SOON, "patience_s": PATIENCE, **how}
        made.append(Client(how.pop("address", wire.address), **how))
        return made[-1]

    yield make
    for each in made:
        each.close()


def register(rm_id: str = "rm", **more: Any) -> RegisterResourceManagerRequest:
    return RegisterResourceManagerRequest(rmID=rm_id, config=ONE_QUEUE, **more)


def until(serving: Serving, holds: Callable[[Scheduler], bool]) -> None:
    """Wait for what becomes of the scheduler by itself; each look is a turn of its owner."""
    for _ in range(200_000):
        if serving.service.read(holds):
            return
    raise AssertionError("it did not come to that")


def state_of(scheduler: Scheduler, rm_id: str = "rm") -> str:
    return next((rm.state for rm in scheduler.resource_managers() if rm.rm_id == rm_id), "")


# -- requests and answers --------------------------------------------------------------------------


def test_i3_it_is_a_scheduler_api(client: Make) -> None:
    assert isinstance(client(), SchedulerAPI)


def test_register_add_nodes_submit_and_see_it_run(client: Make) -> None:
    heard = Heard()
    rm = client()
    rm.register_resource_manager(register(), heard)
    assert rm.state == CONNECTED
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "p", "q"))
    heard.wait_for(lambda messages: placed(messages) == ["p", "q"])
    assert isinstance(heard.messages[0], NodeResponse)


def test_the_order_of_requests_is_kept_across_streams(client: Make) -> None:
    """No ask comes before its application, though they travel on different streams."""
    heard = Heard()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1", vcore=200_000))
    for n in range(100):
        rm.update_application(apps(f"app-{n}"))
        rm.update_allocation(asks(f"app-{n}", f"p-{n}"))
    heard.wait_for(lambda messages: len(placed(messages)) == 100)
    rejected = [m for m in heard.messages if isinstance(m, AllocationResponse) and m.rejected]
    assert rejected == []


def test_a_message_may_be_changed_after_it_was_handed_over(client: Make) -> None:
    heard = Heard()
    rm = client()
    rm.register_resource_manager(register(), heard)
    request = nodes("n1")
    rm.update_node(request)
    request.nodes[0].nodeID = "n2"
    heard.wait_for(lambda messages: bool(messages))
    assert heard.messages[0].accepted[0].nodeID == "n1"


def test_i43_before_the_registration_nothing_can_be_said(client: Make) -> None:
    rm = client()
    for call in (rm.flush, lambda: rm.update_node(nodes("n1")), lambda: rm.step(0)):
        with pytest.raises(RegisterAgain):
            call()


def test_another_rm_id_is_refused_here_as_there(client: Make, serving: Serving) -> None:
    rm = client()
    rm.register_resource_manager(register(), Heard())
    request = AllocationRequest(rmID="other")
    told = []
    for api in (rm, serving.service):
        with pytest.raises(RequestError) as error:
            api.update_allocation(request)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_a_registration_that_is_refused(client: Make, serving: Serving) -> None:
    rm = client()
    for request in (
        register(""),
        RegisterResourceManagerRequest(rmID="rm", config="nonsense: 1"),
        register(extraConfig={"rm.pauseTimeout": "soon"}),
    ):
        told = []
        for api in (rm, serving.service):
            with pytest.raises(RequestError) as error:
                api.register_resource_manager(request, Heard())
            told.append(error.value.args)
        assert told[0] == told[1]
    with pytest.raises(RequestError, match="printable"):
        rm.register_resource_manager(register("r\u00e9"), Heard())


def test_a_registration_that_is_refused_leaves_the_older_one(client: Make) -> None:
    heard, told = Heard(), Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(), heard)
    with pytest.raises(RequestError, match="nonsense"):
        rm.register_resource_manager(
            RegisterResourceManagerRequest(rmID="rm", config="nonsense: 1"), Heard()
        )
    rm.update_node(nodes("n1"))
    heard.wait_for(lambda messages: len(messages) == 1)
    assert told.states == [CONNECTED, AWAY, CONNECTED]


def test_closing_while_registering(client: Make, wire: Wire) -> None:
    """Whoever waits for a registration hears that it will not come."""
    wire.cut()
    rm = client()
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            rm.register_resource_manager(register(), Heard())
        except BaseException as error:
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    rm.close()
    waiting.join(PATIENCE)
    assert isinstance(failed[0], ClientError)


def test_i39_a_configuration_that_is_refused_changes_nothing(
    client: Make, serving: Serving
) -> None:
    rm = client()
    rm.register_resource_manager(register(), Heard())
    with pytest.raises(RequestError, match="nonsense") as error:
        rm.update_configuration(UpdateConfigurationRequest(rmID="rm", config="nonsense: 1"))
    assert error.value.field == "config"
    rm.update_configuration(UpdateConfigurationRequest(rmID="rm", config=ONE_QUEUE))


def test_a_request_that_is_refused_whole_is_told_and_the_others_go_on(client: Make) -> None:
    heard, told = Heard(), Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    wrong = releases("", "x")
    rm.update_allocation(asks("a", "p"))
    rm.update_allocation(wrong)
    rm.update_allocation(asks("a", "q"))
    told.wait_for(lambda told: bool(told.refusals))
    ((request, error),) = told.refusals
    assert request == wrong
    assert (error.request, error.field) == (
        "AllocationRequest",
        "releases.allocationsToRelease[0].applicationID",
    )
    heard.wait_for(lambda messages: sorted(placed(messages)) == ["p", "q"])
    rm.flush()
    assert told.states == [CONNECTED]  # the connection itself was not lost


def test_a_callback_that_raises_does_not_stop_what_follows(client: Make) -> None:
    class Clumsy(Heard):
        def update_node(self, response: NodeResponse) -> None:
            super()._note(response)
            raise ValueError("clumsy")

    heard = Clumsy()
    rm = client()
    rm.register_resource_manager(register(), heard)
    for n in range(1, 3):
        rm.update_node(nodes(f"n{n}"))
        heard.wait_for(lambda messages, n=n: len(messages) == n)


def test_a_callback_may_send_requests(client: Make) -> None:
    class Eager(Heard):
        def update_application(self, response: Any) -> None:
            self._note(response)
            if response.accepted:
                rm.update_allocation(asks("a", "p"))
                rm.flush()

    heard = Eager()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    heard.wait_for(lambda messages: placed(messages) == ["p"])


def test_i36_predicates_that_raise_say_no(client: Make) -> None:
    class Picky(Heard):
        def predicates(self, args: PredicatesArgs) -> str | None:
            if args.nodeID == "n1":
                raise ValueError("never seen such a node")
            return None

    heard = Picky()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1", "n2"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "p"))
    heard.wait_for(lambda messages: placed(messages) == ["p"])
    (new,) = [m for m in heard.messages if isinstance(m, AllocationResponse)]
    assert new.new[0].nodeID == "n2"


def test_i40_events_come_as_in_process(client: Make) -> None:
    heard = Heard()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1"))
    heard.wait_for_events(lambda events: any(e.objectID == "n1" for e in events))


def test_i4_it_has_a_part_of_the_state_dump(client: Make, serving: Serving) -> None:
    class Dumping(Heard):
        def get_state_dump(self) -> str:
            return '{"pods": 3}'

    rm = client()
    rm.register_resource_manager(register(), Dumping())
    dump = json.loads(serving.service.state_dump(Views(serving.service.scheduler)))
    assert dump["rmDiagnostics"] == {"pods": 3}


def test_explain_tells_where_and_why(client: Make) -> None:
    heard = Heard()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1", vcore=1000))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "huge", vcore=9000))
    heard.wait_for(lambda messages: len(messages) >= 2)
    rm.flush()
    told = rm.explain("a", "huge")
    assert (told.queue, told.state) == ("root.default", "Accepted")
    assert told.reasons
    assert not rm.explain("a").reasons
    with pytest.raises(RequestError, match="'nobody' in partition 'default' is not known"):
        rm.explain("nobody")


def test_a_step_needs_a_scheduler_with_the_clients_clock(client: Make) -> None:
    rm = client()
    rm.register_resource_manager(register(), Heard())
    with pytest.raises(RequestError, match="clock of its own"):
        rm.step(0)


# -- lost connections ------------------------------------------------------------------------------


def test_i6_a_connection_that_is_back_in_time_has_lost_nothing(
    client: Make, wire: Wire, serving: Serving
) -> None:
    """Asks go out and allocations come in, while the connection breaks again and again: in the end
    each ask was placed once, was said once, and in the order of the scheduler."""
    heard, told = Heard(), Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1", vcore=10_000_000))
    rm.update_application(apps("a"))
    keys = [f"p-{n}" for n in range(2000)]
    for n, key in enumerate(keys):
        rm.update_allocation(asks("a", key))
        if n % 400 == 200:
            wire.cut(mend=True)
    heard.wait_for(lambda messages: len(placed(messages)) >= len(keys))
    assert placed(heard.messages) == keys
    assert AWAY in told.states
    assert FORGOTTEN not in told.states
    assert serving.service.read(
        lambda core: len(core.application("a").allocations) == len(keys) and not core.check()
    )


def test_what_is_said_while_away_is_sent_later(client: Make, wire: Wire) -> None:
    heard, told = Heard(), Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(), heard)
    wire.cut()
    told.wait_for(lambda told: told.states[-1] == AWAY)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "p"))
    assert rm.waiting == 3
    wire.mend()
    heard.wait_for(lambda messages: placed(messages) == ["p"])
    assert told.states == [CONNECTED, AWAY, CONNECTED]
    assert rm.waiting == 0


def test_i6_while_it_is_away_the_rm_is_paused(client: Make, wire: Wire, serving: Serving) -> None:
    rm = client()
    rm.register_resource_manager(register(), Heard())
    assert serving.service.read(state_of) == "Running"
    wire.cut()
    until(serving, lambda core: state_of(core) == "Paused")
    wire.mend()
    until(serving, lambda core: state_of(core) == "Running")


def test_i43_after_the_pause_it_has_to_register_anew(
    client: Make, wire: Wire, serving: Serving
) -> None:
    """It is told, refuses to take requests, and after registering works as on the first day."""
    heard, told = Heard(), Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(extraConfig={"rm.pauseTimeout": "1ms"}), heard)
    rm.update_node(nodes("n1"))
    rm.flush()
    wire.cut()
    until(serving, lambda core: state_of(core) == "Stopped")
    wire.mend()
    told.wait_for(lambda told: told.states[-1] == FORGOTTEN)
    with pytest.raises(RegisterAgain):
        rm.update_node(nodes("n2"))
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", "p"))
    heard.wait_for(lambda messages: placed(messages) == ["p"])
    assert told.states == [CONNECTED, AWAY, FORGOTTEN, CONNECTED]


def test_a_watcher_may_register_anew_by_itself(client: Make, serving: Serving) -> None:
    """The server is replaced and knows nobody: registering in the watcher is all it takes."""
    heard = Heard()

    class Insistent(Told):
        def changed(self, state: str, why: str) -> None:
            super().changed(state, why)
            if state == FORGOTTEN:
                rm.register_resource_manager(register(), heard)
                rm.update_node(nodes("after"))

    told = Insistent()
    rm = client(watcher=told, address=serving.address)
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("before"))
    heard.wait_for(lambda messages: len(messages) == 1)
    serving.restart()
    heard.wait_for(lambda messages: messages[-1].accepted[0].nodeID == "after")
    assert told.states == [CONNECTED, AWAY, FORGOTTEN, CONNECTED]


def test_i7_whoever_registers_last_is_it(client: Make) -> None:
    """A second process with the same rmID takes over; the first is told."""
    told, heard = Told(), Heard()
    first, second = client(watcher=told), client()
    first.register_resource_manager(register(), Heard())
    second.register_resource_manager(register(), heard)
    told.wait_for(lambda told: told.states[-1] == FORGOTTEN)
    second.update_node(nodes("n1"))
    heard.wait_for(lambda messages: len(messages) == 1)


def test_what_waits_is_bounded(client: Make, wire: Wire) -> None:
    told = Told()
    rm = client(watcher=told, most_waiting=3, patience_s=0.2)
    rm.register_resource_manager(register(), Heard())
    wire.cut()
    told.wait_for(lambda told: told.states[-1] == AWAY)
    for n in range(3):
        rm.update_node(nodes(f"n{n}"))
    with pytest.raises(Unreachable, match="3 requests wait, after 0.2 s"):
        rm.update_node(nodes("n3"))
    with pytest.raises(Unreachable, match="3 requests wait"):
        rm.flush()
    assert rm.waiting == 3


def test_nobody_there(client: Make) -> None:
    with Serving() as gone:
        address = gone.address
    rm = client(address=address, patience_s=0.1)
    with pytest.raises(Unreachable, match=address):
        rm.register_resource_manager(register(), Heard())


def test_registering_waits_for_a_scheduler_that_is_not_there_yet(client: Make, wire: Wire) -> None:
    wire.cut()
    rm = client()
    done = threading.Thread(
        target=lambda: rm.register_resource_manager(register(), Heard()), daemon=True
    )
    done.start()
    wire.mend()
    done.join(PATIENCE)
    assert rm.state == CONNECTED


def test_something_else_there(client: Make) -> None:
    """What answers there does not speak the protocol."""
    import grpc

    server = grpc.server(__import__("concurrent.futures").futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        rm = client(address=f"127.0.0.1:{port}")
        with pytest.raises(ClientError, match="UNIMPLEMENTED"):
            rm.register_resource_manager(register(), Heard())
    finally:
        server.stop(None).wait()


# -- leaving ---------------------------------------------------------------------------------------


def test_i6_close_is_a_pause_and_shutdown_is_for_good(client: Make, serving: Serving) -> None:
    rm = client()
    rm.register_resource_manager(register(), Heard())
    rm.update_node(nodes("n1"))
    rm.flush()
    rm.close()
    until(serving, lambda core: state_of(core) == "Paused")
    assert serving.service.read(lambda core: "n1" in core.partition().nodes)
    again = client()
    again.register_resource_manager(register(), Heard())
    again.update_node(nodes("n2"))
    again.shutdown()
    assert serving.service.read(state_of) == "Stopped"
    for call in (rm.flush, again.flush, rm.shutdown):
        with pytest.raises(ClientError, match="closed"):
            call()


def test_closing_twice_and_from_a_callback(client: Make) -> None:
    left = threading.Event()

    class Leaving(Heard):
        def update_node(self, response: NodeResponse) -> None:
            rm.close()
            left.set()

    rm = client()
    rm.register_resource_manager(register(), Leaving())
    rm.update_node(nodes("n1"))
    assert left.wait(PATIENCE)
    rm.close()
    rm.close()


def test_no_thread_and_no_socket_is_left(serving: Serving) -> None:
    def alive() -> Counter[str]:
        return Counter(t.name.rstrip("0123456789_") for t in threading.enumerate())

    before = alive()
    for n in range(5):
        with Client(serving.address, patience_s=PATIENCE) as rm:
            rm.register_resource_manager(register(f"rm-{n}"), Heard())
            rm.update_node(nodes("n1", rm_id=f"rm-{n}"))
    ours = {name: n for name, n in alive().items() if name.startswith("quadriga-")}
    assert ours == {name: n for name, n in before.items() if name.startswith("quadriga-")}
    gc.collect()  # whatever was not closed would warn now, and warnings are errors


def test_coming_back_leaves_nothing_behind(client: Make, wire: Wire, serving: Serving) -> None:
    told = Told()
    rm = client(watcher=told)
    rm.register_resource_manager(register(), Heard())

    def again(times: int) -> tuple[int, int]:
        for _ in range(times):
            before = len(told.states)
            wire.cut(mend=True)
            told.wait_for(lambda told, n=before: told.states[n:][-2:] == [AWAY, CONNECTED])
        gc.collect()
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    threads, files = again(3)
    more_threads, more_files = again(20)
    assert more_threads <= threads + 2  # gRPC's own come and go
    assert more_files <= files + 4
    until(serving, lambda core: state_of(core) == "Running")


# -- who may ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Any) -> Iterator[Serving]:
    tokens = tmp_path / "tokens"
    tokens.write_text("shim rm:rm plain:s3cret-token-of-the-shim\n")
    tokens.chmod(0o600)
    with Serving(access=Access.from_file(tokens)) as serving:
        yield serving


def test_a_token_opens_and_no_other_does(client: Make, guarded: Serving) -> None:
    rm = client(address=guarded.address, token="s3cret-token-of-the-shim")
    rm.register_resource_manager(register(), Heard())
    rm.update_node(nodes("n1"))
    rm.flush()
    for token in (None, "wrong"):
        stranger = client(address=guarded.address, token=token)
        with pytest.raises(PermissionError) as error:
            stranger.register_resource_manager(register(), Heard())
        assert "wrong" not in str(error.value)
    with pytest.raises(PermissionError, match="other"):
        client(address=guarded.address, token="s3cret-token-of-the-shim").register_resource_manager(
            register("other"), Heard()
        )


# -- asyncio ---------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_same_with_await(serving: Serving) -> None:
    class Waiting:
        """Methods may be async, and those that are missing are not missed."""

        def __init__(self) -> None:
            self.news: asyncio.Queue[str] = asyncio.Queue()

        async def update_allocation(self, response: AllocationResponse) -> None:
            await asyncio.sleep(0)
            for new in response.new:
                await self.news.put(new.allocationKey)

        def update_application(self, response: Any) -> None:
            pass

        async def update_node(self, response: Any) -> None:
            await client.update_application(apps("a"))
            await client.update_allocation(asks("a", "p"))

        async def predicates(self, args: PredicatesArgs) -> str | None:
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


def test_a_slow_callback_does_not_hold_up_others_nor_lose_anything(
    client: Make, serving: Serving
) -> None:
    """One RM stands still in its callback, the other gets its answers; then the first goes on."""
    go_on = threading.Event()

    class Slow(Heard):
        def update_allocation(self, response: AllocationResponse) -> None:
            assert go_on.wait(PATIENCE)
            self._note(response)

    slow, quick = Slow(), Heard()
    for rm_id, heard in (("slow", slow), ("quick", quick)):
        rm = client()
        rm.register_resource_manager(register(rm_id), heard)
        rm.update_node(nodes("n1", vcore=10_000_000, rm_id=rm_id))
        rm.update_application(apps("a", rm_id=rm_id))
        for n in range(10):
            keys = [f"p-{n}-{m}" for m in range(200)]
            rm.update_allocation(asks("a", *keys, rm_id=rm_id))
    quick.wait_for(lambda messages: len(placed(messages)) == 2000)
    assert placed(slow.messages) == []
    go_on.set()
    slow.wait_for(lambda messages: len(placed(messages)) == 2000)
    assert len(set(placed(slow.messages))) == 2000


def test_g3_a_release_is_confirmed_over_the_wire(client: Make, serving: Serving) -> None:
    """A gang's placeholder is asked back, and replaced when the RM has confirmed (G29)."""

    class Confirming(Heard):
        def update_allocation(self, response: AllocationResponse) -> None:
            for gone in response.released:
                if gone.terminationType == TerminationType.PLACEHOLDER_REPLACED:
                    rm.update_allocation(
                        releases("g", gone.UUID, kind=TerminationType.PLACEHOLDER_REPLACED)
                    )
            self._note(response)

    heard = Confirming()
    rm = client()
    rm.register_resource_manager(register(), heard)
    rm.update_node(nodes("n1"))
    rm.update_application(apps("g", gang={"vcore": 200}))
    rm.update_allocation(asks("g", "ph-0", "ph-1", group="tg", placeholder=True))
    rm.update_allocation(asks("g", "m-0", "m-1", group="tg"))
    heard.wait_for(lambda messages: {"m-0", "m-1"} <= {*placed(messages)})
    until(serving, lambda core: not core.application("g").placeholders)


def test_limits_of_the_server_are_said(client: Make) -> None:
    with Serving(limits=Limits(resource_managers=1)) as small:
        client(address=small.address).register_resource_manager(register(), Heard())
        with pytest.raises(ClientError, match="RESOURCE_EXHAUSTED"):
            client(address=small.address).register_resource_manager(register("two"), Heard())
