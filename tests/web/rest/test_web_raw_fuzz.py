"""Bytes that no client sends; `QUADRIGA_FUZZ_SEEDS=0:500` tries other seeds."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random

import pytest
from live_cluster import LiveCluster
from on_a_port import Client, all_said, on_a_port

SECRET = "what-nobody-may-see"

METHODS = [*["GET"] * 12, *"HEAD POST PUT DELETE OPTIONS TRACE CONNECT get PRI PROPFIND".split()]
METHODS += ["G\x00T", "", "G" * 5000, "\xff"]
VERSIONS = (*("HTTP/1.1",) * 8, "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "", "http/1.1", "X")
NAMES = r"""
default root root.prod root.prod.gangs root.odd%3Aqueue rm nobody %72oot root%2Eprod root%00 %2F
%2e%2e % %zz %ff%fe %C0%AE %u0041 %F0%9F%90%8E ..; root.prod%2520 * %5Broot%5D root%23 + root?x
<script> $(id) %7B%7B7*7%7D%7D
""".split()
NAMES += ["", "a%0d%0aX-Evil: 1", "x" * 3000, "%41" * 1500]
PATHS = """
/ws/v1/partition/{}/queues /ws/v1/partition/default/queue/{} /ws/v1/{} /ws/v1/clusters
/ws/v1/partition/{}/queue/{}/applications /ws/v1/partition/default/application/{}
/ws/v1/partition/default/applications/{}?status={} /ws/v1/partition/default/node/{}
/ws/v1/partition/default/usage/user/{} /ws/v1/events/batch?start={}&count={} /ws/v1/config?rmID={}
/ws/v1/validate-conf /ws/v1/metrics /debug/{} /{} /ui/{} /ui/data/{} /
""".split()
#: ways out of the folder, if there are any
WAYS_OUT = [
    f"{start}{up * depth}{end}"
    for start in "/ // /ui/ /assets/ /link/ /%2e/ /ws/".split()
    for up in r"../ ..%2f %2e%2e/ %2e%2e%2f ..\ ..%5c ..%c0%af %252e%252e/ .../".split()
    for depth in (1, 3)
    for end in ("secret.txt", "secret.txt%00.html")
]
WAYS_OUT += (
    "/out.txt /link/secret.txt /link /%2Fetc/passwd //etc/passwd /~root/x /assets/%00".split()
)
WAYS_OUT += ["/" + "x" * 5000]
#: a | stands for the end of a line
HEADERS = (
    """
