"""Scheduling states of asks (X43): what a resource manager is told of an ask that gets no allocation."""

import pytest
from tree_side import room, tree

from quadriga.si import (
    NodeInfo,
    RegisterResourceManagerRequest,
    RequestError,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.sim.scripted.script import ONE_QUEUE, Script

ALL = {"si.schedulingStates": "all"}


def of(restriction: str) -> str:
    """One queue with such a restriction."""
    return tree(f"default, {restriction}")


def states(script: Script) -> list[tuple[str, str, str]]:
    """(state, ask, reason) of all that were told."""
    told = [m for _, m in script.messages if isinstance(m, UpdateContainerSchedulingStateRequest)]
    name = UpdateContainerSchedulingStateRequest.SchedulingState.Name
    return [(name(m.state), f"{m.applicartionID}/{m.allocationKey}", m.reason) for m in told]


def waits(script: Script, seconds: float = 5) -> None:
    """A round is made, and time passes."""
    script.schedule()
    script.advance(seconds)


def queue(restriction: str, *keys: str, extra: dict[str, str] = ALL) -> Script:
    """A node of ten vcores, and an application that asks for one for each key, and waits."""
    script = Script(of(restriction), extra=extra)
    script.node("n1", vcore=10_000)
    script.app("a")
    if keys:
        script.ask("a", *keys, vcore=1000)
        waits(script)
    return script


def told_of(script: Script) -> list[str]:
    """The asks that were told of, in order."""
    return [key for _, key, _ in states(script)]


@pytest.mark.parametrize(
    ("version", "extra", "told"),
    [
        ("1.4", {}, False),
        ("", {}, False),
        ("nightly", {}, False),
        ("1.5", {}, True),
        ("v1.5.2", {}, True),
        ("1.8.0", {}, True),
        ("2.0", {}, True),
        ("1.10", {}, True),
        ("1.4", ALL, True),
        ("1.8", {"si.schedulingStates": "failed"}, False),
    ],
)
def test_x43_all_states_are_for_managers_of_si_1_5_and_for_those_who_want_them(
    version: str, extra: dict[str, str], told: bool
) -> None:
    script = Script()
    config = of(room(1))
    script.send(
        RegisterResourceManagerRequest(rmID="rm", version=version, config=config, extraConfig=extra)
    )
    script.node("n1", vcore=10_000)
    script.app("a")
    script.ask("a", "k1", "k2", vcore=1000)
    waits(script)
    assert [state for state, _, _ in states(script)] == ["SKIPPED"] * told


def test_x12_1_50_is_not_1_5() -> None:
    script = Script()
    script.send(RegisterResourceManagerRequest(rmID="rm", version="1.50", config=ONE_QUEUE))
    (rm,) = script.scheduler.resource_managers()
    assert (rm.speaks_allocation_id, rm.all_states) == (False, True)


def test_x43_the_setting_may_change_and_must_make_sense() -> None:
    script = queue(room(1), "k1", "k2", extra={})
    assert states(script) == []
    script.configure("", ALL)
    script.ask("a", "k3", vcore=1000)
    waits(script)
    assert told_of(script) == ["a/k2", "a/k3"]
    with pytest.raises(RequestError, match=r"si.schedulingStates.*neither all nor failed"):
        script.configure("", {"si.schedulingStates": "some"})


@pytest.mark.parametrize(
    ("of_queue", "who"),
    [
        ("maxapplications: 1", "queue root.default runs as many applications as it may"),
        (
            "limits: [{users: [user], maxapplications: 1}]",
            "user user in root.default runs as many applications as allowed",
        ),
    ],
)
def test_x43_maxapplications(of_queue: str, who: str) -> None:
    script = queue(of_queue)
    script.ask("a", "k", vcore=1000)
    script.schedule()
    script.app("late")
    script.ask("late", "k", vcore=1000)
    waits(script)
    assert states(script) == [("SKIPPED", "late/k", who)]


def test_x43_an_ask_with_a_reservation_is_reserved_each_time() -> None:
    script = queue("parent: false")
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=20_000)  # the cluster as a whole has room
    script.ask("a", "big", vcore=9000)
    script.schedule()
    script.ask("a", "k", vcore=9000)
    script.schedule()
    script.advance(3)
    waits(script)
    told = [each for each in states(script) if each[0] == "RESERVED"]
    assert told == [("RESERVED", "a/k", "node n1 is reserved for it")]
    script.release("a", "big-0")
    assert script.schedule()[-1] == "new a/k-0 on n1"
    assert not [state for state, _, _ in states(script) if state == "SCHEDULED"]


