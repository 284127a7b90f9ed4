"""Asks and allocations: their lives, their updates, their names (I14 to I18, X12, X13)."""

from typing import Any

import pytest

from quadriga.si import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    PreemptionPolicy,
    TerminationType,
)
from quadriga.sim.scripted.script import Script, resource


def cluster(*nodes: int, app: str = "app", **options: Any) -> Script:
    """Nodes n1, n2, ... with these many milli vcores, and perhaps an application."""
    script = Script(**options)
    for number, vcore in enumerate(nodes, 1):
        script.node(f"n{number}", vcore=vcore)
    if app:
        script.app(app)
    return script


def ask_message(key: str = "a", **fields: Any) -> AllocationAsk:
    fields.setdefault("resourceAsk", resource({"vcore": 1000}))
    fields.setdefault("maxAllocations", 1)
    fields.setdefault("applicationID", "app")
    return AllocationAsk(allocationKey=key, **fields)


def news(script: Script) -> list[Allocation]:
    return [new for _, m in script.messages if isinstance(m, AllocationResponse) for new in m.new]


def gang(*, order: str = "design", size: int = 2) -> Script:
    """A gang of ``size`` that has its placeholders, each on a node of its own."""
    script = cluster(*[2000] * size, app="", extra={"si.messageOrder": order})
    script.app("app", gang={"vcore": 2000 * size})
    keys = [f"p{number}" for number in range(size)]
    script.ask("app", *keys, group="g", placeholder=True, vcore=2000)
    script.schedule()
    assert script.scheduler.application("app").state == "Running"
    return script


def served(script: Script, app: str = "app", **more: Any) -> Script:
    """An ask, ``a``, is allocated."""
    script.ask(app, "a", **{"vcore": 1000, **more})
    script.schedule()
    return script


def asks(*asks: AllocationAsk, **releases: Any) -> AllocationRequest:
    return AllocationRequest(
        rmID="rm", asks=asks, releases=AllocationReleasesRequest(**releases) if releases else None
    )


def refused(heard: list[str], ask: str) -> None:
    (line,) = heard
    assert line.startswith(f"rejected ask {ask}: ")


def pending(script: Script) -> dict[str, int]:
    partition = script.scheduler.partition()
    return partition.registry.mapping(partition.root.pending)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"applicationID": ""}, "independent asks"),
        ({"allocationKey": ""}, "allocationKey"),
        ({"applicationID": "nobody"}, "failed to find application nobody, for allocation ask a"),
        ({"partitionName": "nope"}, "nope"),
        ({"resourceAsk": resource({})}, "invalid ask added to app app"),
        ({"resourceAsk": resource({"vcore": 0})}, "invalid ask added to app app"),
        ({"resourceAsk": resource({"vcore": 1, "memory": -1})}, "resourceAsk[memory]"),
        ({"maxAllocations": 0}, "maxAllocations 0"),
        ({"maxAllocations": -3}, "maxAllocations -3"),
    ],
)
def test_i14_i42_a_wrong_ask_is_rejected_with_the_reason(fields: dict[str, Any], why: str) -> None:
    script = cluster(1000)
    message = ask_message()
    for name, value in fields.items():
        if name == "resourceAsk":
            message.resourceAsk.CopyFrom(value)
        else:
            setattr(message, name, value)
    (line,) = script.send(asks(message))
    assert line.startswith(f"rejected ask {message.applicationID}/{message.allocationKey}: ")
    assert why in line
    assert script.scheduler.application("app").state == "New"
    assert pending(script) == {}


def test_x22_asks_are_the_same_by_application_and_allocation_key() -> None:
    script = cluster()
    script.ask("app", "a", "a", "a", vcore=1000)  # in one request as well (I17)
    assert pending(script) == {"vcore": 1000}
    script.ask("app", "a", vcore=3000)
    assert list(script.scheduler.application("app").asks) == ["a"]
    assert pending(script) == {"vcore": 3000}
    script.node("n1", vcore=4000)
    script.app("other")
    script.ask("other", "a", vcore=1000)
    heard = {line for line in script.schedule() if line.startswith("new")}
    assert heard == {"new app/a-0 on n1", "new other/a-0 on n1"}