Host: x|Host: y
Content-Length: -1
Content-Length: 5|Content-Length: 6
Content-Length: 99999999999999999999999
Content-Length: 0x10
Transfer-Encoding: chunked
Transfer-Encoding: chunked|Content-Length: 3
Transfer-Encoding: gzip, chunked
Transfer-Encoding: xchunked
Expect: 100-continue
Connection: Upgrade|Upgrade: websocket
Connection: Upgrade, HTTP2-Settings|Upgrade: h2c
Range: bytes=0-1,5-,-9999999999
Range: bytes=-
If-Modified-Since: never
Cookie: a=b
Authorization: Bearer
Authorization: Basic e
X:
Accept: application/json;q=nan
Origin: http://evil.example
X-Forwarded-For: 127.0.0.1
Host: [::1
no colon
Accept-Encoding: *;q=0
Last-Event-ID: -1
""".strip()
    .replace("|", "\r\n")
    .split("\n")
)
HEADERS += [" folded: x", "X\x00Y: z", "Content-Type: application/json; charset=\xff"]
HEADERS += ["X: " + "y" * 40_000, "Accept: " + "a/b," * 2000, "Authorization: Bearer \xff\xfe"]
BODIES = (
    *(b"", b"abc", b"5\r\nabcde\r\n0\r\n\r\n", b"ffffffffffffffff\r\nabc", b"-1\r\n\r\n"),
    *(b"zz\r\n", b"5;" + b"x" * 20_000 + b"\r\nabcde\r\n0\r\n\r\n", b"\x00" * 1000),
    *(b"0\r\nTrailer: x\r\n\r\n", b"partitions: &a [*a]", b"? " * 1000, b"[" * 5000, b"\xff\xfe"),
    b"!!python/name:os.system",
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


async def said_to(client: Client, data: bytes, random: Random | None = None) -> bytes:
    """What the server says until it hangs up. Where it waits for more, the client hangs up, but not
    before the server has answered others: it has had the time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    found = bytearray()

    async def listen() -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                found.extend(chunk)

    listening = asyncio.create_task(listen())
    with suppress(OSError):
        if random and random.random() < 0.1:  # in drops
            for start in range(0, min(len(data), 40), 4):
                writer.write(data[start : start + 4])
                await writer.drain()
            data = data[40:]
        writer.write(data)
        if random and random.random() < 0.1:
            writer.write_eof()
    for _ in range(0 if random and random.random() < 0.1 else 4):
        if not listening.done():
            assert (await client.get("/readyz")).status_code == 200
    writer.transport.abort()
    await listening
    return bytes(found)


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


@pytest.fixture
async def server(dist: Path, cluster: LiveCluster) -> AsyncIterator[Client]:
    """A client of it, for which it goes on to work."""
    async with on_a_port(cluster, ui=dist) as client:
        yield client
        for path in ("/livez", "/ws/v1/partitions", "/"):
            assert (await client.get(path)).status_code == 200


def shows_nothing(said: bytes, data: bytes) -> None:
    for secret in (SECRET.encode(), b"root:x:0", b"\r\nX-Evil", b"Traceback"):
        assert secret not in said, data[:300]


@pytest.mark.parametrize(
    "seed", range(*map(int, os.environ.get("QUADRIGA_FUZZ_SEEDS", "0:3").split(":")))
)
async def test_bytes_on_a_socket(seed: int, server: Client, no_bugs: None) -> None:
    random = Random(seed)
    statuses = []
    for _ in range(100):
        data = request(random)
        said = await said_to(server, data, random)
        shows_nothing(said, data)
        if said:
            assert said.startswith(b"HTTP/1.1 "), (data[:300], said[:300])
            statuses.append(int(said[9:12]))
            assert statuses[-1] not in (500, 502), (data[:300], said[-300:])
    assert 400 in statuses


async def test_there_is_no_way_out_of_the_folder(server: Client, no_bugs: None) -> None:
    for path in WAYS_OUT:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        said = await all_said(server, head.encode())
        assert said[:9] == b"HTTP/1.1 " and said[9:12] in (b"200", b"307", b"400", b"404"), said
        shows_nothing(said, head.encode())


PLACES = ("/ws/v1/validate-conf", "/ws/v1/clusters", "/livez", "/")


async def test_what_breaks_off_is_nobodys_bug(server: Client, no_bugs: None) -> None:
    rests = ("zz\r\n", "5\r\nabcdefgh", "0\r\n\r\nGET \x00", "3\r\nabc\r\nfffffffffffffffffff\r\n")
    for method, path, rest in product(("POST", "GET", "HEAD"), PLACES, rests):
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b"HTTP/1.1 500" not in await said_to(server, (head + rest).encode()), (head, rest)


async def test_two_lengths_are_refused_and_no_rest_is_read(server: Client, no_bugs: None) -> None:
    """RFC 9112 6.1: where a proxy believes the one and this server the other, the rest of one request
    would be the next one."""
    both = ("Content-Length: 5", "Transfer-Encoding: chunked")
    smuggled = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for path, lengths in product(PLACES, (both, both[::-1], (both[0].lower(), both[1].upper()))):
        head = "\r\n".join((f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lengths))
        said = await all_said(server, f"{head}\r\n\r\n0\r\n\r\n{smuggled}".encode())
        assert said.startswith(b"HTTP/1.1 400 "), said[:300]
        assert said.count(b"HTTP/1.1 ") == 1, said
