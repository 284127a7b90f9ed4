"""The routing table drives: a scenario fails at each value of it that is spoilt, so none is only documentation."""

import ast
import copy
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from core_steps import partitions

from quadriga.core.intake import dispatcher, fires
from quadriga.core.intake.dispatcher import NODE_ROUTES, ROUTES
from quadriga.core.intake.routes import Answers, Route, concerns, part
from quadriga.fsm import ALLOCATION, ASK, LIFECYCLES, DefinitionError, InvalidTransition, Lifecycle
from quadriga.si import Allocation, AllocationRequest, NodeInfo
from quadriga.si.constants import TAG_FOREIGN
from quadriga.sim.scripted.script import ONE_QUEUE, Script
from tests.core.intake import test_core_dispatcher_table as table

TWO = partitions("default", "other")

Scenario = Callable[[Script], object]


def report(script: Script, **changes: Any) -> None:
    message = Allocation()
    message.CopyFrom(table.RECOVERED)
    for field, value in changes.items():
        setattr(message, field, value)
    script.send(AllocationRequest(rmID="rm", allocations=[message]))


def foreign(script: Script) -> None:
    """A foreign allocation is reported and released again."""
    tags = {TAG_FOREIGN: "default"}
    message = Allocation(allocationKey="f", nodeID="n1", allocationTags=tags)
    script.send(AllocationRequest(rmID="rm", allocations=[message]))
    request = AllocationRequest(rmID="rm")
    request.releases.allocationsToRelease.add(partitionName="default", allocationKey="f")
    script.send(request)


def fresh(script: Script) -> None:
    """A new node with an allocation that runs already."""
    script.node("n9", memory=20, existing=[table.RECOVERED])


def restore(script: Script) -> None:
    """The partition is configured no longer, and then again."""
    script.configure(TWO.replace("default", "spare", 1))
    script.configure(ONE_QUEUE)


def take_back(script: Script) -> None:
    """The release of a key takes back its pending ask."""
    script.ask("a", "z", memory=100, by_key=True)
    script.release("a", key="z")


def reopen(script: Script) -> None:
    script.node("n1", NodeInfo.DRAIN_NODE)
    script.node("n1", NodeInfo.DRAIN_TO_SCHEDULABLE)


def twice(script: Script) -> None:
    """A new node whose allocation is reported twice."""
    script.node("n9", memory=20, existing=[table.RECOVERED, table.RECOVERED])


