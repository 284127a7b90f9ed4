"""Everything at one moment, as JSON (2.13).

``golden/state_dump.json`` is the dump of a small gang cluster. With QUADRIGA_GOLDEN=write in the
environment it is written anew; read it before keeping it.
"""

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from core_steps import later, run, serve
from everything_life import Life

from quadriga.core import SchedulerService
from quadriga.core.views import Views, as_text, diagnostics_of
from quadriga.si import NodeInfo, NullCallback, RegisterResourceManagerRequest
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script
from tests.core.views.test_core_views_fields import everything

GOLDEN = Path(__file__).parents[1] / "golden" / "state_dump.json"


CLUSTER = """\
partitions:
  - name: default
    placementrules:
      - {name: provided}
      - {name: fixed, value: root.batch}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: gangs
            maxapplications: 5
            resources: {guaranteed: {vcore: 2}, max: {vcore: 6, memory: 60}}
            properties: {application.sort.policy: fifo, gang.hold: "true"}
          - name: batch
            properties: {priority.offset: "5"}
"""


def small_gang_cluster() -> Script:
    """A gang half replaced; jobs that wait with a reservation, are done, rejected; a node that drains."""
    script = Script(CLUSTER)
    script.advance(60)
    script.node("n1", attributes={"si/hostname": "one", "si/rackname": "r"}, vcore=4000, memory=40)
    script.node("n2", attributes={"si/instance-type": "m5"}, vcore=4000, memory=40)
    script.node("n3", NodeInfo.CREATE_DRAIN, occupied={"vcore": 100}, vcore=1000)
    run(script, "done", "d", user="ann", queue="root.batch", vcore=500)
    script.release("done")
    script.app("gang", "root.gangs", user="ann", gang={"vcore": 4500, "memory": 30})
    serve(script, "gang", "p1", "p2", "p3", group="worker", placeholder=True, vcore=1500, memory=10)
    script.advance(31)
    script.ask(
        "gang", "w1", "w2", group="worker", priority=1, tags={"a": "b"}, vcore=1500, memory=10
    )
    script.schedule(1)
    script.confirm()
    script.schedule(1)
    script.app("wide", "root.batch", user="bob", tags={"a": "b"})
    script.ask("wide", "k", tags={"kubernetes.io/meta/podName": "pod"}, vcore=3000, memory=5)
    asked = {TAG_REQUIRED_NODE: "n9", "a": "b"}  # with every field
    more: dict[str, Any] = {"repeat": 3, "priority": -4, "timeout_ms": 90_500, "originator": True}
    script.ask("wide", "all", tags=asked, **more, vcore=500)
    script.app("bad", "root.gangs", gang={"vcore": 7000})
    later(script, 3)
    return script


