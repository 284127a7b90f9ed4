"""The routing table, row by row: what each message reaches, and what it triggers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from core_steps import on_nodes, run, serve
from core_world import reported

from quadriga import si
from quadriga.core.intake.dispatcher import NODE_ROUTES, ROUTES, NodeRoute
from quadriga.core.intake.routes import Route
from quadriga.fsm import LIFECYCLES
from quadriga.si.constants import TAG_FOREIGN
from quadriga.sim.scripted.script import Script

REQUESTS = (si.ApplicationRequest, si.AllocationRequest, si.NodeRequest)
WHOLE = (si.RegisterResourceManagerRequest, si.UpdateConfigurationRequest)
REPLACED = si.TerminationType.PLACEHOLDER_REPLACED

Fired = list[tuple[str, str]]


@contextmanager
def watching() -> Iterator[Fired]:
    """Every trigger that is fired: (lifecycle, trigger)."""
    fired: Fired = []

    def watch(name: str) -> Callable[[], None]:
        return LIFECYCLES[name].observe(lambda row: fired.append((name, row.trigger)))

    stops = [watch(name) for name in LIFECYCLES]
    try:
        yield fired
    finally:
        for stop in stops:
            stop()


def route(message: type, field: str, entity: str = "") -> Route:
    found = [r for r in ROUTES if r.message is message and r.field == field]
    (one,) = [r for r in found if entity in ("", r.entity)]
    return one


def ready() -> Script:
    """A node, application a with x-0 and the pending ask y, a gang g whose p-0 is asked back for m."""
    script = on_nodes(n1={"memory": 20})
    run(script, "a", "x", memory=1)
    script.ask("a", "y", memory=100)
    run(script, "g", "p", gang={"memory": 1}, group="tg", placeholder=True, memory=1)
    serve(script, "g", "m", group="tg", memory=1)
    return script


def name_of(each: Route) -> str:
    return each.cause + (f"-{each.entity}" if each.of else "")


@pytest.mark.parametrize("each", ROUTES, ids=name_of)
def test_m1_a_route_names_parts_of_its_messages_and_triggers_of_its_lifecycle(each: Route) -> None:
    if each.field:
        assert each.message in REQUESTS
        descriptor = each.message.DESCRIPTOR
        for name in each.field.split("."):
            descriptor = descriptor.fields_by_name[name].message_type
        assert not list(each.items(each.message()))
    else:
        assert each.message in WHOLE
    for entity, triggers in each.concerns.items():
        assert triggers
        assert set(triggers) <= set(LIFECYCLES[entity].triggers())
    responses = (si.AllocationResponse, si.ApplicationResponse, si.NodeResponse)
    assert set(each.response) <= {name for r in responses for name in r.DESCRIPTOR.fields_by_name}
    assert bool(each.response) == bool(each.field)


def test_m1_x45_every_repeated_part_of_every_request_has_one_route() -> None:
    """``allocations`` has two, between which its items are divided."""
    found = []
    for message in REQUESTS:
        for field in message.DESCRIPTOR.fields:
            inside = field.message_type
            if inside is None:
                continue
            if inside.name == "AllocationReleasesRequest":
                found.extend((message, f"{field.name}.{f.name}") for f in inside.fields)
            else:
                found.append((message, field.name))
    found.append((si.AllocationRequest, "allocations"))
    assert sorted((m.__name__, f) for m, f in found) == sorted(
        (r.message.__name__, r.field) for r in ROUTES if r.field
    )


@pytest.mark.parametrize("node", ["", "n1"])
@pytest.mark.parametrize("tags", [{}, {TAG_FOREIGN: "default"}], ids=["ours", "foreign"])
def test_x45_each_item_of_allocations_goes_to_one_route(node: str, tags: dict[str, str]) -> None:
    item = si.Allocation(allocationKey="x", nodeID=node, allocationTags=tags)
    message = si.AllocationRequest(allocations=[item])
    taken = {each.entity: list(each.items(message)) for each in (ALLOCATIONS, NODELESS)}
    ours = not (node or tags)
    assert taken == {"ask": [item] * ours, "allocation": [item] * (not ours)}


def test_m2_m5_parts_are_handled_in_the_protocols_order() -> None:
    order = [(r.message.__name__, r.field) for r in ROUTES]
    assert order == [
        ("RegisterResourceManagerRequest", ""),
        ("UpdateConfigurationRequest", ""),
        ("ApplicationRequest", "new"),
        ("ApplicationRequest", "remove"),
        ("AllocationRequest", "allocations"),
        ("AllocationRequest", "asks"),
        ("AllocationRequest", "allocations"),
        ("AllocationRequest", "releases.allocationAsksToRelease"),
        ("AllocationRequest", "releases.allocationsToRelease"),
        ("NodeRequest", "nodes"),
    ]


REGISTER = route(si.RegisterResourceManagerRequest, "")
CONFIGURE = route(si.UpdateConfigurationRequest, "")
NEW, REMOVE = route(si.ApplicationRequest, "new"), route(si.ApplicationRequest, "remove")
ASKS = route(si.AllocationRequest, "asks")
ALLOCATIONS = route(si.AllocationRequest, "allocations", "allocation")
NODELESS = route(si.AllocationRequest, "allocations", "ask")
ASK_RELEASES = route(si.AllocationRequest, "releases.allocationAsksToRelease")
NODES = route(si.NodeRequest, "nodes")
RELEASES = route(si.AllocationRequest, "releases.allocationsToRelease")

RECOVERED = reported("r", "a", nodeID="n1", memory=1)


def test_m5_x34_an_accepted_application_is_new_and_nothing_is_fired() -> None:
    script = ready()
    with watching() as fired:
        assert script.app("fresh") == ["accepted fresh"]
    assert fired == []
    assert script.scheduler.application("fresh").state == "New"


# fmt: off
LIVES: dict[si.NodeInfo.ActionFromRM, tuple[list[si.NodeInfo.ActionFromRM], str | None]] = {
    # action                        what the node has been through before, its state afterwards
    si.NodeInfo.CREATE:                ([], "Schedulable"),
    si.NodeInfo.CREATE_DRAIN:          ([], "Draining"),
    si.NodeInfo.UPDATE:                ([si.NodeInfo.CREATE], "Schedulable"),
    si.NodeInfo.DRAIN_NODE:            ([si.NodeInfo.CREATE], "Draining"),
    si.NodeInfo.DRAIN_TO_SCHEDULABLE:  ([si.NodeInfo.CREATE_DRAIN], "Schedulable"),
    si.NodeInfo.DECOMISSION:           ([si.NodeInfo.CREATE], None),
}
# fmt: on


@pytest.mark.parametrize("each", NODE_ROUTES, ids=lambda r: si.NodeInfo.ActionFromRM.Name(r.action))
def test_m7_an_action_fires_its_trigger_at_the_node(each: NodeRoute) -> None:
    script = Script()
    before, after = LIVES[each.action]
    for action in before:
        script.node("n1", action, memory=1)
    with watching() as fired:
        script.node("n1", each.action, memory=2)
    assert fired == [("node", each.trigger)]
    node = script.scheduler.partition().nodes.get("n1")
    assert (node.state if node else None) == after


def test_x7_x20_i30_an_action_that_cannot_be_is_answered_and_fires_nothing() -> None:
    actions = {value.number for value in si.NodeInfo.ActionFromRM.DESCRIPTOR.values}
    assert {r.action for r in NODE_ROUTES} == actions - {si.NodeInfo.UNKNOWN_ACTION_FROM_RM}
    script = Script()
    with watching() as fired:
        for each in NODE_ROUTES:
            if LIVES[each.action][0]:
                (answer,) = script.node("n1", each.action, memory=2)
                assert answer.startswith("rejected node n1: ") and "not known" in answer
        assert script.node("n1", si.NodeInfo.UNKNOWN_ACTION_FROM_RM, memory=1) == []
    assert (fired, script.scheduler.partition().nodes) == ([], {})
    script.node("n1", memory=1)
    with watching() as fired:
        (answer,) = script.node("n1", memory=2)
        assert answer.startswith("rejected node n1: ") and fired == []
        script.node("n2", memory=1, existing=[RECOVERED])  # which cannot be recovered (M7)
    assert fired == [("node", "reject")]
