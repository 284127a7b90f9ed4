"""The connections for short requests: replies in every form that HTTP/1.1 allows, and broken ones."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.k8s.lifecycles.connection import SENT
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.connections import Broken, Connection, Connections
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Fixed, Login, LoginError
from quadriga.k8s.transport.requester import NoAnswer

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
#: s: only a hang takes so long
BOUND = 600.0


@asynccontextmanager
async def connected(found: Server) -> AsyncIterator[Connections]:
    with closing(Connections(found.url, None)) as connections:
        yield connections


class Server:
    """Answers each request on its connections with the next reply; None closes the connection."""

    def __init__(self) -> None:
        self.replies: list[bytes | None] = []
        self.connections = 0
        self.requests: list[bytes] = []
        self.closes_after_reply = False
        self.url = ""
        self._writers: list[asyncio.StreamWriter] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                reply = self.replies.pop(0) if self.replies else LENGTH
                if reply is None:
                    return
                writer.write(reply)
                await writer.drain()
                if self.closes_after_reply:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def hang_up(self) -> None:
        for each in self._writers:
            each.transport.abort()


@asynccontextmanager
async def server(
    *replies: bytes | None, context: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    found = Server()
    found.replies.extend(replies)
    listening = await asyncio.start_server(found.handle, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    found.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield found
    finally:
        listening.close()
        found.hang_up()
        await asyncio.sleep(0.01)


async def ask(url: str, times: int = 1) -> list[Any]:
    with closing(Connections(url, None)) as connections:
        found = []
        for _ in range(times):
            reply = await connections.exchange("GET", REQUEST, BOUND)
            found.append((reply.status, reply.body))
    await asyncio.sleep(0)
    return found


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (LENGTH, (201, b"hello")),
        (CHUNKED, (200, b"hello")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH, (201, b"hello")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (200, b"")),
        (b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH:0\r\n\r\n", (200, b"")),
    ],
)
async def test_k191_a_reply_keeps_its_connection(reply: bytes, expected: tuple[int, bytes]) -> None:
    async with server(reply, LENGTH) as found:
        assert await ask(found.url, 2) == [expected, (201, b"hello")]
        assert found.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" + LENGTH,
    ],
)
async def test_after_some_replies_the_connection_is_not_used_again(reply: bytes) -> None:
    async with server(reply, LENGTH) as found:
        assert await ask(found.url, 2) == [(200, b"hi"), (201, b"hello")]
        assert found.connections == 2


NO_REPLIES = (
    b"SSH-2.0-OpenSSH\r\n\r\n\r\n",
    b"HTTP/1.1 abc\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
)
TOO_EARLY = (
    None,
    b"HTTP/1.1 200 OK\r\nContent-Le",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
)


@pytest.mark.parametrize("reply", [*NO_REPLIES, *TOO_EARLY])
async def test_what_is_no_reply_and_what_ends_too_early_is_an_error(reply: bytes | None) -> None:
    async with server(reply) as found:
        found.closes_after_reply = reply in TOO_EARLY
        with pytest.raises(Broken, match=None if reply in TOO_EARLY else "no HTTP"):
            await ask(found.url)


async def test_a_reply_may_end_with_its_connection_and_none_ends_after_its_time() -> None:
    async with server(b"HTTP/1.1 200 OK\r\n\r\nall of it") as found:
        found.closes_after_reply = True
        assert await ask(found.url) == [(200, b"all of it")]
    async with server(b"") as found, connected(found) as connections:
        with pytest.raises(Broken, match="no answer in time"):
            await connections.exchange("GET", REQUEST, 0.02)
        found.replies.clear()  # also when the connection took longer to open
        assert (await connections.exchange("GET", REQUEST, BOUND)).status == 201
        assert found.connections == 2


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("DELETE", True), ("POST", False)])
async def test_a_kept_connection_that_the_server_has_closed(method: str, again: bool) -> None:
    async with server(LENGTH, None, LENGTH) as found, connected(found) as connections:
        await connections.exchange(method, REQUEST, BOUND)
        if again:
            assert (await connections.exchange(method, REQUEST, BOUND)).status == 201
        else:
            # It may have taken effect: whoever sends it looks first.
            with pytest.raises(Broken):
                await connections.exchange(method, REQUEST, BOUND)


async def test_a_closed_connection_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server() as found, connected(found) as connections:
        await connections.exchange("POST", REQUEST, BOUND)
        found.hang_up()
        while connections._idle[0].open:
            await asyncio.sleep(0.001)
        await connections.exchange("POST", REQUEST, BOUND)
        # Nor is one that nobody has used for long: the server may be closing it.
        loop = asyncio.get_running_loop()
        before = loop.time
        monkeypatch.setattr(loop, "time", lambda: before() + 61)
        await connections.exchange("POST", REQUEST, BOUND)
        assert found.connections == 3


async def test_a_request_that_is_cancelled_leaves_no_connection_behind() -> None:
    async with server(b"") as found, connected(found) as connections:
        task = asyncio.create_task(connections.exchange("GET", REQUEST, BOUND))
        while not found.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not connections._idle


@given(st.lists(st.integers(1, 40), max_size=20), st.sampled_from([LENGTH, CHUNKED]))
async def test_a_reply_may_come_in_any_pieces(sizes: list[int], reply: bytes) -> None:
    loop = asyncio.get_running_loop()
    connection = Connection(loop)
    connection.state = SENT
    waiter = connection._waiter = loop.create_future()
    rest = reply
    for size in sizes:
        if waiter.done():
            break
        connection.received(rest[:size])
        rest = rest[size:]
    if not waiter.done():
        connection.received(rest)
    assert (await waiter).body == b"hello"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test".split()
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


async def test_k191_the_servers_certificate_is_verified(certificate: tuple[Path, Path]) -> None:
    key, cert = certificate
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(cert, key)
    limits = Limits(1000, 1000, 32, clock=lambda: 0)
    async with server(LENGTH, LENGTH, context=ours) as found:
        trusting = ssl.create_default_context(cafile=cert)
        async with Client(Login(found.url, trusting), limits) as client:
            assert await client.request("GET", "/a") == (201, b"hello")
            async with client.stream("/b?watch=1", BOUND) as stream:
                assert [chunk async for chunk in stream.chunks()] == [b"hello"]
        async with Client(Login(found.url, ssl.create_default_context()), limits) as client:
            with pytest.raises(NoAnswer, match="certificate verify failed"):
                await client.request("GET", "/a")
            with pytest.raises(NoAnswer, match="certificate verify failed"):
                async with client.stream("/b?watch=1", BOUND):
                    pass


async def test_what_stands_in_a_request_but_no_token_with_a_line_end() -> None:
    limits = Limits(1000, 1000, 32, clock=lambda: 0)
    async with server() as found:
        login = Login(f"{found.url}/clusters/one", None, Fixed("Bearer abc"))
        async with Client(login, limits) as client:
            await client.request("GET", "/api/v1/pods?limit=5")
        (request,) = found.requests
        assert request.startswith(
            b"GET /clusters/one/api/v1/pods?limit=5 HTTP/1.1\r\nHost: 127.0.0.1:"
        )
        assert b"\r\nAuthorization: Bearer abc\r\n" in request
        assert b"Content-Length" not in request
    with pytest.raises(LoginError, match="no header may have"):
        await Fixed("Bearer abc\r\nX-Evil: 1").header()


def chunked(*parts: bytes, end: bool = True) -> bytes:
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n" * end


async def read_all(url: str, timeout: float = BOUND) -> bytes:
    with (
        closing(Connections(url, None)) as connections,
        closing(await connections.connect(timeout)) as connection,
    ):
        await connection.stream(REQUEST, timeout)
        found = []
        while part := await connection.more():
            found.append(part)
        return b"".join(found)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (chunked(b"one\n", b"two\n"), b"one\ntwo\n"),
        (chunked(), b""),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
    ],
)
async def test_a_stream_is_read_to_its_end(reply: bytes, expected: bytes) -> None:
    async with server(reply) as found:
        found.closes_after_reply = True
        assert await read_all(found.url) == expected


@pytest.mark.parametrize(
    ("reply", "closes", "why"),
    [
        (chunked(b"half", end=False), True, ""),
        (None, True, ""),
        (b"SSH-2.0-OpenSSH\r\n\r\n", True, ""),
        (b"", False, "no answer in time"),
        (chunked(b"half", end=False), False, "no answer in time"),
    ],
)
async def test_a_stream_ends_in_time_or_fails(reply: bytes | None, closes: bool, why: str) -> None:
    async with server(reply) as found:
        found.closes_after_reply = closes
        with pytest.raises(Broken, match=why or None):
            await read_all(found.url, BOUND if closes else 0.05)


async def test_k15_a_stream_that_nobody_reads_is_held_back() -> None:
    parts = [b"x" * 10_000 + b"%04d\n" % number for number in range(600)]
    async with server(chunked(*parts)) as found, connected(found) as connections:
        connection = await connections.connect(BOUND)
        await connection.stream(REQUEST, BOUND)
        # The server is in this loop too: it stops once the connection takes no more.
        before = -1
        while connection._unread != before:
            before = connection._unread
            await asyncio.sleep(0.01)
        assert before < 2 << 20
        data = []
        while part := await connection.more():
            data.append(part)
        assert b"".join(data) == b"".join(parts)
        connection.close()


@pytest.mark.parametrize("secure", [False, True])
async def test_a_body_not_sent_at_once(secure: bool, certificate: tuple[Path, Path]) -> None:
    body = bytes(range(256)) * (1 << 14)
    got: list[bytes] = []
    closed = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.append(await reader.readexactly(len(body)))
        writer.write(LENGTH)
        await writer.drain()
        with suppress(OSError):
            await reader.read()
            writer.close()
            await writer.wait_closed()
        closed.set()

    key, cert = certificate
    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
    listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    url = f"{'https' if secure else 'http'}://127.0.0.1:{port}"
    trusting = ssl.create_default_context(cafile=cert)
    connections = Connections(url, trusting)
    reply = await connections.exchange("POST", REQUEST + body, BOUND)
    assert (reply.body, got) == (b"hello", [body])
    connections.close()
    listening.close()
    await closed.wait()
