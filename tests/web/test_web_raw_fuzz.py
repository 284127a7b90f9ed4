"""Bytes on a socket that no client sends: whatever comes, the server answers with a status that blames the
sender or hangs up, serves everybody else, logs no bug, and shows no file of another folder.
`QUADRIGA_FUZZ_SEEDS=0:500` tries other seeds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, on_a_port

pytestmark = pytest.mark.asyncio

SECRET = "what-nobody-may-see"

METHODS = (
    *(("GET",) * 12),
    *("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"),
    *("get", "G\x00T", "PRI", "", "G" * 5000, "PROPFIND", "\xff"),
)
VERSIONS = (*("HTTP/1.1",) * 8, "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "", "http/1.1", "X")
NAMES = (
    *("default", "root", "root.prod", "root.prod.gangs", "root.odd%3Aqueue", "rm", "nobody", ""),
    *(
        "%72oot",
        "root%2Eprod",
        "root%00",
        "%2F",
        "%2e%2e",
        "%",
        "%zz",
        "%ff%fe",
        "%C0%AE",
        "%u0041",
    ),
    *("a%0d%0aX-Evil: 1", "%F0%9F%90%8E", "..;", "root.prod%2520", "*", "x" * 3000, "%41" * 1500),
    *("%5Broot%5D", "root%23", "+", "root?x", "<script>", "$(id)", "%7B%7B7*7%7D%7D"),
)
PATHS = (
    *("/ws/v1/partition/{}/queues", "/ws/v1/partition/default/queue/{}", "/ws/v1/{}"),
    "/ws/v1/partition/{}/queue/{}/applications",
    "/ws/v1/partition/default/application/{}",
    "/ws/v1/partition/default/applications/{}?status={}",
    *("/ws/v1/partition/default/node/{}", "/ws/v1/partition/default/usage/user/{}"),
    *("/ws/v1/events/batch?start={}&count={}", "/ws/v1/config?rmID={}", "/ws/v1/clusters"),
    *("/ws/v1/validate-conf", "/ws/v1/metrics", "/debug/{}", "/{}", "/ui/{}", "/ui/data/{}", "/"),
)
#: ways out of the folder, if there are any
WAYS_OUT = [
    f"{start}{up * depth}{end}"
    for start in ("/", "//", "/ui/", "/assets/", "/link/", "/%2e/", "/ws/")
    for up in (
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..\\",
        "..%5c",
        "..%c0%af",
        "%252e%252e/",
        ".../",
    )
    for depth in (1, 3)
    for end in ("secret.txt", "secret.txt%00.html")
]
WAYS_OUT += ["/out.txt", "/link/secret.txt", "/link", "/%2Fetc/passwd", "//etc/passwd", "/~root/x"]
HEADERS = (
    *("Host: x\r\nHost: y", "Content-Length: -1", "Content-Length: 5\r\nContent-Length: 6"),
    *(
        "Content-Length: 99999999999999999999999",
        "Content-Length: 0x10",
        "Transfer-Encoding: chunked",
    ),
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    *("Transfer-Encoding: gzip, chunked", "Transfer-Encoding: xchunked", "Expect: 100-continue"),
    *(
        "Connection: Upgrade\r\nUpgrade: websocket",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c",
    ),
    *(
        "Range: bytes=0-1,5-,-9999999999",
        "Range: bytes=-",
        "If-Modified-Since: never",
        "Cookie: a=b",
    ),
    *("Authorization: Bearer", "Authorization: Bearer \xff\xfe", "Authorization: Basic e", "X:"),
    *(
        "X: " + "y" * 40_000,
        "Accept: application/json;q=nan",
        "Accept: " + "a/b," * 2000,
        " folded: x",
    ),
    *(
        "X\x00Y: z",
        "Origin: http://evil.example",
        "X-Forwarded-For: 127.0.0.1",
        "Host: [::1",
        "no colon",
    ),
    *(
        "Content-Type: application/json; charset=\xff",
        "Accept-Encoding: *;q=0",
        "Last-Event-ID: -1",
    ),
)
BODIES = (
    *(
        b"",
        b"abc",
        b"5\r\nabcde\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\nabc",
        b"-1\r\n\r\n",
        b"zz\r\n",
    ),
    *(
        b"5;" + b"x" * 20_000 + b"\r\nabcde\r\n0\r\n\r\n",
        b"0\r\nTrailer: x\r\n\r\n",
        b"\x00" * 1000,
    ),
    *(b"partitions: &a [*a]", b"? " * 1000, b"[" * 5000, b"\xff\xfe", b"!!python/name:os.system"),
)


def request(random: Random) -> bytes:
    """One request, more or less."""
    if random.random() < 0.05:
        return random.randbytes(random.choice((1, 10, 1000, 50_000)))
    if random.random() < 0.3:
        path = random.choice(WAYS_OUT)
    else:
        path = random.choice(PATHS)
        while "{}" in path:
            path = path.replace("{}", random.choice(NAMES), 1)
    line = f"{random.choice(METHODS)} {path} {random.choice(VERSIONS)}"
    lines = [line, *(["Host: 127.0.0.1"] if random.random() < 0.9 else [])]
    lines += random.sample(HEADERS, random.choice((0, 0, 0, 1, 1, 2, 4)))
    if random.random() < 0.05:
        lines += [f"X-{number}: y" for number in range(3000)]
    lines.append("Connection: close")
    end = random.choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
    head = end.join(lines) + end * 2
    data = head.encode("latin-1", "replace") + random.choice((b"", *BODIES))
    return data[: random.randrange(1, len(data))] if random.random() < 0.1 else data


async def said_to(port: int, data: bytes, random: Random) -> bytes:
    """What the server says until it hangs up, or the client does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    with suppress(OSError, TimeoutError):
        if random.random() < 0.1:  # in drops
            for start in range(0, min(len(data), 40), 4):
                writer.write(data[start : start + 4])
                await writer.drain()
            writer.write(data[40:])
        else:
            writer.write(data)
        if random.random() < 0.1:
            writer.write_eof()
        async with asyncio.timeout(0.2 if random.random() < 0.9 else 0.01):
            while chunk := await reader.read(65_536):
                found += chunk
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return found


