"""Answers compressed with gzip: for whom, which, and that nothing else about them changes."""

import gzip
import json
from pathlib import Path

import httpx
import pytest
from live_cluster import LiveCluster
from on_a_port import Client, client_of, on_a_port
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from quadriga.web import compression
from quadriga.web.compression import MIN_BYTES, Shared, wants_gzip
from quadriga.web.reader import Reader

GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}
LONG = "/ws/v1/openapi.json"


async def raw(client: Client, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """An answer, and the bytes that came."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client.stream("GET", path, headers=names) as answer:
        return answer, b"".join([chunk async for chunk in answer.aiter_raw()])


async def test_2_21_who_asks_for_gzip_gets_it_and_nobody_else() -> None:
    """A bar stands between two headers."""
    assert not wants_gzip([])
    asking = "gzip/GZip , deflate/deflate, x-gzip;q=0.5/br|gzip/gzip;q=0.001/*/*;q=0, gzip"
    for accepted in (*asking.split("/"), "identity;q=0.5, gzip"):
        assert wants_gzip(accepted.split("|")), accepted
    for accepted in (
        *("", "gzip;q=0", "gzip; Q = 0.000", "gzip;q=nan", "gzip;q=2", "gzip;q=-1", "gzip;q=1e0"),
        *("*;q=0", "*, gzip;q=0", "identity, gzip;q=0.5", "deflate", "gzipped"),
    ):
        assert not wants_gzip([accepted]), accepted


async def test_2_21_a_long_answer_is_packed_and_says_the_same(remote: Client) -> None:
    for path in (LONG, "/ws/v1/metrics", "/debug/stack", "/ui/", "/ui/static/style.css"):
        plain, told = await raw(remote, path, **PLAIN)
        compressed, sent = await raw(remote, path, **GZIP)
        assert len(told) >= MIN_BYTES, path
        assert "content-encoding" not in plain.headers
        assert compressed.headers["content-encoding"] == "gzip"
        assert int(compressed.headers["content-length"]) == len(sent) < len(told)
        said = gzip.decompress(sent)  # once: what comes out is not compressed again
        assert said[:2] != b"\x1f\x8b"
        if path in (LONG, "/ui/"):
            assert said == told
        for answer in (plain, compressed):
            assert "Accept-Encoding" in answer.headers["vary"]
            assert answer.headers["content-type"] == plain.headers["content-type"]


async def test_2_21_a_short_answer_and_a_stream_stay_as_they_are(cluster: LiveCluster) -> None:
    async def exactly(request: Request) -> Response:
        return Response("x" * int(request.query_params["of"]), media_type="text/plain")

    async def stream(request: Request) -> Response:
        return StreamingResponse(iter(["x" * 5_000, "y"]), media_type="text/plain")

    async def picture(request: Request) -> Response:
        return Response(b"x" * 5_000, media_type="image/png")

    routes = [Route(f"/{each.__name__}", each) for each in (exactly, stream, picture)]
    async with on_a_port(cluster, extra_routes=routes) as client:
        for path, encoding in (
            (f"/exactly?of={MIN_BYTES - 1}", None),
            (f"/exactly?of={MIN_BYTES}", "gzip"),
            ("/exactly?of=1000000", "gzip"),
            ("/stream", None),
            ("/picture", None),
            ("/ws/v1/clusters", None),
        ):
            answer, _ = await raw(client, path, **GZIP)
            assert answer.headers.get("content-encoding") == encoding, path
        async with client.stream("GET", "/ws/v1/events/stream", headers=GZIP) as answer:
            assert "content-encoding" not in answer.headers
            assert "InstanceUUID" in json.loads(await anext(answer.aiter_lines()))  # at once


async def test_2_21_head_has_the_headers_of_get_and_no_body(remote: Client) -> None:
    for headers in (GZIP, PLAIN):
        got, _ = await raw(remote, LONG, **headers)
        head = await remote.head(LONG, headers=headers)
        assert head.content == b""
        for name in ("content-encoding", "content-length", "content-type", "vary"):
            assert head.headers.get(name) == got.headers.get(name), name


async def test_2_21_an_etag_holds_packed_and_plain(remote: Client) -> None:
    path = "/ui/static/style.css"
    tags = [(await raw(remote, path, **each))[0].headers["etag"] for each in (GZIP, PLAIN)]
    assert tags[0] == tags[1]
    assert tags[0].startswith('W/"')
    for known in (tags[0], tags[0].removeprefix("W/"), f'"other", {tags[0]}'):
        for encoding in (GZIP, PLAIN):
            again, body = await raw(remote, path, If_None_Match=known, **encoding)
            assert (again.status_code, body) == (304, b"")
            assert "content-encoding" not in again.headers
            assert "Accept-Encoding" in again.headers["vary"]
    changed, _ = await raw(remote, path, If_None_Match='W/"other"', **GZIP)
    assert changed.status_code == 200


async def test_2_21_what_many_readers_share_is_packed_once(
    monkeypatch: pytest.MonkeyPatch, cluster: LiveCluster
) -> None:
    compressed: list[int] = []

    def counted(body: bytes) -> bytes:
        compressed.append(len(body))
        return gzip.compress(body)

    monkeypatch.setattr(compression, "_compress", counted)
    text = Shared(b"x" * 100_000)

    async def shared(request: Request) -> Response:
        return Response(text, media_type="text/plain")

    spelled = await Reader(cluster.service).text("name", lambda _: 1, lambda _: b"text", long=True)
    assert isinstance(spelled, Shared)
    assert spelled == b"text"
    async with client_of(cluster, extra_routes=[Route("/shared", shared)]) as client:
        for _ in range(5):
            assert (await client.get("/shared", headers=GZIP)).content == text
        assert compressed == [100_000]


async def test_2_21_files_of_a_web_ui_are_packed_too(tmp_path: Path, cluster: LiveCluster) -> None:
    (tmp_path / "index.html").write_text("<title>UI</title>")
    (tmp_path / "main.js").write_text("let x = 1;\n" * 30_000)
    async with on_a_port(cluster, ui=tmp_path) as client:
        compressed, sent = await raw(client, "/main.js", **GZIP)
        assert gzip.decompress(sent) == (tmp_path / "main.js").read_bytes()
        assert int(compressed.headers["content-length"]) == len(sent)
        tag = compressed.headers["etag"]
        assert (await raw(client, "/main.js", If_None_Match=tag, **GZIP))[0].status_code == 304
        part, some = await raw(client, "/main.js", Range="bytes=0-4999", **GZIP)
        assert (part.status_code, len(some)) == (206, 5_000)
        assert "content-encoding" not in part.headers
        head = await client.head("/main.js", headers=GZIP)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers.get("content-length") in (None, str(len(sent)))
