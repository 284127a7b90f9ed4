"""Who may look, who may change something, and what a client may do to the server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from live_cluster import CONFIG, LiveCluster
from on_a_port import PATIENCE, Client, all_said, client_of, on_a_port
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quadriga.core.config import checksum
from quadriga.si.access import Access
from quadriga.web import server as web_server
from quadriga.web.app import create_app
from quadriga.web.rest.configuration import MAX_BYTES
from quadriga.web.server import WebServer
from tests.si.certificates import access_by

ADMIN, OWNER, OTHER, VIEWER = (f"{n}-and-sixteen-more" for n in ("admin", "rm", "other", "view"))

MORE = CONFIG + "          - name: more\n"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def access(tmp_path: Path) -> Access:
    return access_by(
        tmp_path,
        f"ops admin plain:{ADMIN}\nshim rm:rm plain:{OWNER}\n"
        f"stranger rm:another plain:{OTHER}\nviewer read plain:{VIEWER}\n",
    )


async def test_reads_need_no_token_unless_it_is_said(access: Access, still: LiveCluster) -> None:
    async with client_of(still, access=access) as client:
        assert (await client.get("/ws/v1/clusters")).status_code == 200
    async with client_of(still, access=access, require_token_for_reads=True) as client:
        for path in ("/ws/v1/clusters", "/ws/v1/metrics", "/ws/v1/config", "/debug/stack",
                     "/ws/v1/events/stream", "/%77s/v1/clusters"):  # fmt: skip
            refused = await client.get(path)
            assert refused.status_code == 401, path
            assert refused.headers["access-control-allow-origin"] == "*"
        assert (await client.get("/ws/v1/clusters", headers=bearer(VIEWER))).status_code == 200
        # a probe has no token, and a browser asks first without one
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.options("/ws/v1/clusters")).status_code == 200


async def test_a_wrong_token_is_said_to_be_wrong_and_a_missing_one_to_be_needed(
    access: Access, still: LiveCluster
) -> None:
    wrong = "The bearer token is wrong", 'Bearer realm="quadriga", error="invalid_token"'
    needed = "A bearer token is needed", 'Bearer realm="quadriga"'
    cases = [
        (bearer("wrong-and-sixteen-more"), *wrong),
        (bearer(VIEWER[:-1]), *wrong),  # near is as wrong as far
        (bearer("x"), *wrong),
        ({}, *needed),
        ({"Authorization": "Basic eA=="}, *needed),
        ({"Authorization": "Bearer "}, *needed),
    ]
    async with client_of(still, access=access, require_token_for_reads=True) as client:
        for headers, text, challenge in cases:
            for refused in (
                await client.get("/ws/v1/clusters", headers=headers),
                await client.get("/ui/data/overview", headers=headers),
                await client.put("/ws/v1/config?rmID=rm", content=MORE, headers=headers),
            ):
                assert refused.status_code == 401
                assert refused.json()["message"] == text
                assert refused.headers["www-authenticate"] == challenge


async def configured(
    client: Client, body: str, rm_id: str, token: str | None, more: dict[str, str] | None = None
) -> tuple[int, str]:
    """Status and text of an answer, which tells no token."""
    headers = {**(bearer(token) if token else {}), **(more or {})}
    response = await client.put(f"/ws/v1/config?rmID={rm_id}", content=body, headers=headers)
    for secret in (ADMIN, OWNER, OTHER, VIEWER):
        assert secret not in response.text
    return response.status_code, response.text


async def shown(client: Client) -> Any:
    return (await client.get("/ws/v1/config", headers={"Accept": "application/json"})).json()


async def test_i39_who_may_configure_the_queues(access: Access, cluster: LiveCluster) -> None:
    async with client_of(cluster, access=access) as client:

        async def put(token: str | None, rm_id: str = "rm", body: str = MORE) -> int:
            return (await configured(client, body, rm_id, token))[0]

        async def running() -> str:
            return str((await shown(client))["checksum"])

        for token, status in ((None, 401), (OTHER[:-1], 401), (OTHER, 403), (VIEWER, 403)):
            assert await put(token) == status
        assert await running() == checksum(CONFIG)

        assert await put(OWNER) == 200
        assert await running() == checksum(MORE)
        queue = await client.get("/ws/v1/partition/default/queue/root.more")
        assert queue.json()["status"] == "Active"
        assert await put(ADMIN, body=CONFIG) == 200
        assert await running() == checksum(CONFIG)

        # the queues of everybody are for who may do everything
        assert await put(OWNER, rm_id="") == 403
        assert await put(ADMIN, rm_id="") == 200
        assert await put(ADMIN, rm_id="nobody") == 404
        # all or nothing
        wrong = {"partitions: [{queues: 1}]": 400, " ": 400, "#" * (MAX_BYTES + 1): 413}
        for body, code in wrong.items():
            assert await put(ADMIN, body=body) == code
        assert await running() == checksum(CONFIG)


@pytest.mark.parametrize("form", ["application/x-yaml", "application/json"])
async def test_2_14_what_get_gives_can_be_edited_and_put(
    access: Access, form: str, cluster: LiveCluster
) -> None:
    async with client_of(cluster, access=access) as client:

        async def put(text: str, rm_id: str = "rm") -> tuple[int, str]:
            return await configured(client, text, rm_id, ADMIN, {"Content-Type": form})

        async def text_of_it() -> str:
            return (await client.get("/ws/v1/config", headers={"Accept": form})).text

        before, text = await shown(client), await text_of_it()
        assert (await client.post("/ws/v1/validate-conf", content=text)).json()["allowed"]
        # as it is: it says the same, and the second time it is the same text
        assert (await put(text))[0] == 200
        assert {**await shown(client), "checksum": ""} == {**before, "checksum": ""}
        once = await shown(client)
        assert (await put(await text_of_it()))[0] == 200
        assert await shown(client) == once
        assert once["checksum"] == checksum(text)
        # edited: the queues, and the resource manager's own settings
        assert text.count("binpacking") == text.count("1h") == 1
        assert (await put(text.replace("binpacking", "fair").replace("1h", "2h")))[0] == 200
        after = await shown(client)
        assert after["partitions"][0]["nodesortpolicy"]["type"] == "fair"
        assert after["extra"] == {"health.checkInterval": "2h"}
        # the queues of everybody go without the settings of one, unless these stay as they are
        status, reason = await put(text, rm_id="")
        assert status == 400
        assert "name its rmID" in reason
        assert (await put(text.replace("1h", "2h"), rm_id=""))[0] == 200
        # all or nothing
        wrong = text.replace("health.checkInterval", "rm.pauseTimeout").replace("1h", "soon")
        status, reason = await put(wrong)
        assert status == 400
        assert "rm.pauseTimeout" in reason
        assert await shown(client) == after


async def test_a_page_of_somebody_else_changes_nothing(cluster: LiveCluster) -> None:
    evil = "http://evil.example"
    async with client_of(cluster) as client:  # nobody is asked for a token

        async def put(headers: dict[str, str]) -> int:
            return (await configured(client, MORE, "rm", None, headers))[0]

        # what a browser says of a page elsewhere, and of one that has made its name point here
        refused = [{"Origin": evil}, {"Origin": "null"}, {"Host": "evil.example", "Origin": evil}]
        hosts = "evil.example evil@127.0.0.1 127.0.0.1@evil 127.0.0.1/evil 127.0.0.1? [::1".split()
        for headers in (*refused, *({"Host": host} for host in hosts)):
            assert await put(headers) == 403, headers
        # it asks before it sends a PUT, and is not allowed to; nor is there another way
        allowed = (await client.options("/ws/v1/config")).headers["access-control-allow-methods"]
        assert "PUT" not in allowed
        assert (await client.post("/ws/v1/config", content=MORE)).status_code == 405
        # the command line, and a page from here
        here = {"Host": "localhost:9080", "Origin": "http://localhost:9080"}
        for headers in ({}, here, {"Host": "[::1]:9080"}):
            assert await put(headers) == 200


async def served(cluster: LiveCluster, sent: bytes) -> bytes:
    async with on_a_port(cluster) as client:
        return await all_said(client, sent)


async def test_what_does_not_come_or_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, still: LiveCluster
) -> None:
    head = b"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 100_000
    for sent in (head, b"nonsense\r\n\r\n"):
        assert (await served(still, sent)).startswith(b"HTTP/1.1 400 ")
    monkeypatch.setattr("quadriga.web.resource.BODY_TIMEOUT", 0.0)
    head = b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
    said = await served(still, head + b"Content-Length: 10\r\n\r\nab")
    assert said.startswith(b"HTTP/1.1 408 ")
    monkeypatch.setattr(web_server, "HEAD_TIMEOUT", 0.0)
    assert await served(still, b"GET /livez HTTP/1.1\r\nHost:") == b""


async def test_who_does_not_take_his_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, cluster: LiveCluster
) -> None:
    monkeypatch.setattr(web_server, "WRITE_TIMEOUT", 0.0)

    async def long(request: Request) -> Response:
        return Response(b"x" * 50_000_000)

    app = create_app(cluster.service, cluster.views, extra_routes=[Route("/long", long)])
    server = WebServer(app, port=0)
    port = await server.start()
    with pytest.raises(OSError, match="in use"):
        await WebServer(app, port=port).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    try:
        writer.write(b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
        connections = server._server.server_state.connections
        async with asyncio.timeout(PATIENCE):
            assert await reader.read(1)  # the answer has begun, and more of it is not read
            while connections:
                await asyncio.sleep(0)
    finally:
        writer.transport.abort()
        await server.stop()