def test_x43_a_member_that_takes_over_a_placeholder_needs_no_quota() -> None:
    script = queue(room(2))
    script.app("g", gang={"vcore": 2000})
    script.ask("g", "p1", "p2", vcore=1000, group="tg", placeholder=True)
    script.schedule()
    script.ask("g", "m1", "m2", "m3", vcore=1000, group="tg")
    waits(script)
    reason = "the quota of queue root.default has no room for it"
    assert states(script) == [("SKIPPED", "g/m3", reason)]  # there are two placeholders only


def test_x43_once_for_each_cause_and_ask() -> None:
    script = queue(room(2))
    script.ask("a", "k1", "k2", "k3", vcore=1000)
    for _ in range(3):
        waits(script)
    assert told_of(script) == ["a/k3"]
    script.ask("a", "k4", vcore=1000)  # a new one, of the same group
    waits(script)
    assert told_of(script) == ["a/k3", "a/k4"]
    limited = f"{room(9)}, limits: [{{users: [user], maxresources: {{vcore: 2}}}}]"
    script.configure(of(limited))  # another cause
    waits(script)
    assert told_of(script)[2:] == ["a/k3", "a/k4"]
    assert all("limit of user" in reason for _, _, reason in states(script)[2:])
    script.configure(of(room(2)))  # and back
    waits(script)
    assert len(states(script)) == 4


def test_x43_many_are_told_in_pieces_and_in_order() -> None:
    script = queue(room(1))
    script.check = False
    keys = [f"k{number:05}" for number in range(5000)]
    for number in range(5):
        script.app(f"x{number}")
        script.ask(f"x{number}", *keys[number * 1000 : (number + 1) * 1000], vcore=2000)
    script.schedule()
    script.advance(1)
    first = len(states(script))
    assert 0 < first < 5000
    script.advance(1)
    assert [key.partition("/")[2] for _, key, _ in states(script)] == keys
    script.advance(60)
    assert script.scheduler.partition().hints.skip_timer is None
    assert len(states(script)) == 5000


def test_x43_a_manager_that_is_away_is_told_when_it_is_back() -> None:
    script = queue(room(1))
    script.ask("a", "k1", "k2", vcore=1000)
    script.schedule()
    script.scheduler.disconnect("rm", script.now)
    script.advance(5)
    assert states(script) == []
    script.scheduler.reconnect("rm", script.now)
    waits(script)
    assert told_of(script) == ["a/k2"]


LIMIT = "limits: [{limit: '', users: ['*'], maxresources: {vcore: 3}}]"


def atomic(default: str = "default", small: str = room(3)) -> str:
    leaves = (default, f"small, {small}", f"limited, {LIMIT}")
    return tree(*leaves, root="submitacl: '*', properties: {gang.admission: atomic}")


def whole_gang(queue: str, members: int, *, announced: int = 0, room: int = 10) -> Script:
    """A gang of so many members of one vcore, and what it was told about its members after a while."""
    script = Script(atomic(), extra=ALL)
    script.node("n1", vcore=room * 1_000)
    script.app("s", f"root.{queue}", user="user")
    script.ask("s", "k", vcore=1_000)
    script.schedule()
    script.app("g", f"root.{queue}", gang={"vcore": announced * 1_000} if announced else None)
    keys = [f"p{number}" for number in range(members)]
    script.ask("g", *keys, group="g", placeholder=True, vcore=1_000)
    waits(script)
    return script


@pytest.mark.parametrize(
    ("leaf", "members", "announced", "reason"),
    [
        # the gate counts what was announced, a plan what has arrived
        ("small", 3, 0, "queue root.small has no room for the whole gang"),
        ("small", 3, 3, "queue root.small has no room for the whole gang"),
        ("limited", 3, 0, "the limit of user user in root.limited has no room for the whole gang"),
        ("default", 2, 4, "its gang waits for asks that have not arrived"),
    ],
)
def test_x43_members_of_a_gang_that_may_not_start_are_skipped(
    leaf: str, members: int, announced: int, reason: str
) -> None:
    script = whole_gang(leaf, members, announced=announced)
    assert states(script) == [("SKIPPED", f"g/p{number}", reason) for number in range(members)]


def test_x43_a_member_whose_gang_has_preempted_is_told_of_its_node() -> None:
    guaranteed = [f"resources: {{guaranteed: {{vcore: {vcore}}}}}" for vcore in (1, 3)]
    script = Script(atomic(f"default, {guaranteed[0]}", guaranteed[1]), extra=ALL)
    script.node("n1", vcore=4_000)
    script.app("s")
    script.ask("s", "a", "b", "c", "d", vcore=1_000, preempt=(True, True))
    script.schedule()
    script.app("g", "root.small", gang={"vcore": 2_000})
    script.ask("g", "p0", "p1", group="g", placeholder=True, vcore=1_000, preempt=(True, True))
    waits(script, 30)
    script.schedule()
    assert ("RESERVED", "g/p0", "node n1 is reserved for it") in states(script)