# fmt: off
#: route, its triggers, a scenario in which they are fired
_SCENARIOS: list[tuple[Route, str, Scenario]] = [
    (table.REGISTER,     "register",             lambda s: Script(rm_id="another", scheduler=s.scheduler)),
    (table.CONFIGURE,    "remove",               lambda s: (s.configure(TWO), s.configure(ONE_QUEUE))),
    (table.CONFIGURE,    "restore",              restore),
    (table.NEW,          "reject",               lambda s: s.app("bad", gang={"memory": -1})),
    (table.REMOVE,       "ends complete reject", lambda s: s.remove_app("a")),
    (table.ALLOCATIONS,  "allocated submit served asked run", report),
    (table.ASKS,         "submit asked",         lambda s: s.ask("a", "z", memory=1)),
    (table.ASKS,         "update",               lambda s: s.ask("a", "y", memory=1)),
    (table.NODELESS,     "submit asked",         lambda s: s.ask("a", "z", memory=1, by_key=True)),
    (table.NODELESS,     "update",               lambda s: s.ask("a", "y", memory=1, by_key=True)),
    (table.ASK_RELEASES, "reject",               lambda s: s.release_ask("a", "y")),
    (table.RELEASES,     "complete",             lambda s: s.release("a", "x-0")),
    (table.RELEASES,     "confirm",              lambda s: s.release("g", "p-0", table.REPLACED)),
    (table.RELEASES,     "reject",               take_back),
    (table.NODES,        "CREATE",               lambda s: s.node("n2", memory=1)),
    (table.NODES,        "CREATE_DRAIN",         lambda s: s.node("n2", NodeInfo.CREATE_DRAIN, memory=1)),
    (table.NODES,        "UPDATE",               lambda s: s.node("n1", NodeInfo.UPDATE, memory=30)),
    (table.NODES,        "DRAIN_NODE",           lambda s: s.node("n1", NodeInfo.DRAIN_NODE)),
    (table.NODES,        "DRAIN_TO_SCHEDULABLE", reopen),
    (table.NODES,        "DECOMISSION",          lambda s: s.node("n1", NodeInfo.DECOMISSION)),
    (table.NODES,        "reject",               twice),
    (table.NODES,        "allocated submit served asked run", fresh),
]
FIRES = {(table.name_of(r), each): s for r, names, s in _SCENARIOS for each in names.split()}
ANSWERS: dict[tuple[str, str], tuple[Scenario, ...]] = {
    # route, field of the response                 scenarios that are answered with it
    (table.name_of(table.NEW),          "accepted"):           (lambda s: s.app("new"),),
    (table.name_of(table.NEW),          "rejected"):           (lambda s: s.app("bad", gang={"memory": -1}),),
    (table.name_of(table.REMOVE),       "released"):           (lambda s: s.remove_app("a"),),
    (table.name_of(table.ALLOCATIONS),  "new"):                (report,),
    (table.name_of(table.ALLOCATIONS),  "rejectedAllocations"): (lambda s: report(s, nodeID="n7"),),
    (table.name_of(table.ASKS),         "rejected"):           (lambda s: s.ask("a", "z", memory=-1),),
    (table.name_of(table.NODELESS),     "rejectedAllocations"): (lambda s: s.ask("a", "z", memory=-1, by_key=True),),
    (table.name_of(table.ASK_RELEASES), "releasedAsks"):       (lambda s: s.release_ask("a", "y"),),
    (table.name_of(table.RELEASES),     "released"):           (lambda s: s.release("a", "x-0"), foreign),
    (table.name_of(table.NODES),        "accepted"):           (lambda s: s.node("n2", memory=1),),
    (table.name_of(table.NODES),        "rejected"):           (lambda s: s.node("n1", memory=1),),
}
# fmt: on
NONSENSE = "nonsense"


def fields_of(row: Any) -> Iterator[str]:
    """The names of the triggers in a ``fires`` column."""
    for name, value in zip(row._fields, row, strict=True):
        if hasattr(value, "_fields"):
            yield from fields_of(value)
        elif name == "actions":
            yield from (NodeInfo.ActionFromRM.Name(action) for action in value)
        elif not isinstance(value, Lifecycle):
            yield name


def spoilt(row: Any, field: str) -> Any:
    """The same column with nonsense for this trigger."""
    for name, value in zip(row._fields, row, strict=True):
        if name == field:
            wrong = dict.fromkeys(value, (NONSENSE,)) if name == "ends" else NONSENSE
            return row._replace(**{name: wrong})
        if name == "actions" and field in set(NodeInfo.ActionFromRM.keys()):
            return row._replace(actions={**value, NodeInfo.ActionFromRM.Value(field): NONSENSE})
        if hasattr(value, "_fields") and field in fields_of(value):
            return row._replace(**{name: spoilt(value, field)})
    raise AssertionError(field)


def replaced(route: Route, **columns: Any) -> Route:
    """The row with other columns, which its check has not seen."""
    changed = copy.copy(route)
    for name, value in columns.items():
        object.__setattr__(changed, name, value)
    return changed


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[Route, Route], None]:
    """A function that puts a row in the place of another one in the dispatcher."""

    def put(old: Route, new: Route) -> None:
        if old.field:
            rows = dispatcher._BY_MESSAGE[old.message]
            changed = tuple(new if table.name_of(r) == table.name_of(old) else r for r in rows)
            monkeypatch.setitem(dispatcher._BY_MESSAGE, old.message, changed)
        else:
            monkeypatch.setitem(dispatcher._CONFIGURE, old.message, new)

    return put


Put = Callable[[Route, Route], None]
BY_NAME = {table.name_of(route): route for route in ROUTES}


def test_every_trigger_and_every_response_of_every_row_is_tried() -> None:
    assert FIRES.keys() == {(table.name_of(r), f) for r in ROUTES for f in fields_of(r.fires)}
    assert ANSWERS.keys() == {(table.name_of(r), f) for r in ROUTES for f in r.answers.fields}


