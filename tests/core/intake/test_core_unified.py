"""Asks that come as allocations without a node, as since SI 1.6 (X45)."""

from collections.abc import Callable
from typing import Any

import pytest
from core_world import report as send
from core_world import scripted, serve

from quadriga.core import Options
from quadriga.core.model.application import Application
from quadriga.si import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationResponse,
    PreemptionPolicy,
    TerminationType,
)
from quadriga.si.constants import TAG_FOREIGN, TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

TIMEOUT = TerminationType.TIMEOUT
PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER
REPLACED = TerminationType.PLACEHOLDER_REPLACED


@pytest.fixture
def script(order: str) -> Script:
    """A node of 4 vcores and an application."""
    return scripted(ONE_QUEUE, "app", order=order, vcore=4000)


def wanted(key: str, vcore: int = 1000, **fields: Any) -> Allocation:
    """As a resource manager of SI 1.7 asks for a pod; with a ``nodeID`` it runs already."""
    fields.setdefault("applicationID", "app")
    fields.setdefault("resourcePerAlloc", resource({"vcore": vcore}))
    return Allocation(allocationKey=key, **fields)


def by_key(key: str, **more: str) -> AllocationRelease:
    return AllocationRelease(
        partitionName="default",
        applicationID="app",
        allocationKey=key,
        terminationType=TerminationType.STOPPED_BY_RM,
        **more,
    )


def app(script: Script, name: str = "app") -> Application:
    return script.scheduler.application(name)


def story(script: Script, key: str) -> list[str]:
    return [record.trigger for record in script.scheduler.story(key)]


def used(script: Script) -> int:
    partition = script.scheduler.partition()
    return int(partition.root.allocated[partition.registry.position("vcore")])


def notes(script: Script) -> str:
    return "\n".join(text for _, text in script.scheduler.notes)


# -- an ask and its life ---------------------------------------------------------------------------


def test_x45_every_field_of_the_ask_is_there(script: Script) -> None:
    send(
        script,
        wanted(
            "pod",
            2500,
            partitionName="default",
            priority=7,
            allocationTags={TAG_REQUIRED_NODE: "n1", "mine": "yes"},
            taskGroupName="workers",
            placeholder=True,
            originator=True,
            preemptionPolicy=PreemptionPolicy(allowPreemptOther=True),
        ),
    )
    ask = app(script).asks["pod"]
    assert (ask.pending, ask.priority, ask.task_group, ask.placeholder) == (1, 7, "workers", True)
    assert ask.required_node == "n1"
    assert ask.terms.tags["mine"] == "yes"
    assert ask.terms.originator
    assert (ask.terms.allow_preempt_self, ask.terms.allow_preempt_other) == (False, True)
    assert ask.terms.run_limit == 0
    script.schedule()
    (made,) = [r.new[0] for _, r in script.messages if isinstance(r, AllocationResponse) and r.new]
    assert made.preemptionPolicy == PreemptionPolicy(allowPreemptOther=True)
    assert made.allocationTags["mine"] == "yes"
    assert made.originator


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"applicationID": ""}, "independent asks"),
        ({"key": ""}, "allocationKey"),
        ({"applicationID": "nobody"}, "failed to find application nobody"),
        ({"partitionName": "nope"}, "'nope'"),
        (
            {"allocationTags": {TAG_FOREIGN: "default"}, "applicationID": ""},
            "is foreign and names no node",  # it is no ask of anybody (X19)
        ),
        ({"resourcePerAlloc": resource({})}, "resourcePerAlloc asks for nothing"),
        (
            {"resourcePerAlloc": resource({"vcore": 1, "memory": -1})},
            "resourcePerAlloc[memory] is negative",
        ),
    ],
)
def test_x45_a_wrong_one_is_rejected(script: Script, fields: dict[str, Any], why: str) -> None:
    message = wanted(**{"key": "pod", **fields})
    (line,) = send(script, message)
    assert line.startswith(f"rejected allocation {message.applicationID}/{message.allocationKey}: ")
    assert why in line
    assert app(script).asks == {}


def test_x45_m3_all_rejections_come_in_one_response_and_the_others_count(script: Script) -> None:
    wrong = wanted("x", applicationID="nobody"), wanted("y", 0)
    script.messages.clear()
    send(script, wanted("a"), wrong[0], wanted("b"), wrong[1])
    responses = [m for _, m in script.messages if isinstance(m, AllocationResponse)]
    assert [[r.allocationKey for r in m.rejectedAllocations] for m in responses] == [["x", "y"]]
    assert not any(m.rejected for m in responses)
    assert list(app(script).asks) == ["a", "b"]
    assert script.scheduler.tally.asks_rejected == 2


