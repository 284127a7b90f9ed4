"""Queues that placement makes, and how they and others go again (2.2, 2.4, 2.9), also under load."""

import json

import pytest
from core_steps import serve
from core_world import story
from tree_side import paths

from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.si import RequestError
from quadriga.sim.scripted.script import Script

RULES = """\
partitions:
  - name: default
    placementrules:
      - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.ns}}
      - {name: provided, create: true}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
"""
NAMESPACES = """\
          - name: ns
            parent: true
            properties: {application.sort.priority: disabled, priority.offset: '5', own: 'no'}
            childtemplate:
              maxapplications: 3
              properties: {application.sort.policy: fair, own: 'yes'}
              resources: {guaranteed: {memory: 10}, max: {memory: 50, vcore: 2}}
"""


@pytest.fixture
def script() -> Script:
    return Script(RULES + NAMESPACES)


def place(script: Script, app: str, namespace: str, **tags: str) -> None:
    assert script.app(app, tags={"namespace": namespace, **tags}) == [f"accepted {app}"]


def queue(script: Script, path: str) -> Queue:
    found = script.scheduler.partition().queue(path)
    assert found is not None, path
    return found


# -- templates -------------------------------------------------------------------------------------


def test_a_dynamic_leaf_is_made_after_the_template_of_its_parent(script: Script) -> None:
    place(script, "app", "dev")
    leaf = queue(script, "root.ns.dev")
    assert isinstance(leaf, LeafQueue)
    assert not leaf.managed
    assert leaf.max == {"memory": 50, "vcore": 2000}
    assert (leaf.guaranteed, leaf.max_applications) == ({"memory": 10}, 3)
    assert leaf.template is None
    # properties come down with the template over them
    assert leaf.raw_properties == {
        "application.sort.priority": "disabled",
        "application.sort.policy": "fair",
        "own": "yes",
    }
    assert (leaf.fair, leaf.sorts_priority, leaf.properties.priority_offset) == (True, False, 0)
    script.app("more", "root.made")
    leaf = queue(script, "root.made")  # there is no template for it
    assert (leaf.max, leaf.guaranteed, leaf.max_applications) == (None, None, 0)


def test_a_new_template_is_for_queues_made_later(script: Script) -> None:
    place(script, "old", "old")
    script.app("deep", "root.ns.deep.one")
    script.configure(RULES + NAMESPACES.replace("memory: 50", "memory: 70"))
    old = queue(script, "root.ns.old")
    assert (old.state, old.managed) == ("Active", False)
    place(script, "new", "new")
    script.app("deeper", "root.ns.deep.two")
    assert [
        (queue(script, f"root.ns.{name}").max or {})["memory"]
        for name in ("old", "new", "deep.one", "deep.two")
    ] == [50, 70, 50, 70]


# -- tags of a namespace ---------------------------------------------------------------------------


def resource_tag(**quantities: int) -> str:
    return json.dumps({"resources": {n: {"value": v} for n, v in quantities.items()}})


QUOTA, MAX_APPS = "namespace.resourcequota", "namespace.resourcemaxapps"
GUARANTEED = "namespace.resourceguaranteed"


def test_a_later_application_brings_newer_quotas_and_what_it_lacks_stays(script: Script) -> None:
    script.node("n", memory=100)
    sure = resource_tag(memory=5)
    quota = resource_tag(memory=20, pods=3)
    place(script, "one", "dev", **{QUOTA: quota, GUARANTEED: sure, MAX_APPS: "1"})
    assert queue(script, "root.ns.dev").max == {"memory": 20, "pods": 3}
    script.ask("one", *(f"k{n}" for n in range(4)), memory=10)
    assert sum(line.startswith("new") for line in script.schedule()) == 2
    place(script, "two", "dev", **{QUOTA.upper(): resource_tag(memory=40)})
    assert sum(line.startswith("new") for line in script.schedule()) == 2
    leaf = queue(script, "root.ns.dev")
    assert (leaf.max, leaf.guaranteed, leaf.max_applications) == ({"memory": 40}, {"memory": 5}, 1)
    assert serve(script, "two", "k", memory=1) == []
    place(script, "three", "dev", **{QUOTA: resource_tag(memory=41), MAX_APPS: "2"})
    assert any(line.startswith("new two/k") for line in script.schedule())