@pytest.mark.interpreted
@pytest.mark.parametrize(("name", "field"), FIRES, ids=[": ".join(key) for key in FIRES])
def test_a_handler_fires_the_trigger_of_its_row(name: str, field: str, put: Put) -> None:
    scenario, route, script = FIRES[name, field], BY_NAME[name], table.ready()
    sound = table.ready()
    scenario(sound)  # as the row is, nothing fails
    put(route, replaced(route, fires=spoilt(route.fires, field)))
    try:
        scenario(script)
    except InvalidTransition as error:
        assert error.trigger == NONSENSE
    else:  # the handler asks first whether the state allows the trigger, and it does not
        assert outcome(script) != outcome(sound)


def outcome(script: Script) -> tuple[list[str], list[tuple[str, str]]]:
    return script.log, [(each.name, each.state) for each in script.scheduler.partitions()]


@pytest.mark.parametrize("route", ROUTES, ids=table.name_of)
def test_a_row_with_another_lifecycle_or_trigger_is_no_row(route: Route) -> None:
    (first, *_), (name, *_) = route.fires, route.fires._fields
    other = ALLOCATION if first is not ALLOCATION else ASK
    with pytest.raises(DefinitionError, match=f"{name} is the lifecycle {other.name}"):
        concerns(route.cause, route.fires._replace(**{name: other}))
    for field in fields_of(route.fires):
        with pytest.raises(DefinitionError, match="'nonsense', which is no trigger of"):
            concerns(route.cause, spoilt(route.fires, field))


def test_a_route_checks_its_triggers_when_it_is_made() -> None:
    wrong: Any = fires.AskReleaseFires(ASK, "confirm")  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="'confirm', which is no trigger of ask"):
        part(AllocationRequest, "asks", wrong, Answers(), table.ASK_RELEASES.handle)


@pytest.mark.interpreted
@pytest.mark.parametrize(("name", "field"), ANSWERS, ids=[": ".join(key) for key in ANSWERS])
def test_an_undeclared_response_is_refused_as_a_bug(name: str, field: str, put: Put) -> None:
    route = BY_NAME[name]
    others = [each for each in route.answers.fields if each != field]
    for scenario in ANSWERS[name, field]:
        scenario(table.ready())
        script = table.ready()
        put(route, replaced(route, answers=Answers(*others)))
        with pytest.raises(RuntimeError, match=f"answers with {field!r}, and its route declares"):
            scenario(script)
        put(route, route)


@pytest.mark.interpreted
@pytest.mark.parametrize("each", NODE_ROUTES, ids=lambda r: NodeInfo.ActionFromRM.Name(r.action))
def test_an_action_answers_as_its_row_says(
    each: dispatcher.NodeRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = copy.copy(each)
    object.__setattr__(mute, "answers", Answers())
    monkeypatch.setitem(dispatcher._BY_ACTION, each.action, mute)
    created = "accepted" in each.answers.fields
    script = Script()
    if created:
        assert script.node("n1", each.action, memory=1) == []
    with pytest.raises(RuntimeError, match="answers with 'rejected', and its route declares none"):
        script.node("n1", each.action, memory=1)


MODULES = {f"{n}_fsm": importlib.import_module(f"quadriga.fsm.lifecycles.{n}") for n in LIFECYCLES}


def named_by(tree: ast.AST) -> Iterator[str]:
    """What only the table may name: lifecycles, triggers, and the outbox."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id.lower() in LIFECYCLES and node.id.isupper():
            yield node.id
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr == "outbox" or is_trigger(MODULES.get(owner), node.attr):
                yield f"{owner}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("fire", "fire_all", "fire_later"):
                yield from (repr(a.value) for a in node.args if isinstance(a, ast.Constant))


def is_trigger(module: ModuleType | None, name: str) -> bool:
    if module is None:
        return False
    lifecycle = getattr(module, module.__name__.rpartition(".")[2].upper())
    return name.isupper() and getattr(module, name) in lifecycle.triggers()


def test_handlers_name_no_trigger_no_lifecycle_and_no_outbox() -> None:
    folder = Path(__file__).parents[3] / "core" / "intake"
    if not folder.is_dir():
        pytest.skip("core/ is part of a checkout only")
    table = {"dispatcher.py", "routes.py", "__init__.py"}
    found = {
        path.name: names
        for path in sorted(folder.glob("*.py"))
        if path.name not in table
        and (names := list(named_by(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == {}