# -- the same key again ----------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [False, True])
def test_x45_2_20_the_same_key_changes_an_allocations_size(script: Script, reported: bool) -> None:
    """Else a pod that is resized, or named once more, would be started twice."""
    send(script, wanted("pod", nodeID="n1" if reported else ""))
    script.schedule()
    assert send(script, wanted("pod")) == []
    assert send(script, wanted("pod", 3000)) == []
    assert app(script).asks == {}
    assert script.schedule() == []
    assert (used(script), list(app(script).allocations)) == (3000, ["pod-0"])


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (wanted("pod", 0), "has no usable resourcePerAlloc"),
        (wanted("pod", taskGroupName="tg"), "with another part in the gang"),
    ],
)
def test_x45_impossible_changes_are_rejected(script: Script, message: Allocation, why: str) -> None:
    send(script, wanted("pod"))
    script.schedule()
    (line,) = send(script, message)
    assert line.startswith("rejected allocation app/pod: allocation 'pod' of application app ")
    assert line.endswith(why)
    assert used(script) == 1000


# -- rows ------------------------------------------------------------------------------------------


def _lives(send_all: Callable[[Script], object]) -> tuple[list[str], list[str]]:
    script = scripted(ONE_QUEUE, "app", "other", options=Options(journal_size=None), vcore=40_000)
    serve(script, "app", "held", vcore=1000, by_key=True)
    send_all(script)
    script.schedule()
    return script.log, [str(record) for record in script.scheduler.journal]


def test_x45_a_row_of_asks_is_taken_up_as_each_alone_would_be() -> None:
    """Also with keys of before, held and wrong ones, other looks and applications, and what runs."""
    row = [wanted(f"a{number}") for number in range(12)]
    row[3:3] = [
        wanted("a1", 500),
        wanted("held", 1000),
        wanted("wrong", 0),
        wanted("p", priority=2),
    ]
    row[9:9] = [wanted("a9", applicationID="other"), wanted("r", nodeID="n1"), wanted("b9" * 40)]
    row += [wanted(f"c{number}") for number in range(5)] + [wanted("held")]
    row += [wanted(f"c{number}") for number in range(5, 9)]

    def together(script: Script) -> None:
        send(script, *row)

    def alone(script: Script) -> None:
        send(script, wanted("r", nodeID="n1"))  # what runs is heard of first
        for message in row:
            if not message.nodeID:
                send(script, message)

    said, recorded = _lives(together)
    said_alone, recorded_alone = _lives(alone)
    rejected = [line for line in said if line.startswith("rejected")]
    assert rejected == [line for line in said_alone if line.startswith("rejected")]
    # the rejections of a request come together, at its end
    assert [e for e in said if e not in rejected] == [e for e in said_alone if e not in rejected]
    assert recorded == recorded_alone
    assert sum(line.startswith("new app/") for line in said) == 25


def test_x45_m2_what_runs_comes_first_then_asks_then_releases(script: Script) -> None:
    heard = send(
        script,
        wanted("new"),
        wanted("ran", nodeID="n1"),
        wanted("gone"),
        releases=AllocationReleasesRequest(allocationsToRelease=[by_key("gone"), by_key("ran")]),
    )
    assert [line for line in heard if not line.startswith("app ")] == [
        "new app/ran-0 on n1",
        "released app/gone STOPPED_BY_RM",
        "released app/ran-0 STOPPED_BY_RM",
    ]
    assert list(app(script).asks) == ["new"]


# -- releases --------------------------------------------------------------------------------------


def test_x45_a_release_by_key_takes_the_pending_ask_back(script: Script) -> None:
    """With nothing left the application waits."""
    send(script, wanted("pod", 9000), wanted("other", 9000))
    script.messages.clear()
    assert script.release("app", key="pod") == ["released app/pod STOPPED_BY_RM"]
    (answer,) = [m.released[0] for _, m in script.messages if isinstance(m, AllocationResponse)]
    assert answer == by_key("pod", message="ask released as per RM request")
    assert story(script, "ask/app/pod") == ["submit", "reject"]
    assert list(app(script).asks) == ["other"]
    waits = ["app Waiting (wait)", "released app/other STOPPED_BY_RM"]
    assert sorted(script.release("app", key="other")) == waits


