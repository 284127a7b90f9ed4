"""Quota events: which asks and applications have one, and only when it changes (2.16, 5.6)."""

from typing import Any

import pytest
from core_world import later, launch, queues, scripted, serve
from event_lines import RecordReader

from quadriga.si import AddApplicationRequest, ApplicationRequest, UserGroupInformation
from quadriga.sim.scripted.script import Script


def config(vcore: int, more: str = "") -> str:
    own = f"resources: {{max: {{vcore: {vcore}}}}}" + (f", {more}" if more else "")
    return queues("small", "large", small=own)


def cluster(vcore: int = 2, more: str = "", nodes: int = 1) -> tuple[Script, RecordReader]:
    """Nodes of 8 vcores, and a queue with less."""
    named = tuple(f"n{at}" for at in range(nodes))
    script = scripted(config(vcore, more), nodes=named, vcore=8000)
    return script, RecordReader(script)


def waiting(*keys: str, **more: Any) -> tuple[Script, RecordReader]:
    """Asks of one vcore each, in a queue with less."""
    script, reader = cluster(**more)
    launch(script, "a", *keys, vcore=1000, queue="root.small")
    return script, reader


def no_room(key: str, left: int, app: str = "a", vcore: int = 1000, queue: str = "small") -> str:
    return (
        f"REQUEST NONE {key} {app} vcore={vcore} (Request '{key}' does not fit in queue "
        f"'root.{queue}' (requested map[vcore:{vcore}], available map[vcore:{left}]))"
    )


def room(key: str, vcore: int = 1000) -> str:
    return f"REQUEST NONE {key} a vcore={vcore} (Request '{key}' has become schedulable in queue 'root.small')"


def asking(script: Script, *apps: str, keys: str = "k", **more: Any) -> None:
    """These applications in the small queue, each with asks of one vcore."""
    for app in apps:
        script.app(app, "root.small", **more)
        script.ask(app, *keys, vcore=1000)
    script.schedule()


def test_2_16_x13_every_ask_that_a_quota_stops_is_named_once() -> None:
    """Only the ask that gets the room has a record of it; remaining repeats have another one."""
    script, reader = waiting("k0", "k1", "k2", "k3")
    assert reader.new_lines("REQUEST") == [no_room("k2", 0), no_room("k3", 0)]
    for _ in range(3):
        script.schedule()
        script.advance(1)
    assert reader.new_lines("REQUEST") == []
    serve(script, "a", "k4", vcore=1000, repeat=2)
    assert reader.new_lines("REQUEST") == [no_room("k4", 0)]
    for again in (["k2"], ["k3"], ["k4"]):
        script.release("a", next(iter(script.scheduler.application("a").allocations)))
        script.schedule()
        left = [no_room("k4", 0)] if again == ["k4"] else []
        assert reader.new_lines("REQUEST") == [*map(room, again), *left]
        script.schedule()
        assert reader.new_lines("REQUEST") == []


def test_2_16_5_3_an_ask_that_only_waits_for_a_node_has_a_record_that_the_quota_has_room() -> None:
    """A full cluster is a quota too."""
    script, reader = cluster(vcore=5, nodes=1)
    script.app("b", "root.large")
    script.ask("b", "big", vcore=6000)
    script.app("a", "root.small")
    script.ask("a", "k", vcore=2000)
    serve(script, "a", "wide", vcore=4000)
    # root has 0 left: big and k are there
    assert reader.new_lines("REQUEST") == [no_room("wide", 0, vcore=4000)]
    script.node("n1", vcore=3000)
    script.node("n2", vcore=3000)
    script.release("a", "k-0")
    script.schedule()
    assert reader.new_lines("REQUEST") == [room("wide", vcore=4000)]  # and no node of that size


