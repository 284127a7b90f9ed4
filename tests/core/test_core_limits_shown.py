"""What can be seen of limits: holdings, explanations, the scale-up hint (2.14, 5.11)."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.core.model.account import Holding
from quadriga.core.scheduling import limits
from quadriga.sim.script import Script

TREE = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        limits:
          - {limit: all, users: ['*'], maxapplications: 3}
        queues:
          - name: p
            limits:
              - {limit: named, users: [ann], maxresources: {memory: 30}}
              - {limit: team, groups: [g1], maxresources: {memory: 40, gpu: 2}}
            queues:
              - name: a
                limits:
                  - {limit: every, users: ['*'], maxresources: {memory: 10}, maxapplications: 2}
              - name: b
          - name: c
"""


@pytest.fixture
def script() -> Script:
    script = Script(TREE)
    script.node("n1", memory=1000)
    script.app("x", "root.p.a", user="ann", groups=["g1"])
    script.app("y", "root.p.b", user="ann", groups=["g1"])
    script.app("z", "root.c", user="bob", groups=["g2"])
    script.ask("x", "x1", "x2", memory=6)
    script.ask("y", "y1", memory=6)
    script.ask("z", "z1", memory=6)
    script.schedule()
    return script


def plain(holding: Holding) -> dict[str, Any]:
    found: dict[str, Any] = {"used": sum(holding.usage), "running": holding.running}
    if holding.limit is not None:
        most = (holding.limit.max, holding.limit.applications)
        found["limit"] = (*most, "*" if holding.wildcard else holding.limit.label)
    found.update((child.path, plain(child)) for child in holding.children)
    return found


# -- holdings --------------------------------------------------------------------------------------


def test_2_14_what_a_user_holds_queue_by_queue(script: Script) -> None:
    partition = script.scheduler.partition()
    assert plain(limits.holding(partition, "ann")) == {
        "used": 12,
        "running": ("x", "y"),
        "limit": (None, 3, "*"),
        "root.p": {
            "used": 12,
            "running": ("x", "y"),
            "limit": ({"memory": 30}, 0, "named"),
            "root.p.a": {"used": 6, "running": ("x",), "limit": ({"memory": 10}, 2, "*")},
            "root.p.b": {"used": 6, "running": ("y",)},
        },
    }


def test_2_14_what_a_group_holds(script: Script) -> None:
    partition = script.scheduler.partition()
    assert plain(limits.holding(partition, "g1", group=True)) == {
        "used": 12,
        "running": ("x", "y"),
        "root.p": {
            "used": 12,
            "running": ("x", "y"),
            "limit": ({"memory": 40, "gpu": 2}, 0, "team"),
            "root.p.a": {"used": 6, "running": ("x",)},
            "root.p.b": {"used": 6, "running": ("y",)},
        },
    }


def test_2_14_the_group_of_each_running_application(script: Script) -> None:
    users = script.scheduler.partition().users
    found = [(app.app_id, group) for app, group in limits.applications_by_group(users["ann"])]
    assert found == [("x", "g1"), ("y", "g1")]
    assert [group for _, group in limits.applications_by_group(users["bob"])] == [""]


def test_2_14_everybody_with_an_application_or_a_limit_is_known(script: Script) -> None:
    partition = script.scheduler.partition()
    assert limits.names(partition) == ["ann", "bob"]
    assert limits.names(partition, groups=True) == ["g1"]
    for app in ("x", "y", "z"):
        script.remove_app(app)
    assert limits.names(partition) == ["ann", "bob"]
    partition.former_users.clear()
    assert limits.names(partition) == ["ann"]
    holding = limits.holding(partition, "ann")
    assert (sum(holding.usage), holding.running) == (0, ())
    assert [child.path for child in holding.children] == ["root.p"]
    with pytest.raises(KeyError, match="bob"):
        limits.holding(partition, "bob")


# -- explanations ----------------------------------------------------------------------------------


def test_explain_names_whose_limit_is_in_the_way(script: Script) -> None:
    found = script.scheduler.explain("x", "x2")
    assert found.reasons == (
        "user ann in root.p.a (limit *): memory limit 10, used 6, asked 6, headroom 4",
    )
    assert found.remedies == ("2 more memory for user ann in root.p.a (limit *)",)
    about = [check.about for check in found.checks]
    assert about.index("limit") < about.index("quota")  # 5.6: user headroom before the queue's


def test_explain_has_a_check_for_every_limit_on_the_way(script: Script) -> None:
    checks = [c.text for c in script.scheduler.explain("x", "x2").checks if c.about == "limit"]
    assert checks == [
        "user ann in root.p.a (limit *): memory limit 10, used 6, asked 6, headroom 4",
        "user ann in root.p: memory limit 30, used 12, asked 6, headroom 18",
        "group g1 in root.p: memory limit 40, used 12, asked 6, headroom 28",
    ]


def test_explain_counts_applications(script: Script) -> None:
    for app in ("u", "v"):
        script.app(app, "root.c", user="ann")
        script.ask(app, app + "1", memory=6)
    script.schedule()
    found = script.scheduler.explain("v", "v1")
    assert found.reasons == ("user ann in root (limit *) runs 3 of 3 applications",)
    assert found.remedies == ("raise maxapplications of user ann in root (limit *)",)


# -- the hint --------------------------------------------------------------------------------------


def hints(script: Script) -> list[str]:
    heard = script.schedule() + script.advance(1)
    return [line.split(" ")[1] for line in heard if line.startswith("FAILED")]


def test_5_11_no_more_is_reported_than_the_limit_would_let_run() -> None:
    script = Script(
        """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        limits:
          - {limit: all, users: ['*'], maxresources: {memory: 20}}
        queues:
          - name: a
          - name: b
"""
    )
    script.node("n1", memory=1)
    for app, user, queue in (("x", "ann", "a"), ("y", "ann", "b"), ("z", "bob", "b")):
        script.app(app, f"root.{queue}", user=user)
        script.ask(app, f"{app}1", f"{app}2", memory=8)
    # ann has room for two, wherever; bob for his two
    assert hints(script) == ["x/x1", "x/x2", "z/z1", "z/z2"]


def test_5_11_an_application_without_a_place_is_not_reported() -> None:
    script = Script(
        """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            limits:
              - {limit: one, groups: [g1], maxapplications: 1}
"""
    )
    script.node("n1", memory=8)
    for app in ("x", "y"):
        script.app(app, "root.a", user="ann", groups=["g1"])
        script.ask(app, f"{app}1", f"{app}2", memory=8)
    assert hints(script) == ["x/x2"]
    script.remove_app("x")
    assert hints(script) == ["y/y2"]
