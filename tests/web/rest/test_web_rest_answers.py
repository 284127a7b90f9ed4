"""Every answer of REST: paths, headers, texts of errors, configurations that are sent to be checked (2.14)."""

import asyncio
from urllib.parse import quote

import pytest
import yaml
from live_cluster import CONFIG, ODD, LiveCluster
from on_a_port import PATIENCE, Client, client_of, on_a_port

from quadriga.core.config import MAX_PROBLEMS, checksum
from quadriga.web.responses import Refusal
from quadriga.web.rest import validation
from quadriga.web.rest.configuration import MAX_BYTES

CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-credentials": "true",
    "access-control-allow-methods": "GET,POST,HEAD,OPTIONS",
    "access-control-allow-headers": "X-Requested-With,Content-Type,Accept,Origin",
}


OF = "/ws/v1/partition/default"
ALLOWED = "Only following application states are allowed: active, rejected, completed"
STATUSES = (
    "Only following active statuses are allowed: new, accepted, starting, running, "
    "completing, failing, resuming"
)
RANGE = 'strconv.ParseUint: parsing "18446744073709551616": value out of range'


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/ws/v1/partition/no/queues", 404, "Partition not found"),
        (f"{OF}/queue/root.no", 404, "Queue not found"),
        (f"{OF}/queue/root.no/applications", 404, "Queue not found"),
        (f"{OF}/application/no", 404, "Application not found"),
        (f"{OF}/queue/root.dev/application/gang", 404, "Application not found"),
        (f"{OF}/node/no", 404, "Node not found"),
        (f"{OF}/usage/user/no", 404, "User not found"),
        (f"{OF}/usage/group/no", 404, "Group not found"),
        ("/ws/v1/partition//queues", 400, "Missing parameters"),
        (f"{OF}/usage/user/", 400, "User name is missing"),
        (f"{OF}/usage/group/", 400, "Group name is missing"),
        (f"{OF}/applications/sleeping", 400, ALLOWED),
        (f"{OF}/applications/active?status=happy", 400, STATUSES),
        (f"{OF}/queue/root.%25zz", 400, 'invalid URL escape "%zz"'),
        ("/ws/v1/events/batch?count=0", 400, '0 is not a valid value for "count"'),
        (f"{OF}/nodes?limit=0", 400, '0 is not a valid value for "limit"'),
        (
            f"{OF}/applications/active?offset=-1",
            400,
            'strconv.ParseUint: parsing "-1": invalid syntax',
        ),
        ("/ws/v1/events/batch?start=-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("/ws/v1/events/batch?count=18446744073709551616", 400, RANGE),
        ("/ws/v1/config?rmID=no", 404, "Resource manager not found"),
        ("/ws/v1/nothing", 404, "Not Found"),
        ("/debug/pprof/mutex", 404, "Not Found"),
    ],
)
async def test_2_14_errors(path: str, status: int, text: str, client: Client) -> None:
    response = await client.get(path)
    assert response.status_code == status
    assert response.json() == {"status_code": status, "message": text, "description": text}
    assert response.headers["content-type"] == "application/json; charset=UTF-8"
    assert CORS.items() <= dict(response.headers).items()


async def test_2_14_headers_are_on_every_answer(remote: Client) -> None:
    for method, path, status in (
        ("GET", "/ws/v1/clusters", 200),
        ("HEAD", f"{OF}/nodes", 200),
        ("OPTIONS", "/ws/v1/clusters", 200),
        ("POST", "/ws/v1/clusters", 405),
        ("GET", "/ws/v1/stack", 200),
        ("GET", "/ws/v1/nothing", 404),
    ):
        response = await remote.request(method, path)
        assert response.status_code == status, path
        assert CORS.items() <= dict(response.headers).items(), path
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "server" not in response.headers
    refused = await remote.delete("/ws/v1/clusters")
    text = "Method Not Allowed"
    assert refused.json() == {"status_code": 405, "message": text, "description": text}
    assert refused.headers["allow"] == "GET, HEAD, OPTIONS"
    asked = await remote.options("/ws/v1/config")
    assert (asked.headers["allow"], asked.content) == ("GET, HEAD, OPTIONS, PUT", b"")
    head, full = await remote.head("/ws/v1/clusters"), await remote.get("/ws/v1/clusters")
    assert head.content == b""
    assert head.headers["content-length"] == full.headers["content-length"]