def test_i15_i22_an_allocation_expires_with_the_timeout_of_its_ask() -> None:
    script = served(cluster(1000), timeout_ms=1500)
    assert script.advance(1.499) == []
    assert script.advance(0.001) == ["released app/a-0 TIMEOUT"]
    # its place is taken until the manager confirms
    script.ask("app", "b", vcore=1000)
    assert script.schedule() == []
    script.confirm()
    assert [r.target for r in script.scheduler.story("allocation/app/a-0")][-1] == "Expired"
    assert script.schedule() == ["new app/b-0 on n1"]


# -- I17: the same key again -----------------------------------------------------------------------


def test_i17_x13_an_update_changes_how_many_are_to_be_allocated_and_a_wrong_one_nothing() -> None:
    script = cluster(2000)
    script.ask("app", "a", repeat=5, vcore=1000)
    assert len(script.schedule()) == 3
    assert pending(script) == {"vcore": 3000}
    script.ask("app", "a", repeat=1, vcore=1000)
    assert pending(script) == {"vcore": 1000}
    script.ask("app", "a", repeat=2, vcore=1000)
    script.node("n2", vcore=9000)
    assert script.schedule() == ["new app/a-2 on n2", "new app/a-3 on n2"]
    assert pending(script) == {}
    assert script.scheduler.application("app").asks == {}
    script = cluster()
    script.ask("app", "a", vcore=1000)
    refused(script.ask("app", "a", vcore=-1), "app/a")
    refused(script.ask("app", "a", repeat=0, vcore=1), "app/a")
    assert pending(script) == {"vcore": 1000}
    script.node("n1", vcore=1000)
    assert script.schedule()[-1] == "new app/a-0 on n1"


def test_i17_an_update_changes_tags_originator_timeout_and_preemption() -> None:
    script = cluster()
    script.ask("app", "a", vcore=1000)
    changed = ask_message(
        tags={"k": "v"},
        Originator=True,
        executionTimeoutMilliSeconds=1000,
        preemptionPolicy=PreemptionPolicy(allowPreemptSelf=False, allowPreemptOther=True),
    )
    script.send(asks(changed))
    script.node("n1", vcore=1000)
    script.schedule()
    (new,) = news(script)
    assert dict(new.allocationTags) == {"k": "v"}
    assert new.originator
    assert new.preemptionPolicy == changed.preemptionPolicy
    assert script.advance(1) == ["released app/a-0 TIMEOUT"]


@pytest.mark.parametrize(
    "change", [{"group": "h", "placeholder": True}, {"group": "g"}, {}], ids=str
)
def test_i17_a_partly_allocated_placeholder_ask_stays_a_placeholder(change: Any) -> None:
    """Its allocations are of that group: another group, or a real ask, needs a key of its own."""
    script = cluster(1000)
    script.app("gang", gang={"vcore": 2000})
    script.ask("gang", "p", group="g", placeholder=True, repeat=2, vcore=1000)
    script.schedule()
    refused(script.ask("gang", "p", vcore=1000, **change), "gang/p")
    script.node("n2", vcore=1000)
    assert script.schedule()[-1] == "new gang/p-1 on n2 placeholder of g"
    assert script.remove_app("gang")[:2] == [
        "released gang/p-0 STOPPED_BY_RM",
        "released gang/p-1 STOPPED_BY_RM",
    ]


def test_i17_a_partly_allocated_real_ask_stays_a_real_one() -> None:
    script = cluster(1000)
    script.ask("app", "a", repeat=2, vcore=1000)
    script.schedule()
    refused(script.ask("app", "a", group="g", placeholder=True, vcore=1000), "app/a")
    assert script.release("app", "a-0") == ["released app/a-0 STOPPED_BY_RM"]


