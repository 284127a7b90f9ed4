"""Connections are bounded, of one client and of all, and a client that connects finds a place (Q16)."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from quadriga.base.pacing import LogPace
from quadriga.si import descriptors
from quadriga.si.open_connections import OpenConnections
from quadriga.si.server import Limits
from quadriga.si.server import server as server_module
from quadriga.si.server.connections import Connections
from tests.si.wire import house, until


class Port:
    """A listener in this process, and connections to it from addresses of loopback."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.number = self._listener.getsockname()[1]
        self._accepted: list[socket.socket] = []
        self.clients: list[socket.socket] = []

    def connect(self, count: int, host: str = "127.0.0.1") -> list[socket.socket]:
        made = []
        for _ in range(count):
            client = socket.create_connection(
                ("127.0.0.1", self.number), timeout=60, source_address=(host, 0)
            )
            self._accepted.append(self._listener.accept()[0])
            made.append(client)
        self.clients += made
        return made

    def close(self) -> None:
        for each in (*self.clients, *self._accepted, self._listener):
            each.close()


@pytest.fixture
def port() -> Iterator[Port]:
    opened = Port()
    yield opened
    opened.close()


def bounded(port: Port, **limits: int) -> Connections:
    connections = Connections(Limits(**limits))
    connections.port = port.number
    return connections


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


def test_q16_the_oldest_connections_without_calls_of_one_client_are_closed(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    """Another client keeps its own, and one that has a call outlives those without."""
    connections = bounded(port, connections=100, connections_per_client=3)
    other = port.connect(3, "127.0.0.3")
    old = port.connect(3)
    assert connections.close_surplus(frozenset()) == 0
    busy = "ipv4:{}:{}".format(*old[0].getsockname())
    with caplog.at_level(logging.WARNING, "quadriga.grpc"):
        new = port.connect(2)
        assert connections.close_surplus(frozenset({busy})) == 2
        assert [is_open(each) for each in (*old, *new)] == [True, False, False, True, True]
        assert connections.closed == 2
        port.connect(2)
        assert connections.close_surplus(frozenset({busy}))
    assert all(map(is_open, (old[0], *other)))
    [line] = [record.getMessage() for record in caplog.records]  # once a minute
    assert "of 127.0.0.1" in line and "connections_per_client" in line


def test_q16_there_is_always_room_for_a_new_connection(port: Port) -> None:
    """An eighth of the places is free although no client is beyond its own bound."""
    connections = bounded(port, connections=8, connections_per_client=8)
    clients = [port.connect(1, f"127.0.0.{host}")[0] for host in range(2, 10)]
    connections.close_surplus(frozenset())
    assert sum(map(is_open, clients)) == 7


def test_q16_a_pace_says_how_many_lines_it_left_out() -> None:
    now = [0.0]
    pace = LogPace(lambda: now[0])
    assert [pace.due() for _ in range(4)] == [0, None, None, None]
    now[0] = 60.0
    assert pace.due() == 3


@pytest.mark.parametrize(
    ("count", "most", "of_client"), [(1024, 448, 224), (None, 1000, 500), (65_536, 1000, 500)]
)
def test_q16_the_bound_is_below_the_descriptors_that_exist(
    count: int | None, most: int, of_client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "available", lambda: count)
    connections = Connections(Limits())
    assert (connections.most, connections.most_of_client) == (most, of_client)


async def test_q16_a_resource_manager_registers_while_idle_connections_fill_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "_LOOK_S", 0.5)
    limits = Limits(connections=8, connections_per_client=4)
    async with house(limits=limits) as place:
        target = ("127.0.0.1", place.server.port)
        pairs = [await asyncio.open_connection(*target) for _ in range(20)]
        ends = [asyncio.ensure_future(reader.read()) for reader, _ in pairs]
        await until(lambda: sum(each.done() for each in ends) >= 16, "the surplus")
        rm = place.rm()
        # On a busy machine its call may begin after the look: it tries again, as clients do.
        while True:
            try:
                await rm.begin()
                break
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
        closed = place.server.connections.closed
        more = [await asyncio.open_connection(*target) for _ in range(5)]
        await until(lambda: place.server.connections.closed > closed, "the surplus")
        await rm.has_node()  # a connection with streams is none of the surplus
        for _, writer in (*pairs, *more):
            writer.close()
        await asyncio.gather(*ends, return_exceptions=True)


class Connection(asyncio.Transport):
    def __init__(self, address: str | None) -> None:
        super().__init__({"peername": (address, 1) if address else None})
        self.ended = False

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True


def test_q16_one_address_has_a_bound_and_what_ends_makes_room(caplog: Any) -> None:
    connections = OpenConnections("the port", 4, 2)
    first, second, third = (Connection("10.0.0.1") for _ in range(3))
    assert connections.add(first) == connections.add(second) == ""
    assert connections.add(third) == (
        "10.0.0.1 has 2 connections, more are not allowed (--max-connections-per-client)"
    )
    assert "the port: 10.0.0.1 has 2 connections" in caplog.text
    assert connections.add(Connection("::ffff:10.0.0.1"))  # the same address
    assert connections.add(Connection("10.0.0.2")) == ""
    first.ended = True
    assert connections.add(third) == ""


def test_q16_the_oldest_of_the_address_goes_and_of_all_that_of_who_has_most(caplog: Any) -> None:
    connections = OpenConnections("the port", 4, 3)
    made = [Connection(address) for address in "aaaabc"]
    for each in made:
        connections.add_newest(each)
    assert [each.ended for each in made] == [True, True, False, False, False, False]
    assert len(caplog.records) == 1  # a minute


@pytest.mark.parametrize("share", [1, 10])
def test_q16_open_files_lower_both_bounds(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadriga.si.descriptors.available", lambda: 1024)
    connections = OpenConnections("the port", 1000, 500, share=share)
    assert (connections.most, connections.most_of_client) == (448 // share, 224 // share)
