"""The running configuration, placement rules, users and groups as data (2.14)."""

import json
from pathlib import Path
from typing import Any

import pytest
from core_steps import on_nodes, run, submit
from core_world import queues
from views_side import has

from quadriga.core import config
from quadriga.core.views import Views, as_yaml
from quadriga.sim.demo import QUEUES
from quadriga.sim.scripted.script import ONE_QUEUE, Script

REPOSITORY = Path(__file__).resolve().parents[3]

RICH = """\
# a comment that nobody keeps
partitions:
  - name: default
    placementrules:
      - name: tag
        value: Namespace
        create: true
        filter: {type: deny, users: [mallory], groups: ['tmp.*']}
        parent: {name: fixed, value: root.users, create: true}
      - {name: user, create: true, parent: {name: fixed, value: teams}}
    limits:
      - limit: everybody \U0001f600
        users: [ann, '*']
        maxresources: {vcore: 8, memory: 64Gi}
        maxapplications: 9
      - {limit: developers, groups: [dev, '*'], maxapplications: 20}
    preemption: {enabled: false, quotapreemptionenabled: true}
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2.5, memory: 0}}
    queues:
      - name: root
        submitacl: '*'
        adminacl: 'ann,bob ops'
        properties: {application.sort.policy: fair, "quoted": "true", number: "10"}
        queues:
          - name: Users
            parent: true
            maxapplications: 12
            resources: {guaranteed: {vcore: 500m, memory: 1Gi}, max: {vcore: 10, gpu: 4}}
            properties: {application.sort.policy: fifo, priority.offset: "-3"}
            childtemplate:
              maxapplications: 3
              properties: {preemption.policy: disabled}
              resources: {guaranteed: {vcore: 1}, max: {memory: 10M}}
            queues: [{name: kid, parent: true, maxapplications: 12}]
          - name: leaf
            submitacl: ' staff'
            properties: {application.sort.policy: fair, own: 'yes'}
            limits: [{limit: "", users: [ann], maxresources: {memory: 1Gi}}]
  - name: gpu
    queues: [{name: default}]
"""


def running(text: str) -> Views:
    return Views(Script(text, extra={"b": "2", "a": "1"}).scheduler)


def shown(script: Script, form: str) -> str:
    """What GET gives."""
    found = Views(script.scheduler).configuration()
    return as_yaml(found) if form == "yaml" else json.dumps(found)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_2_14_the_second_time_it_is_the_same_configuration(form: str) -> None:
    """The checksum in the text does not count, so what has come back once changes nothing more."""
    script = Script(RICH)
    script.configure(shown(script, form))
    once = Views(script.scheduler).configuration()
    script.configure(shown(script, form))
    assert Views(script.scheduler).configuration() == once
    assert once["checksum"] == config.checksum(shown(script, form)) != config.checksum(RICH)


def test_2_14_what_is_inherited_or_default_is_not_repeated() -> None:
    default, gpu = running(RICH).configuration()["partitions"]
    (root,) = default["queues"]
    users, leaf = root["queues"]
    assert users["properties"] == {"application.sort.policy": "fifo", "priority.offset": "-3"}
    assert leaf["properties"] == {"own": "yes"}
    assert "childtemplate" not in users["queues"][0]
    assert root["adminacl"] == "ann,bob ops"
    assert leaf["submitacl"] == " staff"
    assert users["resources"]["guaranteed"] == {"memory": "1073741824", "vcore": "500m"}
    assert gpu == {
        "name": "gpu",
        "queues": [{"name": "root", "parent": True, "queues": [{"name": "default"}]}],
        "preemption": {"enabled": True, "quotapreemptionenabled": False},
        "nodesortpolicy": {"type": "fair", "resourceweights": {"memory": 1.0, "vcore": 1.0}},
    }


def test_2_14_nobody_is_registered_or_a_partition_drains() -> None:
    script = Script(RICH)
    script.node("n1", attributes={"si/node-partition": "gpu"}, vcore=1)
    script.configure(RICH[: RICH.index("  - name: gpu")])
    views = Views(script.scheduler)
    assert [p["name"] for p in views.partitions()] == ["default", "gpu"]
    assert [p["name"] for p in views.configuration()["partitions"]] == ["default"]
    script = Script()
    script.scheduler.shutdown("rm", script.now)
    assert Views(script.scheduler).configuration()["partitions"] == []
    assert Views(script.scheduler).configuration("other") == {
        "partitions": [],
        "checksum": "",
        "extra": {},
    }


def survives(text: str, where: object) -> None:
    """It means the same after GET and PUT, in both forms, and after that nothing changes."""
    wanted = config.load(text, node_sort_policy="fair")
    for form in ("yaml", "json"):
        script = Script(text or config.DEFAULT_CONFIGURATION, extra={"health.checkInterval": "1h"})
        (rm,) = script.scheduler.resource_managers()
        for _ in range(2):
            script.configure(shown(script, form))
            by_name = {name: partition.config for name, partition in rm.partitions.items()}
            assert by_name == {each.name: each for each in wanted.partitions}, where
            assert rm.extra == {"health.checkInterval": "1h"}