def test_2_13_a_small_gang_cluster_where_nobody_registered_a_plugin() -> None:
    views = Views(small_gang_cluster().scheduler, start_time=1)
    views.sample()
    text = as_text(views.state_dump(log_level="DEBUG"))
    if os.environ.get("QUADRIGA_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    dump = Views(Script().scheduler).state_dump()
    assert dump["rmDiagnostics"] == {"empty": "Resource Manager did not register callback"}
    assert diagnostics_of({"rm": NullCallback()}) == dump["rmDiagnostics"]
    assert diagnostics_of({}) == dump["rmDiagnostics"]
    several = {"b": Plugin('{"x": 1}'), "a": Plugin("{}")}  # each under its name
    assert diagnostics_of(several) == {"a": {}, "b": {"x": 1}}


# -- what the resource manager adds ----------------------------------------------------------------


class Plugin:
    """A ``StateDumpPlugin`` that says this, or raises it."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer

    def get_state_dump(self) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def said_by(answer: str | Exception) -> dict[str, Any]:
    found = diagnostics_of({"rm": Plugin(answer), "mute": NullCallback()})
    assert json.loads(as_text(found)) == found
    return found


def test_i4_the_resource_managers_own_dump() -> None:
    assert said_by("{}") == {}
    assert said_by('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert "error" not in said_by('{"a": ' * 50 + "1" + "}" * 50)
    said = said_by('{"cache": {"pods": 3}}')
    dump = Views(Script().scheduler).state_dump(diagnostics=said)
    assert dump["rmDiagnostics"] == said == {"cache": {"pods": 3}}
    not_an_object = {"error": "state dump of the resource manager is not a JSON object"}
    assert said_by("[]") == said_by("[1]") == not_an_object


@pytest.mark.parametrize(
    "answer",
    [
        "not json",
        RuntimeError("lost the cache"),
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": ' * 90_000,
        '{"a": ' * 500 + "1" + "}" * 500,
        '{"a": ' * 101 + "[]" + "}" * 101,
        "1" * 10_000,
        "",
    ],
    ids=range(9),
)
def test_i4_a_plugin_that_fails_does_not_end_the_dump(answer: str | Exception) -> None:
    """What a resource manager says of itself is somebody else's text: it spoils no state dump."""
    said = said_by(answer)
    assert list(said) == ["error"]
    if isinstance(answer, Exception):
        assert "lost the cache" in said["error"]


def test_2_13_a_service_makes_the_dump_between_two_steps() -> None:
    class Manager(NullCallback):
        def get_state_dump(self) -> str:
            return '{"pods": 3}'

    with SchedulerService() as service:
        request = RegisterResourceManagerRequest(rmID="rm")
        service.register_resource_manager(request, Manager())
        views = Views(service.scheduler)
        dump = json.loads(service.state_dump(views, log_level="WARN"))
    assert (dump["rmDiagnostics"], dump["logLevel"]) == ({"pods": 3}, "WARN")
    assert [each["name"] for each in dump["partitions"]] == ["default"]


def test_2_13_open_event_streams_are_named() -> None:
    script = Script()
    views = Views(script.scheduler)
    script.advance(1)
    stream = script.scheduler.events.open_stream("here")
    assert views.state_dump()["eventStreams"] == [{"name": "here", "createdAt": 10**9}]
    stream.close()
    assert views.state_dump()["eventStreams"] == []


# -- in the middle of it all -----------------------------------------------------------------------


def claimed(script: Script) -> dict[str, int]:
    """What quotas hold for members larger than their placeholders, or without a node (X37, X39)."""
    partition = script.scheduler.partition()
    asks = [ask for app in partition.applications.values() for ask in app.asks.values()]
    planned = [ask.planned for ask in asks if ask.planned is not None]
    return total(partition.registry.mapping(each.growth) for each in planned)


@pytest.mark.parametrize("seed", range(380, 383))
def test_2_13_sums_agree_in_every_dump_of_a_faulty_run(seed: int) -> None:
    """What the dump says of queues, applications and nodes adds up (V1, V2), within one dump."""
    life = Life(random.Random(seed), alone=True)
    views = Views(life.script.scheduler)
    for _ in range(50):
        life.step()
        life.step()
        dump = views.state_dump()
        (root,) = dump["queues"]
        on_nodes: dict[str, int] = {}
        for node in dump["nodes"][0]["nodesInfo"]:
            of_node = total(each["resource"] for each in node["allocations"])
            assert nonzero(node["allocated"]) == of_node
            for name, whole in node["capacity"].items():
                split = node["allocated"][name] + node["occupied"][name] + node["available"][name]
                assert whole == split
            on_nodes = total([on_nodes, of_node])
        living = [app for app in dump["applications"] if "finishedTime" not in app]
        held = total(each["resource"] for app in living for each in app["allocations"])
        assert nonzero(root["allocatedResource"]) == total([held, claimed(life.script)])
        planned = {name: on_nodes.get(name, 0) - held.get(name, 0) for name in on_nodes}
        assert all(value >= 0 for value in planned.values())  # X18
        assert nonzero(root["pendingResource"]) == total(a["pendingResource"] for a in living)
        asked = total(
            {name: value * ask["pendingCount"] for name, value in ask["resource"].items()}
            for app in living
            for ask in app["requests"]
        )
        assert nonzero(root["pendingResource"]) == asked
        check_tree(root)


def check_tree(queue: dict[str, Any]) -> None:
    if queue["children"]:
        for field in ("allocatedResource", "pendingResource", "preemptingResource"):
            below = total(child[field] for child in queue["children"])
            assert nonzero(queue[field]) == below
        assert queue["runningApps"] == sum(child["runningApps"] for child in queue["children"])
    assert queue["childrenNames"] == [child["queuename"] for child in queue["children"]]
    for child in queue["children"]:
        assert child["parent"] == queue["queuename"]
        check_tree(child)


def nonzero(amounts: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in sorted(amounts.items()) if value}


def total(many: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for amounts in many:
        for name, value in amounts.items():
            found[name] = found.get(name, 0) + value
    return nonzero(found)


def digest(seed: int, *, read: bool) -> str:
    """Everything that is said in a random run, with its stories; every view read after each step."""
    life = Life(random.Random(seed), alone=True, curious=False)
    views = Views(life.script.scheduler)
    for _ in range(60):
        life.step()
        if read:
            everything(views)
            views.counters()
            views.queue_counters("default")
    said = life.digest
    for record in life.script.scheduler.journal:
        said.update(str(record).encode())
    return said.hexdigest()


@pytest.mark.parametrize("seed", [340, 341])
def test_v10_reading_changes_no_byte_of_what_follows(seed: int) -> None:
    assert digest(seed, read=True) == digest(seed, read=False)


def test_what_was_read_stays_as_it_was() -> None:
    life = Life(random.Random(343), alone=True)
    views = Views(life.script.scheduler)
    for _ in range(60):
        life.step()
    views.sample()
    views.check_health()
    before = everything(views)
    kept = copy.deepcopy(before)
    for _ in range(60):
        life.step()
        views.sample()
        views.check_health()
    assert before == kept


def test_what_a_reader_does_to_his_copy_is_his_own_business() -> None:
    script = Script()
    script.node("n1", attributes={"a": "b"}, vcore=4000)
    script.app("app", tags={"t": "v"})
    serve(script, "app", "k", tags={"x": "y"}, repeat=2, vcore=3000)
    views = Views(script.scheduler)
    views.check_health()
    untouched = as_text(views.state_dump())
    health = views.health()

    def spoil(value: object) -> None:
        if isinstance(value, dict):
            for each in value.values():
                spoil(each)
            value.clear()
        elif isinstance(value, list):
            for each in value:
                spoil(each)
            value.clear()

    for _, value in everything(views):
        spoil(value)
    assert as_text(views.state_dump()) == untouched
    assert views.health() == health