async def test_2_14_names_are_decoded_after_the_path_was_taken_apart(remote: Client) -> None:
    for kind, key, name in (
        ("application", "applicationID", ODD),
        ("node", "nodeID", "odd/node"),
        ("usage/user", "userName", "e.f@example.org"),
    ):
        assert (await remote.get(f"{OF}/{kind}/{quote(name, safe='')}")).json()[key] == name
    # queues are escaped twice by YuniKorn's clients, once by others
    for colon in (":", "%3A", "%253A"):
        queue = await remote.get(f"{OF}/queue/root.odd{colon}queue")
        assert queue.json()["queuename"] == "root.odd:queue"
    # and a partition may have the resource manager before it
    assert (await remote.get("/ws/v1/partition/%5Brm%5Ddefault/nodes")).status_code == 200


async def test_2_14_a_queue_has_what_is_below_it_only_if_asked(client: Client) -> None:
    path = f"{OF}/queue/root.prod"
    bare = (await client.get(path)).json()
    assert bare["children"] == [] and len(bare["childNames"]) == 3
    for query in ("?subtree", "?subtree=", "?subtree=false"):
        full = (await client.get(path + query)).json()
        assert [each["queuename"] for each in full["children"]] == bare["childNames"]


async def test_2_14_applications_by_state(client: Client) -> None:
    async def names(path: str) -> set[str]:
        found = (await client.get(f"{OF}/{path}")).json()
        return {app["applicationID"] for app in found}

    assert "done" in await names("applications/completed")
    assert await names("applications/rejected") == {"again"}
    active = await names("applications/active")
    assert {"gang", "wide", ODD} <= active
    for status in ("running", "Running", "RUNNING"):
        assert "gang" in await names(f"applications/active?status={status}")
    assert await names("queue/root.prod.gangs/applications/active?status=running") == {"gang"}
    # ended ones can still be looked at
    done = (await client.get(f"{OF}/application/done")).json()
    assert (done["applicationState"], done["finishedTime"] > 0) == ("Completed", True)


async def test_2_14_long_lists_are_read_in_pages(client: Client) -> None:
    for path in (
        "nodes",
        "applications/active",
        "applications/completed",
        "queue/root.prod.gangs/applications",
    ):
        whole = (await client.get(f"{OF}/{path}")).json()
        pages = [
            (await client.get(f"{OF}/{path}?limit=1&offset={n}")).json()
            for n in range(len(whole) + 1)
        ]
        assert pages == [*([each] for each in whole), []]
        assert (await client.get(f"{OF}/{path}?offset=1")).json() == whole[1:]


async def test_2_14_the_configuration_as_yaml_and_as_json(client: Client) -> None:
    text = await client.get("/ws/v1/config")
    data = await client.get("/ws/v1/config", headers={"Accept": "application/json"})
    assert text.headers["content-type"] == "application/x-yaml; charset=UTF-8"
    assert data.headers["content-type"] == "application/json; charset=UTF-8"
    assert yaml.safe_load(text.text) == data.json()
    assert data.json()["checksum"] == checksum(CONFIG)
    assert data.json()["extra"] == {"health.checkInterval": "1h"}


async def test_2_14_validate_conf_always_answers(remote: Client) -> None:
    async def verdict(body: bytes) -> tuple[bool, str]:
        response = await remote.post("/ws/v1/validate-conf", content=body)
        assert response.status_code == 200
        return response.json()["allowed"], response.json()["reason"]

    assert await verdict(CONFIG.encode()) == (True, "")
    allowed, reason = await verdict(b"partitions: [{queues: [{name: 'a b'}]}]")
    assert not allowed and "line 1" in reason
    assert await verdict(b"\xff") == (False, "the configuration is not UTF-8")
    assert not (await verdict(b"a: &a [*a]"))[0]

    too_long = await remote.post("/ws/v1/validate-conf", content=b"#" * (MAX_BYTES + 1))
    assert too_long.status_code == 413

    async def endless() -> object:
        for _ in range(100):
            yield b"#" * 65536

    chunked = await remote.post("/ws/v1/validate-conf", content=endless())  # type: ignore[arg-type]
    assert chunked.status_code == 413