def test_x45_it_takes_back_the_ask_and_its_allocations(script: Script) -> None:
    """Both are there where a resource manager mixes the forms."""
    serve(script, "app", "pod", vcore=1000)
    send(script, wanted("pod", 9000))
    heard = script.release("app", key="pod")
    assert [line for line in heard if line.startswith("released")] == [
        "released app/pod STOPPED_BY_RM",
        "released app/pod-0 STOPPED_BY_RM",
    ]
    assert (app(script).asks, used(script)) == ({}, 0)


def test_x12_a_release_by_key_leaves_an_ask_of_the_old_form_pending(script: Script) -> None:
    """What is still to come is taken back with an AllocationAskRelease (R7)."""
    serve(script, "app", "pod", vcore=3000, repeat=2)
    assert script.release("app", key="pod") == ["released app/pod-0 STOPPED_BY_RM"]
    assert app(script).asks["pod"].pending == 1
    assert script.release("app", key="pod") == []  # no allocation is left
    assert app(script).asks["pod"].pending == 1
    assert "unknown allocation 'pod'" in notes(script)
    assert script.schedule() == ["new app/pod-1 on n1"]


@pytest.mark.parametrize("kind", [TIMEOUT, PREEMPTED, REPLACED])
def test_x45_x8_a_late_confirmation_leaves_the_ask(script: Script, kind: TerminationType) -> None:
    """Nor does a UUID, which names the allocation only."""
    send(script, wanted("pod", 9000))
    assert script.release("app", kind=kind, key="pod") == []
    releases = AllocationReleasesRequest(allocationsToRelease=[by_key("pod", UUID="pod-0")])
    assert send(script, releases=releases) == []
    assert list(app(script).asks) == ["pod"]


def test_x45_a_release_by_key_looks_at_no_other_allocation(script: Script) -> None:
    """Else an application of n pods would take n² looks to end."""
    script.node("n2", vcore=10**9)
    send(script, *(wanted(f"pod{number}") for number in range(300)))
    script.schedule()
    one = app(script)

    class Shy(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("looked through all of them")

    one.allocations, held = Shy(one.allocations), one.allocations
    assert [each.uuid for each in one.held_of("pod250")] == ["pod250-0"]
    assert one.held_of("nobody") == []
    one.allocations = held


def test_x12_a_key_finds_allocations_whatever_their_uuids(script: Script) -> None:
    send(
        script, wanted("pod", UUID="7f3a", nodeID="n1"), wanted("pod", UUID="other-1", nodeID="n1")
    )
    send(script, wanted("pod", UUID="pod-007", nodeID="n1"))
    heard = script.release("app", key="pod")
    assert sorted(line for line in heard if line.startswith("released")) == [
        "released app/7f3a STOPPED_BY_RM",
        "released app/other-1 STOPPED_BY_RM",
        "released app/pod-007 STOPPED_BY_RM",
    ]
    assert (used(script), app(script).allocations) == (0, {})


# -- gangs -----------------------------------------------------------------------------------------


def gang(script: Script, room: int, style: str = "Soft") -> None:
    """A gang of three in this form, on a node with room for so many."""
    script.node("n2", vcore=1000 * room, memory=room)
    script.app("g", gang={"memory": 3}, style=style, timeout_ms=60_000)
    serve(script, "g", "p0", "p1", "p2", memory=1, group="tg", placeholder=True, by_key=True)


def test_x45_a_gang_in_this_form_replaces_its_placeholders(script: Script) -> None:
    gang(script, 3)
    assert app(script, "g").state == "Running"
    serve(script, "g", "m0", "m1", "m2", memory=1, group="tg", by_key=True)
    for key in ("p0", "p1", "p2"):  # as it knows nothing but the key
        script.release("g", kind=REPLACED, key=key)
    assert sorted(app(script, "g").allocations) == ["m0-0", "m1-0", "m2-0"]
    assert not app(script, "g").placeholders


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_x45_g46_g47_late_placeholder_asks_are_released_by_key(script: Script, style: str) -> None:
    """It knows no releasedAsks any more."""
    gang(script, 2, style)
    heard = script.advance(60)
    assert [line for line in heard if "TIMEOUT" in line] == [
        "released g/p2 TIMEOUT",
        "released g/p0-0 TIMEOUT",
        "released g/p1-0 TIMEOUT",
    ]
    for key in ("p2", "p0", "p1"):
        script.release("g", kind=TIMEOUT, key=key)
    assert app(script, "g").placeholders == {}
    assert app(script, "g").state == ("Accepted" if style == "Soft" else "Killed")
