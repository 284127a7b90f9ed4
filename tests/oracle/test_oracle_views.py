"""Dumps of the Go core, field by field, against the views of the same moment (2.14)."""

from collections.abc import Iterator
from typing import Any

import pytest

from quadriga.core.views import Views
from tests.oracle.player import Player
from tests.oracle.scenario import V15, Scenario

#: fields that are not compared, with the reason
NOT_COMPARED = {
    name: why
    for names, why in {
        # the harness made creation times differ by some ns; delays and request times follow
        "requestTime allocationTime allocationDelay submissionTime": "creation times",
        # names that the Go core gives to what the request left out
        "groups": "the Go core asked the operating system of the machine (I24)",
        "attributes": "the Go core writes the node's partition among them",
        # later versions have them, 1.5.2 does not
        "partition": "of nodes, for the web UI",
        "originator": "of allocations: 1.6",
        "childNames startTime": "1.6",
        "resourceHistory sortingPolicy prioritySorting preemptionEnabled isPreemptionFence": "1.7",
        "preemptionDelay isPriorityFence priorityOffset": "1.7",
        "quotaPreemptionDelay backoffDeadline": "1.8",
        # what ours does otherwise
        "stateLog applicationState": "X15: Starting",
        "triggeredScaleUp": "5.11: a timer of its own, not a step of the scenario",
        "timedout": "1.5.2 sets it on a timeout before the confirmations; ours is exact (V4)",
        "allocationLog": "ours says what is in the way now, and once",
    }.items()
    for name in names.split()
}

#: scenarios without any deliberate difference in what a dump shows
SAME = """
    fair-015 fair-016 gang-009 gang-012 limits-013 limits-020 nodes-022 nodes-023 nodesort-013
    nodesort-016 plain-016 plain-017 priority-015 priority-016 queues-010 queues-020
    s10_ph_larger_than_real s12_single_alloc_starting_timeout s13_node_removed s17_recover_node
    s1_plain s20_ask_removed_new_app s21_stateaware s22_max_apps s25_inspect s27_config_update
    s2_gang s33_priority s37_remove_app_variants s3_quota s6_timeout_partial_hard
    s6_timeout_partial_soft
""".split()


def told(value: Any) -> Any:
    """Zeros, empty lists and what is absent are all the same in the Go core's JSON: ``None``."""
    if isinstance(value, dict):
        kept = {name: told(each) for name, each in value.items()}
        value = {name: each for name, each in kept.items() if each is not None}
    elif isinstance(value, list):
        value = [told(each) for each in value]
    return value or None


def differences(
    theirs: dict[str, Any], ours: dict[str, Any], path: str, first: dict[str, int]
) -> Iterator[str]:
    """Fields that are not the same; lists of objects by what names these."""
    for name in sorted({*theirs, *ours} - set(NOT_COMPARED)):
        left, right = theirs.get(name), ours.get(name)
        if name in _NUMBERED and (begin := first.get(ours.get("applicationId", ""))):
            stem, _, number = str(left).rpartition("-")
            left = f"{stem}-{int(number) + begin}"
        key = _KEYS.get(name)
        if key is None:
            if told(left) != told(right):
                yield f"{path}.{name}: theirs {left!r}, ours {right!r}"
            continue
        their = {each[key]: each for each in left or ()}
        second = {each[key]: each for each in right or () if each.get("pendingCount") != 0}
        if set(their) != set(second):
            yield f"{path}.{name}: theirs {sorted(their)}, ours {sorted(second)}"
        for each in sorted(set(their) & set(second)):
            yield from differences(their[each], second[each], f"{path}.{name}[{each}]", first)


#: fields that end in the number of an allocation
_NUMBERED = ("allocationID", "uuid")

_KEYS = {
    "children": "queuename",
    "allocations": "allocationKey",
    "requests": "allocationKey",
    "placeholderData": "taskGroupName",
    "nodesInfo": "nodeID",
}

_ENDED = ("Completed", "Failed", "Rejected", "Expired")


def compare(done: dict[str, Any], views: Views) -> Iterator[str]:
    applications = views.scheduler.partition().applications
    first = {name: app.first_number for name, app in applications.items()}
    for queue in done.get("queues") or ():
        yield from differences(queue, dict(views.queues("default")), "queues", first)
    living = [app for app in done.get("apps") or () if app["applicationState"] not in _ENDED]
    for app in living:
        name = app["applicationID"]
        yield from differences(
            app, dict(views.application("default", name)), f"apps[{name}]", first
        )
    if "apps" in done:
        ours = [app["applicationID"] for app in views.applications("default", "active")]
        if sorted(ours) != sorted(app["applicationID"] for app in living):
            yield f"apps: ours {ours}"
    for partition in done.get("nodes") or ():
        nodes = {"nodesInfo": views.nodes("default")}
        yield from differences({"nodesInfo": partition["nodesInfo"]}, nodes, "nodes", first)
    for name, counters in (done.get("counters") or {}).items():
        mine = dict(views.partition_counters(name))
        for what in ("allocations", "applications", "placeholderAllocations", "reservations"):
            if counters[what] != mine[what]:
                yield f"counters.{what}: theirs {counters[what]}, ours {mine[what]}"


def steps_of(
    recordings: list[Scenario], name: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Views]]:
    """Each step of a recording, what the Go core's answer ended with, and ours after it."""
    (scenario,) = (scenario for scenario in recordings if scenario.name == name)
    answers = scenario.answers(V15)
    assert answers is not None
    player = Player(scenario.steps)
    views = Views(player.core)
    for step, answer in zip(scenario.steps, answers, strict=True):
        player.play(step)
        assert answer.done is not None
        yield step, answer.done, views


@pytest.mark.parametrize("name", SAME)
def test_2_14_a_dump_says_what_the_go_core_says(recordings: list[Scenario], name: str) -> None:
    compared = 0
    for at, (step, done, views) in enumerate(steps_of(recordings, name)):
        if step["op"] == "dump":
            assert list(compare(done, views)) == [], f"step {at}"
            compared += 1
    assert compared


def test_2_14_a_user_looks_as_in_the_go_core(recordings: list[Scenario]) -> None:
    """1.5.2 wraps amounts in an object; later versions and ours do not."""
    asked = 0
    for step, done, views in steps_of(recordings, "s36_limits"):
        if step["op"] == "rest":
            assert step["path"] == "/ws/v1/partition/default/usage/users"
            assert _without_usage(told(views.users("default"))) == _without_usage(
                told(done["body"])
            )
            asked += 1
    assert asked


def _without_usage(value: Any) -> Any:
    if isinstance(value, dict):
        plain = value.get("Resources", value)
        return {n: _without_usage(each) for n, each in plain.items() if n != "resourceUsage"}
    return [_without_usage(each) for each in value] if isinstance(value, list) else value