@pytest.mark.parametrize("change", [{"placeholder": True, "group": "g"}, {"group": "h"}, {}])
def test_i17_m4_a_parked_ask_stays_a_member_of_its_group(change: Any) -> None:
    script = gang()
    script.ask("app", "r", group="g", vcore=2000)
    script.schedule()
    refused(script.ask("app", "r", vcore=2000, **change), "app/r")
    assert script.confirm()[-1] == "new app/r-0 on n1"
    # M4: both are told by the allocation callback
    *_, released, _, new = (message for _, message in script.messages)
    assert isinstance(released, AllocationResponse) and isinstance(new, AllocationResponse)
    assert [r.terminationType for r in released.released] == [TerminationType.PLACEHOLDER_REPLACED]
    assert [n.UUID for n in new.new] == ["r-0"]


def test_i18_placeholder_is_ignored_without_a_task_group() -> None:
    script = cluster(4000)
    script.ask("app", "a", placeholder=True, vcore=1000)
    assert script.schedule() == ["app Running (run)", "new app/a-0 on n1"]
    assert set(script.scheduler.application("app").allocations) == {"a-0"}
    assert not news(script)[0].placeholder
    reported = Allocation(
        allocationKey="b",
        applicationID="app",
        resourcePerAlloc=resource({"vcore": 1000}),
        nodeID="n1",
        placeholder=True,
    )
    assert script.send(AllocationRequest(rmID="rm", allocations=[reported])) == [
        "new app/b-0 on n1"
    ]


# -- X12, X13 --------------------------------------------------------------------------------------


def test_x12_keys_with_numbers_never_collide() -> None:
    script = cluster(9000)
    script.ask("app", "a", "a-0", "a-0-0", repeat=2, vcore=1000)
    script.schedule()
    assert set(script.scheduler.application("app").allocations) == {
        "a-0",
        "a-1",
        "a-0-0",
        "a-0-1",
        "a-0-0-0",
        "a-0-0-1",
    }


def test_i25_an_allocation_says_everything() -> None:
    script = cluster(4000)
    message = ask_message(priority=-4, tags={"kubernetes.io/meta/podName": "x"}, taskGroupName="g")
    script.send(asks(message))
    script.schedule()
    assert news(script) == [
        Allocation(
            allocationKey="a",
            allocationTags={"kubernetes.io/meta/podName": "x"},
            UUID="a-0",
            resourcePerAlloc=resource({"vcore": 1000}),
            priority=-4,
            nodeID="n1",
            applicationID="app",
            partitionName="default",
            taskGroupName="g",
        )
    ]


@pytest.mark.parametrize(
    ("policy", "tag", "expected"),
    [
        (None, None, (True, False)),
        (None, "false", (False, False)),
        (None, "true", (True, False)),
        (PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True), "false", (True, True)),
        (PreemptionPolicy(), "true", (False, False)),
    ],
)
def test_x21_the_policy_counts_and_the_tag_where_there_is_none(
    policy: PreemptionPolicy | None, tag: str | None, expected: tuple[bool, bool]
) -> None:
    script = cluster()
    message = ask_message(tags={"yunikorn.apache.org/allowPreemption": tag} if tag else {})
    if policy is not None:
        message.preemptionPolicy.CopyFrom(policy)
    script.send(asks(message))
    ask = script.scheduler.application("app").asks["a"]
    assert (ask.terms.allow_preempt_self, ask.terms.allow_preempt_other) == expected


STOPPED = {"partitionName": "default", "applicationID": "app", "terminationType": 1}


def test_m2_asks_come_before_ask_releases_and_these_before_allocation_releases(order: str) -> None:
    script = served(cluster(1000, extra={"si.messageOrder": order}))
    # the ask of this very request is released by it: it was added first
    message = asks(
        ask_message("b"),
        allocationsToRelease=[AllocationRelease(UUID="a-0", **STOPPED)],
        allocationAsksToRelease=[AllocationAskRelease(allocationKey="b", **STOPPED)],
    )
    heard = script.send(message)
    assert heard[0] == "released ask app/b STOPPED_BY_RM"
    assert sorted(heard[1:]) == ["app Waiting (wait)", "released app/a-0 STOPPED_BY_RM"]