def test_x9_asks_that_are_held_have_no_quota_events() -> None:
    script, reader = cluster(vcore=2)
    script.app("g", "root.small", gang={"vcore": 2000})
    script.ask("g", "p0", "p1", group="tg", placeholder=True, vcore=1000)
    script.ask("g", "extra", vcore=1000)
    script.schedule(1)
    script.schedule(0)
    assert reader.new_lines("REQUEST") == []
    script.schedule()  # the gang is complete: nothing is held any more
    assert reader.new_lines("REQUEST") == [no_room("extra", 0, app="g")]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ("maxapplications: 1", "QUEUE"),
        ("limits: [{limit: ann, users: [ann], maxapplications: 1}]", "QUOTA"),
    ],
    ids=["queue", "limit"],
)
def test_2_9_2_5_maxapplications_is_recorded_once_and_when_it_can_run(more: str, kind: str) -> None:
    script, reader = cluster(vcore=8, more=more)
    asking(script, "a", "b", "c", user="ann")
    assert reader.new_lines("APP NONE") == [
        f"APP NONE APP_CANNOTRUN_{kind} b",
        f"APP NONE APP_CANNOTRUN_{kind} c",
    ]
    script.schedule()
    assert reader.new_lines("APP NONE") == []
    script.release("a", "k-0")  # its place is free while it waits for its end
    script.schedule()
    assert reader.new_lines("APP NONE") == [f"APP NONE APP_RUNNABLE_{kind} b"]


USER = "limits: [{limit: ann, users: [ann], maxresources: {vcore: 1}}]"
GROUP = "limits: [{limit: all, groups: [devs], maxresources: {vcore: 1}}]"


def test_2_5_5_6_an_ask_above_a_limit_is_recorded_and_when_there_is_room_again() -> None:
    """The limit is checked before the quota of the queue."""
    script, reader = cluster(vcore=1, more=USER)
    asking(script, "a", keys="kl", user="ann")
    assert reader.new_lines("REQUEST") == [
        "REQUEST NONE l a vcore=1000 (Request 'l' exceeds the available user quota "
        "(requested map[vcore:1000], available map[vcore:0]))"
    ]
    script.release("a", "k-0")
    script.schedule()
    assert reader.new_lines("REQUEST") == [
        "REQUEST NONE l a vcore=1000 (Request 'l' fits in the available user quota)"
    ]


@pytest.mark.parametrize("groups", [("devs",), ("others", "devs")])
def test_2_5_a_group_is_linked_while_its_application_runs(groups: tuple[str, ...]) -> None:
    script, reader = cluster(vcore=4, more=GROUP)
    ugi = UserGroupInformation(user="ann", groups=groups)
    new = AddApplicationRequest(applicationID="a", queueName="root.small", ugi=ugi)
    script.send(ApplicationRequest(rmID="rm", new=[new]))
    assert reader.new_lines("USER") == []
    serve(script, "a", "k", vcore=1000)
    assert reader.new_lines("USER") == [
        "USERGROUP SET UG_APP_LINK devs a",
        "USERGROUP ADD UG_USER_RESOURCE ann root.small vcore=1000",
        "USERGROUP ADD UG_GROUP_RESOURCE devs root.small vcore=1000",
    ]
    script.release("a", "k-0")
    assert reader.new_lines("USER") == [
        "USERGROUP REMOVE UG_USER_RESOURCE ann root.small vcore=1000",
        "USERGROUP REMOVE UG_GROUP_RESOURCE devs root.small vcore=1000",
        "USERGROUP REMOVE UG_APP_LINK devs a",
    ]


def test_2_16_a_refusal_by_all_nodes_is_recorded_with_the_reasons_every_15_seconds() -> None:
    """A refusal by some is not recorded."""
    script, reader = cluster(nodes=3)
    reasons = {"n0": "taint", "n1": "taint", "n2": None}
    script.scheduler.set_predicate("rm", lambda key, node, allocate: reasons[node])
    heard = launch(script, "b", "k", vcore=1000, queue="root.large")
    assert (heard[-1], reader.new_lines("REQUEST")) == ("new b/k-0 on n2", [])
    reasons["n2"] = "affinity"
    launch(script, "a", "k", vcore=1000, queue="root.large")
    text = "REQUEST NONE k a vcore=1000 (Unschedulable request 'k': affinity (1x) taint (2x))"
    assert reader.new_lines("REQUEST") == [text]
    told = []
    for _ in range(30):
        later(script, 1)
        told.append(reader.new_lines("REQUEST"))
    assert [at + 1 for at, each in enumerate(told) if each] == [15, 30]
