"""The JSON below /ui/data/: what each endpoint tells of a busy scheduler, and that it is bounded."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from on_a_port import Client

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.sim.scripted.script import Script
from quadriga.web.app import create_app
from quadriga.web.pages.endpoints import ENDPOINTS, Number, Text
from tests.web.pages_scene import CONFIG, GI, NASTY, NASTY_NODE, Scene, wide_config

Get = Callable[..., Awaitable[Any]]

#: what an endpoint must be asked with
NEEDED = {"queue": {"path": "root.research.gangs"}, "node": {"id": "node-00"}}
NEEDED |= {"node-story": {"id": "node-13"}}


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Scene() as scene:
        yield scene


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[Client]:
    async with reaching(scene) as client:
        yield client


def reaching(scene: Scene) -> Client:
    transport = httpx.ASGITransport(create_app(scene.service, scene.views))
    return Client(transport=transport, base_url="http://localhost/ui/data/")


def getting(client: Client) -> Get:
    async def get(name: str, **asked: Any) -> Any:
        answer = await client.get(name, params=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return get


@pytest.fixture
def get(client: Client) -> Get:
    return getting(client)


@asynccontextmanager
async def staged(build: Callable[[Script], object], config: str = CONFIG) -> AsyncIterator[Get]:
    """What a scene says in which that is all that has happened."""
    with Scene(config, lambda scene: scene.do(build)) as scene:
        async with reaching(scene) as client:
            yield getting(client)


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ENDPOINTS, ids=lambda source: source.name)
async def test_every_endpoint_answers_small_and_known_again(client: Client, source: Any) -> None:
    asked = NEEDED.get(source.name, {"id": "train-resnet"} if "id" in source.parameters else {})
    first = await client.get(source.name, params=asked)
    assert first.status_code == 200
    assert len(first.content) < 100_000
    assert first.headers["content-type"].startswith("application/json")
    assert first.headers["content-security-policy"].startswith("default-src 'none'")
    assert int(first.headers["quadriga-time"]) > 0
    assert "access-control-allow-origin" not in first.headers
    tag = {"If-None-Match": f'"other", {first.headers["etag"]}'}
    again = await client.get(source.name, params=asked, headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert "quadriga-time" in again.headers
    for method in ("POST", "PUT", "DELETE"):
        assert (await client.request(method, source.name)).status_code == 405
    for kind in source.parameters.values():
        assert isinstance(kind, Text | Number)
        assert kind.most <= 10_000_000


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("applications?limit=0", "limit: must be a whole number from 1 to 200"),
        ("applications?limit=201", "limit: must be a whole number from 1 to 200"),
        ("applications?offset=-1", "offset: must be a whole number from 0 to 10000000"),
        ("applications?offset=1e3", "offset: must be a whole number from 0 to 10000000"),
        ("applications?state=Sleeping", "state: must be one of pending, preempted, living, ended,"),
        ("applications?colour=red", "'colour': unknown parameter; there are partition, queue"),
        ("applications?user=a&user=b", "user: was given twice"),
        (f"applications?text={'x' * 1025}", "text: is longer than 1024 characters"),
        ("application", "id: is required"),
        ("nodes?type=wheels", "type: no node has 'wheels'"),
        ("pictures?x=1", "'x': unknown parameter; there are none"),
    ],
)
async def test_what_cannot_be_asked_is_refused(client: Client, address: str, text: str) -> None:
    answer = await client.get(address)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(text)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("overview?partition=other", "Partition"),
        ("queue?path=root.nowhere", "Queue"),
        ("queues?below=nowhere", "Queue"),
        ("application?id=nobody", "Application"),
        ("waits?id=notebook-0&ask=none", "Ask"),
        ("story?id=nobody", "Application"),
        ("node?id=nowhere", "Node"),
    ],
)
async def test_what_is_not_there_is_not_found(client: Client, address: str, what: str) -> None:
    answer = await client.get(address)
    assert (answer.status_code, answer.json()) == (404, {"error": f"{what} not found"})


# -- the cluster -----------------------------------------------------------------------------------


async def test_overview_has_capacity_usage_nodes_and_health(get: Get) -> None:
    found = await get("overview")
    assert found["partition"] == "[rm]default"
    assert found["capacity"] == {"memory": 452 * GI, "nvidia.com/gpu": 8, "vcore": 114_000}
    assert found["allocated"]["vcore"] == 82_200
    assert found["nodes"]["states"] == {"Draining": 1, "Schedulable": 14}
    assert (found["nodes"]["unhealthy"], found["reservations"]) == (1, 7)
    assert found["applications"] == {"Accepted": 5, "Completed": 2, "Rejected": 2, "Running": 13}
    assert (found["allocations"], found["placeholders"]) == (34, 4)
    assert found["health"]["healthy"]
    assert [each["key"] for each in found["overdue"]] == ["allocation/train-resnet/worker-ph-1-0"]
    assert await get("overview", partition="default") == found


async def test_before_anybody_registers_there_are_no_partitions() -> None:
    with SchedulerService() as service:
        nobody: Any = SimpleNamespace(service=service, views=Views(service.scheduler))
        async with reaching(nobody) as client:
            assert (await client.get("overview")).json() == {"partitions": []}
            assert (await client.get("nodes")).status_code == 404
            lives = (await client.get("lifecycles")).json()
            assert (lives["since"], lives["remembered"]) == (None, 0)
            service.stop()
            answer = await client.get("overview")
    assert (answer.status_code, answer.json()) == (503, {"error": "the service has been stopped"})


async def test_queues_are_rows_from_root_down_with_what_is_below_counted(get: Get) -> None:
    """And one queue has its limits, and what stands above."""
    found = await get("queues")
    rows = {row["path"]: row for row in found["rows"]}
    assert [row["path"] for row in found["rows"]][:3] == ["root", "root.leaving", "root.people"]
    assert rows["root"]["applications"] == {"Accepted": 5, "Running": 13}
    assert rows["root"]["max"] == {"memory": 452 * GI, "nvidia.com/gpu": 8, "vcore": 114_000}
    assert rows["root.leaving"]["state"] == "Draining"
    assert not rows["root.people.ines"]["managed"]
    assert (rows["root.people.ines"]["depth"], rows["root.people.ines"]["maxRunning"]) == (2, 4)
    assert rows["root.production.web"]["guaranteed"] == {"memory": 64 * GI, "vcore": 16_000}
    assert rows["root.research.notebooks"]["limits"] == 2
    below = await get("queues", below="root.research")
    depths = {row["name"]: row["depth"] for row in below["rows"]}
    assert depths == {"research": 0, "gangs": 1, "notebooks": 1}
    one = await get("queue", path="root.research.notebooks")
    assert [row["path"] for row in one["above"]] == ["root", "root.research"]
    least, most = {"memory": 16 * GI, "vcore": 4000}, {"memory": 64 * GI, "vcore": 12_000}
    assert one["limits"] == [
        {"kind": "user", "name": "*", "max": least, "applications": 3},
        {"kind": "group", "name": "lab", "max": most, "applications": 0},
    ]
    assert one["headroom"]["vcore"] == 31_800
    parent = await get("queue", path="root.people")
    assert parent["template"]["maxApplications"] == 4
    assert parent["children"] == ["root.people.ines"]
    configuration = await get("configuration")
    assert [rule["name"] for rule in configuration["rules"]] == ["provided", "user", "recovery"]
    assert "name: notebooks" in configuration["yaml"]
    assert configuration["extra"] == {}


async def test_hundreds_of_queues_and_nodes_fit_one_answer() -> None:
    """Many nodes share cells. Who has nothing left to do is not pending."""

    def build(script: Script) -> None:
        for number in range(1300):
            script.node(f"n{number:04}", vcore=1000)
        script.app("done", "root.team-00.project-00")
        script.ask("done", "x", vcore=1000)
        script.schedule()
        script.release("done")

    async with staged(build, wide_config(20, 25)) as get:
        queues = await get("queues")
        assert (queues["total"], len(queues["rows"])) == (521, 521)
        assert len(json.dumps(queues)) < 250_000
        found = await get("nodes")
        assert len(found["cells"]) <= 600
        assert sum(cell["nodes"] for cell in found["cells"]) == 1300
        assert [cell["at"] for cell in found["cells"][:3]] == [0, 3, 6]
        assert found["cells"][1]["node"] == "n0003"
        assert (len(found["rows"]), found["total"]) == (50, 1300)
        (row,) = (await get("applications", state="Waiting"))["rows"]
        assert (row["id"], row["asks"]) == ("done", 0)
        assert (await get("applications", state="pending"))["total"] == 0
        overview = await get("overview")
        assert (overview["pendingApplications"], overview["applications"]["Waiting"]) == (0, 1)


# -- applications ----------------------------------------------------------------------------------


async def test_applications_are_filtered_by_queue_user_state_and_text(get: Get) -> None:
    async def ids(**asked: str) -> list[str]:
        return [row["id"] for row in (await get("applications", **asked))["rows"]]

    every = await ids()
    assert every[0] == "monster"  # the last one that came
    assert every[-4:] == "lost nightly-2 nightly-1 train-moon".split()  # ended, the last one first
    production = "dunning invoices web-search web-shop lost".split()
    assert await ids(queue="root.production") == production
    assert await ids(queue="ROOT.production.web", user="deploy") == ["web-search", "web-shop"]
    assert await ids(queue="PROD", user="Dep") == ["web-search", "web-shop"]  # pieces
    assert await ids(queue="root.nowhere") == []
    assert await ids(user="ada", queue="gangs") == ["train-sun", "train-resnet"]
    assert await ids(user="grace", state="living") == ["notebook-4", "notebook-1", "train-bert"]
    assert await ids(state="Rejected") == ["lost", "train-moon"]
    assert len(await ids(state="living")) + len(await ids(state="ended")) == len(every)
    assert await ids(text="TRAIN-B") == ["train-bert"]
    assert await ids(text="<IMG") == [NASTY]


#: lists that come a page at a time
SORTS = {
    source.name: source.parameters["sort"]
    for source in ENDPOINTS
    if {"sort", "offset"} <= set(source.parameters)
}


@pytest.mark.parametrize(
    ("name", "sort"),
    [(name, sort) for name, kind in SORTS.items() if isinstance(kind, Text) for sort in kind.among],
)
async def test_columns_sort_and_keep_the_order_on_pages(get: Get, name: str, sort: str) -> None:
    """Every row is on exactly one page, in whatever order."""
    whole = (await get(name, sort=sort, limit=200))["rows"]
    pages = [await get(name, sort=sort, limit=4, offset=at) for at in range(0, 24, 4)]
    assert [row for page in pages for row in page["rows"]] == whole
    plain = (await get(name, limit=200))["rows"]
    assert sorted(map(json.dumps, whole)) == sorted(map(json.dumps, plain))


async def test_applications_sort_by_every_column(client: Client, get: Get) -> None:
    async def rows(sort: str) -> list[Any]:
        found: list[Any] = (await get("applications", sort=sort, limit=200))["rows"]
        return found

    now = int((await client.get("applications")).headers["quadriga-time"])
    states = [row["state"] for row in await rows("state")]
    assert [states[0], states[-1]] == ["Accepted", "Rejected"]
    keys: dict[str, Any] = {name: itemgetter(name) for name in ("id", "user", "queue", "asks")}
    keys |= {
        "allocations": lambda row: row["allocations"] + row["placeholders"],
        "since": lambda row: now - row["since"],
        "age": lambda row: (row["finished"] or now) - row["submitted"],
    }
    newest = [row["id"] for row in await rows("")]
    for name, key in keys.items():
        for sort, turned in ((name, False), (f"-{name}", True)):
            # what is equal: the newest first
            order = sorted(await rows(sort), key=lambda row: newest.index(row["id"]))
            assert await rows(sort) == sorted(order, key=key, reverse=turned), sort
    assert [row["id"] for row in await rows("-holds")][:2] == ["web-shop", "render"]


async def test_nodes_people_and_allocations_sort(get: Get) -> None:
    async def first(source: str, name: str, rows: str = "rows", **asked: str) -> list[Any]:
        return [row[name] for row in (await get(source, **asked))[rows]]

    assert await first("nodes", "state", sort="state") == ["Draining"] + ["Schedulable"] * 14
    assert (await first("nodes", "id", sort="-name"))[::-1] == await first("nodes", "id")
    assert (await first("people", "name", sort="-holds"))[:2] == ["deploy", "mona"]
    for falling in (
        await first("nodes", "rack", sort="-rack"),
        await first("nodes", "allocations", sort="-allocations"),
        await first("people", "running", sort="-running", kind="groups"),
        apps := await first("node", "application", "held", id="node-03", sort="-application"),
    ):
        assert falling == sorted(falling, reverse=True)
    assert len(set(apps)) > 1
    newest = (await get("application", id="web-shop"))["held"]
    for name, key in {
        "key": lambda each: each["uuid"],
        "node": lambda each: each["node"],
        "since": lambda each: -each["since"],
        "holds": lambda each: each["resource"]["vcore"],
    }.items():
        for sort, turned in ((name, False), (f"-{name}", True)):
            found = (await get("application", id="web-shop", sort=sort))["held"]
            assert found == sorted(newest, key=key, reverse=turned), sort


async def test_q15_pending_is_one_word_and_the_filter_finds_what_the_cards_count(get: Get) -> None:
    overview = await get("overview")
    pending = await get("applications", state="pending", limit=200)
    assert overview["pendingApplications"] == pending["total"] == 8
    assert {row["state"] for row in pending["rows"]} == {"Accepted", "Running"}
    for row in pending["rows"]:  # each has its reason, as its page has
        assert row["asks"] and row["reason"]
        assert (await get("application", id=row["id"]))["row"]["reason"] == row["reason"]
    for row in (await get("queues"))["rows"]:
        found = await get("applications", queue=row["path"], state="pending")
        assert row["pendingApplications"] == found["total"], row["path"]
        assert "pending" not in row["applications"]
    assert (await get("queue", path="root.research"))["row"]["pendingApplications"] == 4


async def test_lists_have_the_reason_and_the_time_in_state(get: Get) -> None:
    rows = {row["id"]: row for row in (await get("applications", limit=200))["rows"]}
    assert rows["notebook-0"]["reason"] == (
        "The limit of user ada in root.research.notebooks (limit *) has 8 GiB memory left, "
        "and it asks for 14 GiB memory."
    )
    assert rows["train-sun"]["reason"].startswith("The whole gang has to fit before it starts: ")
    assert rows["dunning"]["reason"] == "Queue root.production.billing runs 1 of 1 applications."
    assert rows["nightly-2"]["reason"] == "removed by the resource manager"
    assert rows["lost"]["reason"].startswith("failed to place application lost")
    assert rows["web-shop"]["reason"] == ""
    for app_id in ("train-resnet", "nightly-1", "lost"):
        one = await get("application", id=app_id)
        assert rows[app_id]["since"] == one["history"][-1][0]
    nodes = {row["id"]: row for row in (await get("nodes"))["rows"]}
    assert 0 < nodes["node-00"]["since"] <= nodes["node-13"]["since"]


async def test_one_application_has_its_history_its_gang_asks_and_allocations(get: Get) -> None:
    found = await get("application", id="train-resnet")
    assert [state for _, state in found["history"] if state != "New"] == ["Accepted", "Running"]
    assert found["row"]["gang"] == {
        "groups": 2, "count": 5, "pending": 0, "placed": 3, "replaced": 2, "givenUp": 0,
        "whole": True,
    }  # fmt: skip
    groups = [(each["name"], each["replaced"], each["placed"]) for each in found["taskGroups"]]
    assert groups == [("driver", 1, 0), ("worker", 1, 3)]
    assert (found["style"], found["placeholderTimeout"]) == ("Soft", 900 * 10**9)
    (parked,) = found["asks"]
    assert (parked["key"], parked["state"], parked["taskGroup"]) == ("worker-1", "Parked", "worker")
    held = {each["uuid"]: each for each in found["held"]}
    assert held["worker-ph-1-0"]["state"] == "Releasing"
    assert held["worker-0-0"]["placeholder"] is False
    bert = (await get("application", id="train-bert"))["row"]["gang"]
    assert (bert["whole"], bert["placed"], bert["pending"]) == (False, 1, 3)
    shop = await get("application", id="web-shop")
    assert "gang" not in shop["row"]
    assert shop["row"]["allocations"] == 10
    assert shop["tags"] == {"team": "shop"}
    tiles = (await get("application", id="render"))["asks"]
    assert [(each["alike"], len(each["reservations"])) for each in tiles] == [(3, 3)]
    lost = await get("application", id="lost")
    assert lost["row"]["state"] == "Rejected"
    assert "root.production is a parent" in lost["row"]["message"]


LIMIT = "user ada in root.research.notebooks (limit *): limit 16 GiB memory"


async def test_why_an_ask_waits_is_the_checks_of_a_decision(scene: Scene, get: Get) -> None:
    """The resource manager is never asked."""
    asked: list[str] = []

    def predicate(key: str, node: str, allocate: bool) -> None:
        asked.append(key)

    scene.service.read(lambda scheduler: scheduler.set_predicate("rm", predicate))
    try:
        for app, about, text in (
            ("dunning", "maxapplications", "root.production.billing runs 1 of 1 applications"),
            ("train-sun", "gang", "the whole gang needs"),
            ("train-resnet", "replacement", "takes over placeholder"),
            ("monster", "node sizes", "no node is large enough"),
            ("simulation", "nodes", "1 node: draining"),
            ("notebook-0", "limit", LIMIT),
        ):
            failing = [c for c in (await get("waits", id=app))["checks"] if not c["passed"]]
            assert any(c["about"] == about and text in c["text"] for c in failing), app
    finally:
        scene.service.read(lambda scheduler: scheduler.set_predicate("rm", None))
    assert asked == []
    memory = failing[0]
    assert memory["numbers"] == {
        "limit": 16 * GI, "used": 8 * GI, "asked": 14 * GI, "headroom": 8 * GI
    }  # fmt: skip
    assert memory["type"] == "memory"
    nothing = {"application": "nightly-1", "ask": "", "checks": []}
    assert (await get("waits", id="nightly-1")) == nothing


async def test_why_an_ask_waits_has_a_sentence_first_and_names_who_holds_the_nodes() -> None:
    def build(script: Script) -> None:
        """Three nodes with room for ``late``, which ``holder`` has reserved."""
        for number in (1, 2, 3):
            script.node(f"n{number}", vcore=2000)
        for app, asks, vcore in (
            ("other", "xyz", 1200),
            ("holder", "abc", 2000),
            ("late", "w", 800),
        ):
            script.app(app, "root.leaving")
            script.ask(app, *asks, vcore=vcore)
            script.advance(3 if app == "holder" else 0)
            if app != "late":
                script.schedule()

    async with staged(build) as get:
        found = await get("waits", id="late")
    assert found["verdict"] == "Each node with room for it is reserved for another ask."
    (check,) = [each for each in found["checks"] if each["about"] == "nodes"]
    assert check["holders"] == [
        {"application": "holder", "ask": ask, "node": node, "amount": 0}
        for ask, node in (("a", "n1"), ("b", "n2"), ("c", "n3"))
    ]
    assert check["held"] == 3


async def test_the_story_has_the_application_its_asks_and_its_allocations(get: Get) -> None:
    found = await get("story", id="train-resnet")
    assert {row["kind"] for row in found["rows"]} == {"application", "ask", "allocation"}
    assert all(row["key"].startswith("train-resnet") for row in found["rows"])
    order = [row["seq"] for row in found["rows"]]
    assert order == sorted(order, reverse=True)
    assert not found["forgotten"]
    run = next(row for row in found["rows"] if row["trigger"] == "run")
    assert (run["source"], run["target"], run["cause"]) == ("Accepted", "Running", "schedule")


# -- nodes, lifecycles, people, configuration, events ------------------------------------------------


async def test_nodes_are_filtered_sorted_and_summed_up_in_cells(get: Get) -> None:
    found = await get("nodes")
    assert (found["total"], found["type"], len(found["cells"])) == (15, "vcore", 15)
    assert [cell["node"] for cell in found["cells"] if cell.get("draining")] == ["node-13"]
    assert sum(cell.get("reserved", 0) for cell in found["cells"]) == 7
    (draining,) = (await get("nodes", state="Draining"))["rows"]
    assert draining["id"] == "node-13"
    assert (await get("nodes", state="reserved"))["total"] == 7
    assert (await get("nodes", state="unhealthy"))["total"] == 1
    assert (await get("nodes", text="HOST-03"))["rows"][0]["id"] == "node-03"
    (row,) = (await get("nodes", sort="fullest", type="memory", limit=1))["rows"]
    assert (row["id"], row["allocated"]["memory"]) == ("node-10", 32 * GI)


async def test_one_node_has_its_allocations_and_who_keeps_it(get: Get) -> None:
    found = await get("node", id="node-00")
    assert found["row"]["reservations"][0]["application"] == "simulation"
    assert {each["application"] for each in found["held"]} == {
        "notebook-0", "notebook-4", "web-shop"
    }  # fmt: skip
    assert (await get("node", id=NASTY_NODE))["row"]["occupied"] == {"memory": GI, "vcore": 500}
    story = await get("node-story", id="node-13")
    assert [row["trigger"] for row in story["rows"]] == ["drain", "accept"]


async def test_lifecycles_count_entities_by_state_and_transitions_by_edge(get: Get) -> None:
    found = await get("lifecycles")
    lives = found["lifecycles"]
    assert lives["application"]["states"] == {
        "Accepted": 5, "Completed": 2, "Rejected": 2, "Running": 13
    }  # fmt: skip
    assert lives["ask"]["states"] == {"Parked": 1, "Pending": 18}
    assert lives["allocation"]["states"] == {"Allocated": 33, "Planned": 1, "Releasing": 1}
    assert lives["node"]["states"] == {"Draining": 1, "Schedulable": 14}
    assert lives["resource_manager"]["states"] == {"Running": 1}
    assert {"source": "Parked", "trigger": "allocate", "target": "Allocated", "count": 2} in (
        lives["ask"]["taken"]
    )
    counted = sum(each["count"] for life in lives.values() for each in life["taken"])
    assert counted == found["remembered"]


async def test_people_have_usage_and_limits(get: Get) -> None:
    users = {row["name"]: row for row in (await get("people"))["rows"]}
    (limit,) = users["ada"]["limits"]
    assert limit["queue"] == "root.research.notebooks"
    assert limit["used"] == {"memory": 8 * GI, "vcore": 3000}
    assert limit["max"] == {"memory": 16 * GI, "vcore": 4000}
    assert (limit["running"], limit["maxRunning"]) == (2, 3)
    assert users["ada"]["groups"] == ["lab"]
    assert users["deploy"]["limits"] == []
    groups = (await get("people", kind="groups"))["rows"]
    assert [row["name"] for row in groups] == ["lab"]
    assert (await get("people", text="GRA"))["total"] == 1


async def test_events_are_the_latest_that_fit(get: Get) -> None:
    found = await get("events", limit=10)
    last = found["created"] - 1
    assert [row["id"] for row in found["rows"]] == list(range(last, last - 10, -1))
    assert (await get("events", type="NODE", text="decom"))["rows"] == []
    about = await get("events", about="train-bert", limit=500)
    assert about["rows"]
    assert all("train-bert" in (row["object"], row["reference"]) for row in about["rows"])
    assert len((await get("events", type="NODE", text="reservation"))["rows"]) >= 7