def test_2_14_every_shared_configuration_survives_the_round_trip(shared: Path) -> None:
    """All that are valid, of people who run YuniKorn."""
    folder = shared / "data" / "queue-configs"
    tried = 0
    for path in sorted(folder.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            if not config.load(text).partitions:
                continue
        except config.ConfigError:
            continue
        survives(text, path)
        tried += 1
    assert tried > 50


def test_2_14_every_embedded_configuration_survives_the_round_trip() -> None:
    example = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    example = example.partition("```yaml\n")[2].partition("```")[0]
    for text in (config.DEFAULT_CONFIGURATION, ONE_QUEUE, QUEUES, RICH, example):
        survives(text, text)


@pytest.mark.parametrize(
    ("text", "allowed", "reason"),
    [
        (RICH, True, ""),
        (RICH + "checksum: x\nextra: {a: b}\n", True, ""),
        (RICH + "extra: [a]\n", False, "extra (line "),
        ("partitions: [{name: default}]", False, "queue config is not set"),
        ("partitions: {", False, ""),
    ],
)
def test_2_14_validation_says_yes_or_why_not(text: str, allowed: bool, reason: str) -> None:
    found = Views.validate_configuration(text)
    assert found["allowed"] is allowed
    assert reason in found["reason"]
    assert bool(found["reason"]) != allowed


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5\u00b5s"),
        (2_000_000, "2ms"),
        (1_100_000_000, "1.1s"),
        (30_000_000_000, "30s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (90_061_000_000_001, "25h1m1.000000001s"),
        (-30_000_000_000, "-30s"),
    ],
)
def test_2_14_durations_as_go_prints_them(ns: int, text: str) -> None:
    assert config.render_duration(ns) == text
    assert config.parse_duration(text) == ns


def rule(name: str, parent: Any = None, **parameters: str) -> dict[str, Any]:
    above = {"parentRule": parent} if parent else {}
    return {"name": name, "parameters": parameters, **above}


def test_2_3_2_14_placement_rules_with_their_parents_and_filters_or_none() -> None:
    users = rule("fixed", create="true", qualified="true", queue="root.users")
    teams = rule("fixed", create="false", qualified="false", queue="teams")
    kept_out = {"userList": ["mallory"], "groupList": [], "userExp": "", "groupExp": "tmp.*"}
    by_tag = rule("tag", users, create="true", tagName="namespace")
    assert running(RICH).placement_rules("default") == [
        {**by_tag, "filter": {"type": "deny", **kept_out}},
        rule("user", teams, create="true"),
        rule("recovery", queue="root.@recovery@"),
    ]
    rules = Views(Script().scheduler).placement_rules("default")
    assert rules == [rule("provided", create="false"), rule("recovery", queue="root.@recovery@")]


LIMITED = queues(
    *("p.a", "p.b"),
    root="limits: [{limit: a, users: [ann], maxresources: {vcore: 6}}, "
    "{limit: g, groups: [dev], maxapplications: 5}, "
    "{limit: all, users: ['*'], maxapplications: 2}]",
    p_a="limits: [{limit: x, users: [ann], maxresources: {vcore: 4}, maxapplications: 1}]",
)


def test_2_5_what_a_user_holds_and_may_hold() -> None:
    script = on_nodes(LIMITED, n1=8000)
    for name, queue in (("one", "a"), ("two", "b")):
        submit(script, name, "k", user="ann", queue=f"root.p.{queue}", repeat=2, vcore=1000)
    script.app("three", "root.p.b", user="bob")
    script.schedule()
    views = Views(script.scheduler)
    assert [user["userName"] for user in views.users("default")] == ["ann", "bob"]
    root = views.user("default", "ann")["queues"]
    has(root, queuePath="root", resourceUsage={"vcore": 4000}, runningApplications=["one", "two"])
    has(root, maxResources={"vcore": 6000}, maxApplications=None)
    (p,) = root["children"]
    has(p, maxResources=None)
    a, b = p["children"]
    has(a, queuePath="root.p.a", maxResources={"vcore": 4000}, maxApplications=1)
    has(b, queuePath="root.p.b", resourceUsage={"vcore": 2000}, children=[])
    bob = views.user("default", "bob")["queues"]
    has(bob, maxApplications=2, resourceUsage={})  # the wildcard's
    dev = views.group("default", "dev")
    has(dev["queues"], maxApplications=5)
    has(dev, applications=[])


def test_2_5_the_groups_of_a_user_say_for_which_one_an_application_counts() -> None:
    script = on_nodes(LIMITED, n1=8000)
    run(script, "app", "k", queue="root.p.b", user="cem", groups=["ops", "dev"], vcore=1000)
    views = Views(script.scheduler)
    assert views.user("default", "cem")["groups"] == {"app": "dev"}
    dev = views.group("default", "dev")
    assert dev["applications"] == ["app"]
    assert dev["queues"]["resourceUsage"] == {"vcore": 1000}
    assert views.application("default", "app")["groups"] == ["ops", "dev"]