@pytest.mark.parametrize(
    ("value", "readable"),
    [
        *[("", True), ("{", False), ("[]", True)],
        ('{"resources": {"memory": {"value": "many"}}}', False),
        (resource_tag(memory=0), True),
        (resource_tag(memory=-1, vcore=5), True),
        (resource_tag(), True),
    ],
)
def test_a_quota_not_above_zero_is_ignored(script: Script, value: str, readable: bool) -> None:
    """One that cannot be read is noted."""
    place(script, "app", "dev", **{QUOTA: value, MAX_APPS: "-1" if readable else "few"})
    leaf = queue(script, "root.ns.dev")
    assert leaf.max == {"memory": 50, "vcore": 2000}
    assert leaf.max_applications == 3
    unread = () if readable else ("namespace.resourcequota", "namespace.resourcemaxapps")
    assert {text for _, text in script.scheduler.notes} >= {
        f"tag {tag} of application app cannot be read: ignored" for tag in unread
    }


def test_g6_a_gang_is_checked_against_the_quota_that_it_brings(script: Script) -> None:
    said = script.app(
        "gang", "root.made", gang={"memory": 30}, tags={QUOTA: resource_tag(memory=20)}
    )
    assert "larger than max queue allocation memory=20" in said[0]
    assert "root.made" in paths(script)  # for the cleaner
    script.advance(10)
    assert "root.made" not in paths(script)


def test_an_empty_dynamic_queue_goes_at_the_next_tenth_second(script: Script) -> None:
    partition = script.scheduler.partition()
    script.advance(3)
    quota = {QUOTA: resource_tag(memory=1)}
    script.app("app", "root.made.here", tags=quota)
    assert partition.clean_timer is None
    script.remove_app("app")
    assert partition.clean_timer is not None
    script.advance(6.9)
    assert "root.made.here" in paths(script)
    script.advance(0.1)
    assert paths(script) == ["root", "root.a", "root.ns"]
    assert story(script, "root.made") == ["remove", "removed"]
    assert partition.clean_timer is None  # there is nothing for the cleaner
    script.app("app", "root.made.here")
    assert queue(script, "root.made.here").max is None  # it is a new one


# -- the configuration changes ---------------------------------------------------------------------


def test_a_dynamic_queue_that_is_configured_becomes_managed(script: Script) -> None:
    place(script, "app", "dev")
    configured = NAMESPACES + (
        "            queues:\n              - {name: dev, resources: {max: {memory: 7}}}\n"
    )
    assert script.configure(RULES + configured) == []
    leaf = queue(script, "root.ns.dev")
    assert leaf.managed
    assert (leaf.max, leaf.max_applications, leaf.fair) == ({"memory": 7}, 0, False)
    script.remove_app("app")
    script.advance(20)
    assert "root.ns.dev" in paths(script)


def test_s27_the_branch_of_a_removed_queue_takes_no_new_application(script: Script) -> None:
    place(script, "app", "dev")
    script.configure(RULES.replace("      - {name: provided, create: true}\n", ""))
    (said,) = script.app("late", tags={"namespace": "dev"})
    assert "queue root.ns is Draining" in said
    (said,) = script.app("later", tags={"namespace": "new"})
    assert "queue root.ns is Draining" in said


def test_a_queue_of_placement_in_use_cannot_change_its_kind(script: Script) -> None:
    script.app("app", "root.made.dev")
    before = paths(script)
    leaf = RULES + NAMESPACES + "          - name: made\n"
    with pytest.raises(RequestError, match=r"root\.made cannot be a leaf: root\.made\.dev has"):
        script.configure(leaf)
    assert paths(script) == before
    script.remove_app("app")
    script.configure(leaf)
    assert paths(script) == ["root", "root.a", "root.made", "root.ns"]


def test_a_made_queue_has_a_hundred_levels_at_most(script: Script) -> None:
    """Every answer goes through all of them, and one resource manager's path is not to end that."""
    script.node("n1", vcore=9)
    deep = "root." + ".".join(["q"] * 99)
    (refused,) = script.app("deeper", f"{deep}.q")
    assert "a queue path with 101 levels; at most 100 are allowed" in refused
    assert script.app("deep", deep) == ["accepted deep"]
    assert serve(script, "deep", "a", vcore=1) == ["deep Running (run)", "new deep/a-0 on n1"]
    assert script.scheduler.check() == []