async def test_2_12_health_is_not_there_before_the_first_check(cluster: LiveCluster) -> None:
    cluster.views._health = None
    async with client_of(cluster) as client:
        response = await client.get("/ws/v1/scheduler/healthcheck")
        assert response.status_code == 404
        assert response.json()["message"] == "Health check is not available"
    # while the application runs it is checked, at once and then again and again
    async with on_a_port(cluster) as client:
        while (response := await client.get("/ws/v1/scheduler/healthcheck")).status_code == 404:
            await asyncio.sleep(0)
        assert response.json()["Healthy"]
        assert len((await client.get("/ws/v1/history/apps")).json()) == 2


async def test_2_13_the_state_dump_is_what_the_views_say_and_stacks_are_of_all_threads(
    cluster: LiveCluster,
) -> None:
    async with client_of(cluster) as client:
        first, second = await asyncio.gather(
            client.get("/ws/v1/fullstatedump"), client.get("/debug/fullstatedump")
        )
        dump = cluster.service.read(lambda scheduler: cluster.views.state_dump())
        dump["logLevel"] = first.json()["logLevel"]
        assert first.json() == second.json() == dump
        assert first.text.count("\n") > len(dump["nodes"][0]["nodesInfo"])  # for people as well
        for path in ("/ws/v1/stack", "/debug/stack", "/debug/pprof/goroutine"):
            response = await client.get(path)
            assert response.headers["content-type"] == "text/plain; charset=UTF-8"
            assert "[quadriga]" in response.text and "[MainThread]" in response.text


async def test_probes_tell_whether_it_lives_and_is_ready(cluster: LiveCluster) -> None:
    async with client_of(cluster) as client:
        assert (await client.get("/livez")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ok"}
        cluster.service.stop()
        for path, text in (
            ("/livez", "The scheduler has stopped"),
            ("/readyz", "the service has been stopped"),
            ("/ws/v1/clusters", "the service has been stopped"),
        ):
            response = await client.get(path)
            assert (response.status_code, response.json()["message"]) == (503, text)


CHECK = "/ws/v1/validate-conf"
VALID = "partitions: [{name: default, queues: [{name: root}]}]\n"


async def test_2_14_of_many_problems_a_hundred_are_told_and_the_others_counted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation.verdict, "__defaults__", (PATIENCE,))
    wrong = "".join(f"k{number}: 1\n" for number in range(1_000))
    for text in (wrong, wrong + "#" * validation.SHORT):  # here, and in a process of its own
        found = (await client.post(CHECK, content=text)).json()
        assert not found["allowed"]
        lines = found["reason"].splitlines()
        assert lines[0] == "the queue configuration has 1000 problems:"
        assert len(lines) == 1 + MAX_PROBLEMS + 1
        assert "k0 (line 1): unknown key" in lines[1]
        assert lines[-1] == "  and 900 more"


async def test_2_14_the_answer_is_short_however_long_what_is_wrong_is(client: Client) -> None:
    for text in (f"{'k' * 15_000}: 1", f"partitions: [{'x' * 15_000}]", f"!{'t' * 900} x"):
        answer = await client.post(CHECK, content=text)
        assert not answer.json()["allowed"]
        assert len(answer.content) < 5_000


async def test_2_14_a_long_check_has_a_process_of_its_own_and_is_given_up_in_the_end() -> None:
    valid = VALID + "#" * validation.SHORT
    assert await validation.verdict(valid, PATIENCE) == {"allowed": True, "reason": ""}
    with pytest.raises(Refusal, match="takes longer than 0 seconds") as refused:
        await validation.verdict("a,\n" * (MAX_BYTES // 3), patience=0)
    assert refused.value.status == 503


async def test_pages_of_another_origin_have_nothing_checked(remote: Client) -> None:
    own = remote.base_url.netloc.decode()
    for origin in ("http://bad.example", "null", "http://[", f"http://user@{own}", f"http://{own}"):
        answer = await remote.post(CHECK, content=VALID, headers={"Origin": origin})
        assert answer.status_code == (200 if origin == f"http://{own}" else 403), origin
    assert (await remote.post(CHECK, content=VALID)).json()["allowed"]
