"""A client whose connection is lost and comes back, and clients that leave (I6, I7, I8, I43)."""

import gc
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from quadriga.si import NodeResponse
from quadriga.si.client import (
    AWAY,
    CONNECTED,
    FORGOTTEN,
    Client,
    ClientError,
    RegisterAgain,
    Unreachable,
)
from tests.si.remote_side import (
    PATIENCE,
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
from tests.si.requests import apps, asks, nodes, register, work

# -- lost connections ------------------------------------------------------------------------------


def test_i6_a_connection_that_is_back_in_time_has_lost_nothing(
    client: Make, wire: Wire, serving: Serving
) -> None:
    """In the end each ask was placed once, was said once, and in the order of the scheduler."""
    told = Told()
    rm, heard = registered(client, watcher=told)
    rm.update_node(nodes("n1", vcore=10_000_000))
    rm.update_application(apps("a"))
    keys = [f"p-{n}" for n in range(500)]
    for n, key in enumerate(keys):
        rm.update_allocation(asks("a", key))
        if n % 100 == 50:
            wire.cut(mend=True)
    heard.wait_for_placed(len(keys))
    assert placed(heard.messages) == keys
    assert AWAY in told.states and FORGOTTEN not in told.states
    assert serving.service.read(
        lambda core: len(core.application("a").allocations) == len(keys) and not core.check()
    )


def test_i43_after_the_pause_it_registers_anew(client: Make, wire: Wire, serving: Serving) -> None:
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
    work(rm, "p")
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
    rm, _ = registered(client, watcher=told, max_pending=3)
    rm._client._timeout = 0.2  # it has registered, however long that took
    wire.cut()
    told.wait_for(lambda told: told.states[-1] == AWAY)
    for n in range(3):
        rm.update_node(nodes(f"n{n}"))
    with pytest.raises(Unreachable, match="3 requests wait, after 0.2 s"):
        rm.update_node(nodes("n3"))
    with pytest.raises(Unreachable, match="3 requests wait"):
        rm.flush()
    assert rm.waiting == 3


def test_something_else_or_nobody_there(client: Make) -> None:
    """What answers there does not speak the protocol."""
    server = grpc.server(ThreadPoolExecutor(1))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        with pytest.raises(ClientError, match="UNIMPLEMENTED"):
            client(address=address).register_resource_manager(register(), Heard())
    finally:
        server.stop(None).wait()
    with pytest.raises(Unreachable, match=address):
        client(address=address, timeout_s=0.1).register_resource_manager(register(), Heard())


# -- leaving ---------------------------------------------------------------------------------------


def test_i6_close_pauses_and_shutdown_ends(client: Make, wire: Wire, serving: Serving) -> None:
    """From a callback, and twice, as well. Registering waits for a scheduler that comes later."""
    left = threading.Event()

    class Leaving(Heard):
        def update_node(self, response: NodeResponse) -> None:
            rm.close()
            left.set()

    rm, _ = registered(client, heard=Leaving())
    rm.update_node(nodes("n1"))
    assert left.wait(PATIENCE)
    rm.close()
    rm.close()
    until(serving, lambda core: state_of(core) == "Paused")
    assert serving.service.read(lambda core: "n1" in core.partition().nodes)
    wire.cut()
    again = client()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(again.register_resource_manager, register(), Heard())
        wire.mend()
        waiting.result(PATIENCE)
    assert again.state == CONNECTED
    again.update_node(nodes("n2"))
    again.shutdown()
    assert serving.service.read(state_of) == "Stopped"
    for call in (rm.flush, again.flush, rm.shutdown):
        with pytest.raises(ClientError, match="closed"):
            call()


def test_no_thread_and_no_socket_is_left(client: Make, wire: Wire, serving: Serving) -> None:
    """Neither by clients that were closed nor by one that has come back."""

    def alive() -> Counter[str]:
        names = Counter(t.name.rstrip("0123456789_") for t in threading.enumerate())
        return Counter({name: n for name, n in names.items() if name.startswith("quadriga-")})

    before = alive()
    for n in range(5):
        with Client(serving.address, timeout_s=PATIENCE) as rm:
            rm.register_resource_manager(register(f"rm-{n}"), Heard())
            rm.update_node(nodes("n1", rm_id=f"rm-{n}"))
    assert alive() == before
    gc.collect()  # whatever was not closed would warn now, and warnings are errors
    told = Told()
    registered(client, watcher=told)

    def again(times: int) -> tuple[int, int]:
        for _ in range(times):
            before = len(told.states)
            wire.cut(mend=True)
            told.wait_for(lambda told, n=before: told.states[n:][-2:] == [AWAY, CONNECTED])
        gc.collect()
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    threads, files = again(3)
    more_threads, more_files = again(10)
    assert more_threads <= threads + 2  # gRPC's own come and go
    assert more_files <= files + 4
    until(serving, lambda core: state_of(core) == "Running")
