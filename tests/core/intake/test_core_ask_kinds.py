"""The kind of an ask: what decisions look at is declared once, and everything goes by the whole of it."""

from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

import pytest
from core_steps import on_nodes, run

from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask, AskGroup, AskKind
from quadriga.core.resources.locality import Locality, Rule
from quadriga.core.resources.shapes import Requirements
from quadriga.core.resources.units import DeviceUnits, share
from quadriga.core.runtime.outbox import AllocationTemplates
from quadriga.si import AllocationResponse, RegisterResourceManagerRequest
from quadriga.sim.scripted.script import ONE_QUEUE, Script

ONE = AskKind(Requirements((1000, 10)))
#: for each field of a kind another value than that of ONE; a new field needs one here
OTHERS: dict[str, Any] = {
    "vector": (1000, 20),
    "required_node": "n1",
    "runtime": 60,
    "shares": (share(DeviceUnits(0), 500),),
    "locality": Locality(Rule("rack")),
    "priority": 1,
    "placeholder": True,
    "task_group": "g",
}


def other(field: str) -> AskKind:
    """The kind that differs from ONE in this field only."""
    if field in Requirements._fields:
        return replace(ONE, requires=ONE.requires._replace(**{field: OTHERS[field]}))
    return replace(ONE, **{field: OTHERS[field]})


def group_of(app: Application, key: str, kind: AskKind) -> AskGroup:
    ask = Ask(app, key, kind, 1, 0)
    app.partition.waiting.add(ask)
    assert ask.group is not None
    return ask.group


@pytest.fixture
def app() -> Application:
    script = on_nodes(check=False, n1={"vcore": 4000, "memory": 40}, apps=["app-1"])
    return script.scheduler.partition().applications["app-1"]


def test_every_field_of_a_kind_is_tried_here() -> None:
    given = {each.name for each in fields_of(AskKind) if each.init} - {"requires"}
    assert given | {*Requirements._fields} == OTHERS.keys()


@pytest.mark.parametrize("field", OTHERS)
def test_asks_that_differ_in_one_field_wait_apart(app: Application, field: str) -> None:
    group, apart = group_of(app, "a", ONE), group_of(app, "c", other(field))
    assert group_of(app, "b", AskKind(Requirements((1000, 10)))) is group
    # nor does a resource type that turns up later separate them
    assert group_of(app, "d", AskKind(Requirements((1000, 10, 0, 0)))) is group
    assert apart is not group
    # a shape is told apart by what nodes are chosen by
    assert (apart.shape is not group.shape) == (field in Requirements._fields)


def test_a_template_says_what_the_messages_of_a_kind_have_in_common(app: Application) -> None:
    templates = AllocationTemplates(app.partition)
    kind = AskKind(Requirements((1000, 10)), priority=7, placeholder=True, task_group="g")
    encoded = templates.of(Ask(app, "a", kind, 1, 0))
    assert templates.of(Ask(app, "b", replace(kind), 2, 0)) is encoded
    (message,) = AllocationResponse.FromString(encoded).new
    assert (message.applicationID, message.partitionName) == ("app-1", "default")
    assert (message.priority, message.placeholder, message.taskGroupName) == (7, True, "g")
    quantities = {n: q.value for n, q in message.resourcePerAlloc.resources.items()}
    assert quantities == app.partition.registry.mapping((1000, 10))
    assert not (message.allocationKey or message.UUID or message.nodeID)


def test_i7_a_resource_manager_that_starts_anew_names_its_resource_types_anew() -> None:
    """What was encoded for the partition before would name the wrong types."""
    said = []
    script = Script()
    for sizes in ({"vcore": 1000, "memory": 10}, {"gpu": 1000, "vcore": 10}):
        script.send(RegisterResourceManagerRequest(rmID=script.rm_id, config=ONE_QUEUE))
        script.node("n1", **{name: 10 * size for name, size in sizes.items()})
        run(script, "app-1", "a", **sizes)
        message = script.messages[-1].message
        assert isinstance(message, AllocationResponse)
        resources = message.new[0].resourcePerAlloc.resources
        said.append({name: quantity.value for name, quantity in resources.items()})
    assert said == [{"vcore": 1000, "memory": 10}, {"gpu": 1000, "vcore": 10}]
    (partition,) = script.scheduler._kernel.outbox.templates
    assert partition is script.scheduler.partition()