@pytest.fixture
def no_bugs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing may be logged as our mistake."""
    caplog.set_level(logging.WARNING)
    yield
    records = caplog.get_records("call")
    found = [r.getMessage() for r in records if r.levelno >= logging.ERROR or r.exc_info]
    assert not found, found


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A web UI with links out of its folder, and secrets beside it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>UI</title>")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "link").symlink_to(tmp_path)
    return folder


@asynccontextmanager
async def server(dist: Path) -> AsyncIterator[int]:
    with LiveCluster(busy=False) as cluster:
        async with on_a_port(cluster, ui=dist) as client:
            yield client.base_url.port or 0
            async with asyncio.timeout(PATIENCE):
                for path in ("/livez", "/ws/v1/partitions", "/"):
                    assert (await client.get(path)).status_code == 200


async def attack(dist: Path, seed: int, count: int) -> list[int]:
    random = Random(seed)
    statuses = []
    async with server(dist) as port:
        for _ in range(count):
            data = request(random)
            said = await said_to(port, data, random)
            assert SECRET.encode() not in said, data[:300]
            assert b"root:x:0" not in said, data[:300]
            assert b"\r\nX-Evil" not in said, data[:300]
            assert b"Traceback" not in said, data[:300]
            if said:
                assert said.startswith(b"HTTP/1.1 "), (data[:300], said[:300])
                status = int(said[9:12])
                assert status not in (500, 502), (data[:300], said[-300:])
                statuses.append(status)
    return statuses


@pytest.mark.parametrize("seed", range(2))
async def test_bytes_on_a_socket(seed: int, dist: Path, no_bugs: None) -> None:
    statuses = await attack(dist, seed, 60)
    assert 400 in statuses


async def test_there_is_no_way_out_of_the_folder(dist: Path, no_bugs: None) -> None:
    async with server(dist) as port:
        for path in WAYS_OUT:
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode("latin-1"))
            said = await reader.read()
            writer.close()
            await writer.wait_closed()
            assert said.startswith(b"HTTP/1.1 "), path
            assert SECRET.encode() not in said, path
            assert b"root:x:0" not in said, path


@pytest.mark.parametrize(
    "rest", ["zz\r\n", "5\r\nabcdefgh", "0\r\n\r\nGET \x00", "3\r\nabc\r\nfffffffffffffffffff\r\n"]
)
@pytest.mark.parametrize("path", ["/ws/v1/validate-conf", "/ws/v1/clusters", "/livez", "/"])
async def test_what_breaks_off_is_nobodys_bug(
    path: str, rest: str, dist: Path, no_bugs: None
) -> None:
    async with server(dist) as port:
        for head in ("POST {} HTTP/1.1", "GET {} HTTP/1.1", "HEAD {} HTTP/1.1"):
            lines = f"{head.format(path)}\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            said = await said_to(port, lines.encode() + rest.encode(), Random(0))
            assert b"HTTP/1.1 500" not in said


@pytest.mark.parametrize("path", ["/ws/v1/validate-conf", "/ws/v1/clusters", "/livez", "/"])
async def test_two_lengths_are_refused_and_what_follows_is_not_read(
    path: str, dist: Path, no_bugs: None
) -> None:
    """RFC 9112 6.1: where a proxy believes the one and this server the other, the rest of one request
    would be the next one."""
    both = ("Content-Length: 5", "Transfer-Encoding: chunked")
    async with server(dist) as port:
        for lengths in (both, both[::-1], (both[0].lower(), both[1].upper())):
            head = "\r\n".join((f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lengths))
            smuggled = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            data = f"{head}\r\n\r\n0\r\n\r\n{smuggled}".encode()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            async with asyncio.timeout(PATIENCE):
                said = await reader.read()  # until the server closes
            writer.close()
            assert said.startswith(b"HTTP/1.1 400 "), said[:300]
            assert said.count(b"HTTP/1.1 ") == 1, said


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", range(*map(int, os.environ.get("QUADRIGA_FUZZ_SEEDS", "10:12").split(":")))
)
async def test_bytes_on_a_socket_for_longer(seed: int, dist: Path, no_bugs: None) -> None:
    await attack(dist, seed, 600)
