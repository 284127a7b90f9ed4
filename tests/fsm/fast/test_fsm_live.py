"""The machine of a lifecycle is what runs: whatever is changed in it takes effect in ``fire``."""

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import Model, switch
from transitions import MachineError, State

from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    LIFECYCLES,
    NODE,
    STAYS,
    DefinitionError,
    Effect,
    FastMachine,
    Fired,
    InvalidTransition,
    Lifecycle,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.fast.tracking import FastState
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.lifecycles.effects import CloseNode, OpenNode, RequestRelease

Twin = Callable[..., Lifecycle]


def node(state: str = "Schedulable") -> Any:
    return SimpleNamespace(key="n-1", state=state)


def refuse(data: Any) -> bool:
    return False


def test_the_machine_of_a_lifecycle_is_a_fast_machine(lifecycle: Lifecycle) -> None:
    assert isinstance(lifecycle.machine, FastMachine)
    assert type(lifecycle.copy(stock=True).machine).__module__ == "transitions.core"


ENGINES = pytest.mark.parametrize("stock", [False, True], ids=["fast", "stock"])
LISTS = ("prepare_event", "before_state_change", "after_state_change", "finalize_event")


@ENGINES
def test_an_added_and_a_removed_transition_and_an_added_state(stock: bool) -> None:
    life = NODE.copy(stock=stock)
    server = node()
    with pytest.raises(InvalidTransition):
        life.fire(server, "doze")
    life.machine.add_states("Asleep")
    life.machine.add_transition("doze", "Schedulable", "Asleep")
    life.machine.add_transition("drain", "Asleep", "Draining")
    assert life.fire(server, "doze") == ()
    assert server.state == "Asleep"
    assert life.states[-1] == "Asleep"
    assert life.allows("Asleep", "drain") and not life.allows("Asleep", "doze")
    assert life.triggers("Asleep") == ("drain",)
    assert [str(r) for r in life.rows[-2:]] == [
        "row 8: Asleep --drain--> Draining",
        "row 9: Schedulable --doze--> Asleep",
    ]
    life.fire(server, "drain")
    assert server.state == "Draining"
    life.machine.remove_transition("drain", source="Schedulable")
    with pytest.raises(InvalidTransition, match="possible: update, decommission, doze"):
        life.fire(node(), "drain")
    assert not life.allows("Schedulable", "drain")
    life.machine.remove_transition("update")
    with pytest.raises(InvalidTransition):
        life.fire(node(), "update")
    assert "update" not in life.triggers()
    assert NODE.fire(node(), "drain") == (CloseNode(),)
    assert not NODE.allows("Schedulable", "doze")
    assert "Asleep" not in NODE.states


@ENGINES
def test_a_condition_added_to_a_row(stock: bool) -> None:
    life = NODE.copy(stock=stock)
    server = node()
    life.fire(server, "drain")
    (transition,) = life.machine.get_transitions("schedule", "Draining")
    asked: list[Any] = []

    def is_repaired(data: Any) -> bool:
        asked.append((data.model, data.kwargs))
        return bool(data.kwargs["repaired"])

    transition.conditions.append(transition.condition_cls(is_repaired))
    assert life.fire(server, "schedule", repaired=False) == ()
    assert server.state == "Draining"
    step = life.step(server, "schedule", repaired=False)
    assert (step.row, step.entered, step.target, step.effects) == (None, False, "Draining", ())
    assert life.fire(server, "schedule", repaired=True) == (OpenNode(),)
    assert server.state == "Schedulable"
    assert asked == [(server, {"repaired": answer}) for answer in (False, False, True)]
    (changed,) = life.rows_from("Draining", "schedule")
    assert changed.label == "schedule [is_repaired]"


def test_lists_and_states_of_the_callers_own_are_read_live() -> None:
    life, mine, told = NODE.copy(), list[Any](), list[str]()
    life.machine.after_state_change = mine
    life.fire(node(), "drain")
    mine.append(lambda data: told.append(data.model.state))
    life.fire(node(), "drain")
    mine.clear()
    life.fire(node(), "drain")
    assert told == ["Draining"]

    life, mine = NODE.copy(), []
    life.machine.add_transition("doze", "Schedulable", "Draining", before=mine)
    life.fire(node(), "doze")
    mine.append(lambda data: told.append(data.event.name))
    life.fire(node(), "doze")
    assert told == ["Draining", "doze"]

    for made in (State("Asleep"), FastState("Asleep")):
        life, asleep = NODE.copy(), list[Any]()
        life.machine.add_states(made)
        life.machine.add_transition("doze", "Schedulable", "Asleep")
        life.fire(node(), "doze")
        made.on_enter.append(lambda data, asleep=asleep: asleep.append(data.model.state))
        life.fire(node(), "doze")
        assert asleep == ["Asleep"]


@ENGINES
def test_errors_go_where_the_library_sends_them(stock: bool) -> None:
    life = NODE.copy(stock=stock)
    errors: list[Any] = []
    life.machine.on_exception.append(lambda data: errors.append(type(data.error)))
    server = node("New")
    assert life.fire(server, "drain") == ()  # the library calls on_exception instead of raising
    assert errors == [MachineError]
    life.machine.on_exception.clear()
    told: list[str] = []
    life.machine.finalize_event.append(lambda data: told.append(data.event.name))
    with pytest.raises(InvalidTransition, match="possible: accept, reject"):
        life.fire(server, "drain")
    assert told == ["drain"]
    life.machine.get_state("New").ignore_invalid_triggers = True
    assert life.step(server, "drain").row is None


def test_a_change_is_noticed_wherever_it_is_made_and_only_there() -> None:
    life, server = NODE.copy(), node()
    (transition,) = life.machine.get_transitions("drain", "Schedulable")
    transition.dest = "Removed"
    assert life.step(server, "drain").target == server.state == "Removed"
    server.state = "Schedulable"
    life.machine.events["drain"].transitions["Schedulable"].clear()
    assert life.step(server, "drain").row is None  # the library returns False
    del life.machine.events["drain"]
    with pytest.raises(InvalidTransition):
        life.fire(server, "drain")
    life, other = NODE.copy(), NODE.copy()
    before = other._cells
    life.machine.add_states("Asleep")
    FastMachine(states=["A", "B"], initial="A")
    assert other._cells is before and before
    assert not NODE._stale  # its cells are empty while the plugin counts its rows


def test_a_changed_lifecycle_is_fast_again() -> None:
    life = NODE.copy()
    life.machine.add_transition("doze", "Schedulable", "Draining")
    server = node()
    first = life.take(server, "doze", {})
    server.state = "Schedulable"
    assert life.take(server, "doze", {}) is first  # one step for all
    assert first.row is life.rows[-1]


def test_copies_are_independent_and_keep_what_was_added() -> None:
    first = NODE.copy("server")
    told: list[str] = []
    first.machine.add_states("Asleep")
    first.machine.add_transition("doze", "Schedulable", "Asleep", unless=refuse)
    first.machine.on_enter_Asleep(lambda data: told.append(data.model.state))
    second = first.copy()
    first.machine.remove_transition("doze")
    for life in (second, second.copy(stock=True)):
        assert life.name == "server"
        life.fire(node(), "doze")
        assert life.rows_from("Schedulable", "doze")[0].label == "doze [not refuse]"
    assert told == ["Asleep", "Asleep"]
    assert [r for r in second.rows if r.trigger != "doze"] == list(NODE.rows)


def every_change(machine: Any) -> dict[str, Callable[[], object]]:
    state = machine.get_state("Draining")
    (transition,) = machine.get_transitions("drain", "Schedulable")
    event = machine.events["drain"]

    def call(data: Any) -> None: ...

    class Model:
        def on_enter_Draining(self) -> None: ...

    return {
        "add_states": lambda: machine.add_states("Asleep"),
        "add_state": lambda: machine.add_state("Asleep"),
        "add_transition": lambda: machine.add_transition("doze", "New", "Draining"),
        "add_transitions": lambda: machine.add_transitions([["drain", "New", "Draining"]]),
        "ordered": lambda: machine.add_ordered_transitions(),
        "remove_transition": lambda: machine.remove_transition("drain"),
        "remove_unknown": lambda: machine.remove_transition("update", "New"),
        "prepare_event": lambda: machine.prepare_event.append(call),
        "before": lambda: setattr(machine, "before_state_change", call),
        "after": lambda: machine.after_state_change.extend([call]),
        "exception": lambda: setattr(machine, "on_exception", [call]),
        "finalize": lambda: machine.finalize_event.insert(0, call),
        "states": lambda: machine.states.pop("Draining"),
        "events": lambda: machine.events.pop("drain"),
        "events again": lambda: setattr(machine, "events", {}),
        "send_event": lambda: setattr(machine, "send_event", False),
        "on_enter": lambda: state.on_enter.append(call),
        "on_enter_": lambda: machine.on_enter_Draining(call),
        "state callback": lambda: state.add_callback("exit", call),
        "state's list": lambda: setattr(state, "on_exit", [call]),
        "event callback": lambda: event.add_callback("before", call),
        "event's transitions": lambda: event.transitions.clear(),
        "event's list": lambda: event.transitions["Schedulable"].reverse(),
        "transition callback": lambda: transition.add_callback("after", call),
        "transition": lambda: setattr(transition, "dest", "New"),
        "conditions": lambda: transition.conditions.append(call),
        "a method": lambda: setattr(transition, "execute", call),
        "a model with callbacks": lambda: machine.add_model(Model()),
    }


@pytest.mark.parametrize("change", every_change(NODE.machine))
def test_the_shared_machine_refuses_every_change(twin: Twin, change: str) -> None:
    life = twin(NODE)
    with pytest.raises(DefinitionError, match=r"^node: the shared .* lifecycle\.copy\(\)"):
        every_change(life.machine)[change]()
    assert (life.rows, life.states, life.final) == (NODE.rows, NODE.states, NODE.final)
    assert life._cells == NODE._cells or not NODE._cells  # while the suite is observed
    assert life.fire(node(), "drain") == (CloseNode(),)


def test_a_shared_lifecycle_can_be_read_copied_and_pickled() -> None:
    for again in (copy.deepcopy(NODE), pickle.loads(pickle.dumps(NODE)), copy.copy(NODE)):
        assert again.rows == NODE.rows
        assert again.fire(node(), "drain") == (CloseNode(),)
        with pytest.raises(DefinitionError):
            again.machine.add_states("Asleep")
    life = NODE.copy()
    life.machine.add_states("Asleep")
    again = copy.deepcopy(life)
    again.machine.add_transition("doze", "Schedulable", "Asleep")
    assert again.step(node(), "doze").target == "Asleep"
    assert list(NODE.machine.events["drain"].transitions["New"]) == []
    with pytest.raises(InvalidTransition):
        NODE.fire(node("New"), "drain")


LAMP = switch(
    "lamp",
    *("Off", "press", "On", "press"),
    lasts={"On": within(60, then="press")},
    rows=(row("again", "On", "On"), ignored("look", ("Off", "On"), why="it only looks")),
)


@ENGINES
def test_what_a_trigger_did_entering_anew_differs_from_staying(stock: bool) -> None:
    life = NODE.copy(stock=stock)
    server = node()
    done = life.step(server, "drain", why="broken")
    assert (done.lifecycle, done.trigger, done.entity) == ("node", "drain", server)
    assert (done.source, done.target, done.entered) == ("Schedulable", "Draining", True)
    assert done.effects == (CloseNode(),)
    assert done.row in NODE.rows and done.row.target == "Draining"
    assert (done.info, done.time) == ({"why": "broken"}, None)
    stayed = life.step(server, "drain")
    assert (stayed.source, stayed.target, stayed.entered) == ("Draining", "Draining", False)
    life = LAMP.copy(stock=stock)
    lamp = node("On")
    anew, stayed = life.step(lamp, "again"), life.step(lamp, "look")
    assert (anew.source, anew.target, anew.entered) == ("On", "On", True)
    assert (stayed.source, stayed.target, stayed.entered) == ("On", "On", False)
    # whoever keeps time limits has to start that of On again
    assert not life.take(lamp, "again", {}).quiet
    assert life.take(lamp, "look", {}).quiet
    assert life.idles("On", "look") and not life.idles("On", "again")


@ENGINES
def test_an_observer_receives_outcomes_with_information_and_time(stock: bool) -> None:
    life, seen, rows = NODE.copy(stock=stock), list[Any](), list[Any]()
    times = iter((10, 20))
    stop = life.watch(seen.append, clock=lambda: next(times))
    stop_rows = life.observe(rows.append)
    server = node()
    life.fire(server, "drain", why="broken")
    life.fire(server, "schedule")
    with pytest.raises(InvalidTransition):
        life.fire(server, "accept")
    assert [(o.trigger, o.source, o.target, o.info, o.time) for o in seen] == [
        ("drain", "Schedulable", "Draining", {"why": "broken"}, 10),
        ("schedule", "Draining", "Schedulable", {}, 20),
    ]
    assert seen[0].effects == (CloseNode(),)
    assert rows == [o.row for o in seen]
    stop()
    stop_rows()
    life.fire(server, "drain")
    assert len(seen) == len(rows) == 2


async def is_paid(it: Any, info: Any) -> bool:
    return bool(info["paid"])


async def receipt(it: Any, fired: Fired) -> tuple[Effect, ...]:
    return (CloseNode(),)


async def receipts(it: Any, fired: Fired) -> Any:
    yield OpenNode()


class Asks:
    async def __call__(self, it: Any, info: Any) -> bool:
        return False


# fmt: off
SHOP = Lifecycle(
    "shop",
    initial="Open",
    final=("Paid", "Given"),
    lasts={"Open": unbounded("give")},
    rows=(
        row("pay",  "Open", STAYS,  when=Asks(), why="somebody else pays"),
        row("pay",  "Open", "Paid", when=is_paid, emit=(receipt, receipts)),
        row("pay",  "Open", STAYS,  why="more is due"),
        row("give", "Open", "Given", emit=receipt),
    ),
)
# fmt: on


@ENGINES
def test_fire_refuses_what_it_cannot_await(stock: bool) -> None:
    life, order = SHOP.copy(stock=stock), node("Open")
    with pytest.raises(DefinitionError, match=r"^shop: row 0: Open --pay .*Asks.* is async; "):
        life.fire(order, "pay", paid=True)
    with pytest.raises(DefinitionError, match="^shop: row 3: Open --give--> Given: receipt is as"):
        life.fire(order, "give")
    assert order.state == "Open"


def test_a_model_of_a_copy_calls_callbacks_and_hears_effects() -> None:
    class Model:
        key = "m-1"

        def __init__(self) -> None:
            self.heard: list[Any] = []

        def on_enter_Draining(self, data: Any) -> None:
            self.heard.append(data.event.name)

        def on_effects(self, effects: Any) -> None:
            self.heard.append(effects)

    life, model = NODE.copy(), Model()
    machine: Any = life.machine
    machine.add_model(model, initial="Schedulable")
    assert model.drain()  # type: ignore[attr-defined]
    assert model.heard == ["drain", (CloseNode(),)]
    with pytest.raises(TypeError, match="^node: drain takes its information by name$"):
        model.drain(5)  # type: ignore[attr-defined]
    machine.get_transitions("schedule", "Draining")[0].conditions.append(
        FastMachine.transition_cls.condition_cls(refuse)
    )
    assert model.schedule() is False  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Noise(Effect):
    trigger: str
    source: str
    target: str
    state: str
    loud: int


class OutOfPaint(Exception):
    pass


def loud(it: Any, info: Any) -> bool:
    return info["loud"]  # type: ignore[no-any-return]  # truthy, not a bool: 0 to 3


def very_loud(it: Any, info: Any) -> bool:
    if info["loud"] == 1:
        raise KeyError("a guard that fails")
    return bool(info["loud"] > 2)


def noise(it: Any, fired: Fired) -> tuple[Effect, ...]:
    return (Noise(fired.trigger, fired.source, fired.target, it.state, fired.info["loud"]),)


def fragile(it: Any, fired: Fired) -> Iterator[Effect]:
    yield from noise(it, fired)
    if fired.info["fails"]:
        raise OutOfPaint
    yield from noise(it, fired)


def refused_elsewhere(it: Any, fired: Fired) -> tuple[Effect, ...]:
    """An emitter that trips over another lifecycle: that error must come through as it is."""
    if fired.info["fails"]:
        raise InvalidTransition("other", "it-2", "There", "thing")
    return ()


def library_error(it: Any, fired: Fired) -> tuple[Effect, ...]:
    if fired.info["fails"]:
        raise MachineError("the library's own")
    return ()


# fmt: off
TABLE = Lifecycle(
    "table",
    initial="A",
    final=("Z",),
    lasts={"A": unbounded("go"), "B": within(5), "C": within(7, then="go")},
    rows=(
        row("go",     "A",             "B"),
        row("go",     "B",             "C",    when=loud,       emit=noise),
        row("go",     "B",             STAYS,  when=very_loud,  emit=(fragile, noise)),
        row("go",     "B",             "B",                     emit=(noise, fragile)),
        row("go",     "C",             "A",                     emit=fragile),
        row("self",   ("A", "B", "C"), "B",    when=very_loud),
        row("self",   "A",             "A"),
        row("self",   "B",             STAYS,                   emit=refused_elsewhere),
        row("self",   "C",             "C",                     emit=(noise, library_error)),
        ignored("no", ("A", "B"),      why="nothing to see"),
        row("no",     "C",             STAYS,                   emit=noise),
        row("end",    "C",             STAYS,  when=loud,       emit=noise),
        row("end",    "C",             "Z",                     emit=noise),
    ),
)
# fmt: on
STEPS = 3_000


def outcome(fire: Callable[..., Any], info: dict[str, Any]) -> Any:
    try:
        return fire(**info)
    except Exception as error:
        return type(error), str(error)


class Side:
    """One of the two: a lifecycle, an entity, and what its callbacks have heard."""

    def __init__(self, stock: bool, observed: bool) -> None:
        self.lifecycle = TABLE.copy(stock=stock)
        self.entity = SimpleNamespace(key="it-1", state="A")
        self.heard: list[str] = []
        self.seen: list[Any] = []
        if observed:
            see = lambda o: self.seen.append((o.source, o.target, o.entered, o.row))  # noqa: E731
            self.lifecycle.watch(see)

    def callback(self, name: str, fails: bool) -> Any:
        def call(data: Any) -> bool:
            self.heard.append(f"{name} {data.model.state} {data.event.name} {data.kwargs}")
            if fails and data.kwargs["loud"] == 3:
                raise KeyError(name)
            return bool(data.kwargs["loud"] % 2)

        return call

    def transitions(self) -> list[Any]:
        events = self.lifecycle.machine.events
        return [
            each
            for trigger in sorted(events)
            for source in sorted(events[trigger].transitions)
            for each in events[trigger].transitions[source]
        ]

    def change(self, random: Random) -> None:
        machine: Any = self.lifecycle.machine
        states = sorted(machine.states)
        known = self.transitions()
        call = self.callback(f"c{random.randrange(1000)}", random.random() < 0.1)
        what = random.randrange(9)
        if what == 0:
            machine.add_states(f"S{len(states)}")
        elif what == 1:
            dest = random.choice([*states, None, "="])
            trigger = random.choice(("go", "self", "end", "no", "new"))
            machine.add_transition(trigger, random.choice(states), dest)
        elif what == 2 and len(known) > 4:
            trigger = random.choice(sorted(machine.events))
            machine.remove_transition(trigger, random.choice(states))
        elif what == 3:
            random.choice(known).add_callback(random.choice(("prepare", "before", "after")), call)
        elif what == 4:
            one = random.choice(known)
            one.conditions.append(one.condition_cls(call, target=random.random() < 0.5))
        elif what == 5:
            state = machine.states[random.choice(states)]
            state.add_callback(random.choice(("enter", "exit")), call)
        elif what == 6:
            getattr(machine, random.choice(LISTS)).append(call)
        elif what == 7:  # all callbacks go, or nothing would be plain for long
            for each in known:
                for name in ("prepare", "after"):
                    getattr(each, name).clear()
                del each.conditions[1:]
            for state in machine.states.values():
                state.on_enter.clear()
                state.on_exit.clear()
            for name in LISTS:
                getattr(machine, name).clear()
        else:
            random.choice(known).dest = random.choice(states)

    def fire(self, trigger: str, info: dict[str, Any]) -> Any:
        self.heard.clear()
        self.seen.clear()
        result = outcome(partial(self.lifecycle.fire, self.entity, trigger), info)
        return result, self.entity.state, list(self.heard), [each[:3] for each in self.seen]


@pytest.mark.parametrize(("seed", "observed"), [(0, False), (1, True)])
def test_a_machine_that_changes_does_what_the_library_does(seed: int, observed: bool) -> None:
    fast, stock = (Side(which, observed) for which in (False, True))
    random = Random(f"live {seed}")
    moved = plain = 0
    failures, taken = set(), set()
    for step in range(STEPS):
        if random.random() < 0.05:
            number = random.randrange(1 << 30)
            for side in (fast, stock):
                side.change(Random(number))
        if random.random() < 0.02:
            fast, stock = (Side(which, observed) for which in (False, True))
        if random.random() < 0.1:
            fast.entity.state = stock.entity.state = random.choice("ABC")
        trigger, before = random.choice(("go", "self", "end", "no", "new")), fast.entity.state
        info = {"loud": random.randint(0, 3), "fails": random.random() < 0.3}
        expected, got = stock.fire(trigger, info), fast.fire(trigger, info)
        assert got == expected, f"step {step}: {trigger} {info}"
        if step % 50 == 0:
            assert list(map(str, fast.lifecycle.rows)) == list(map(str, stock.lifecycle.rows))
        failures.add(got[0][0] if got[0] and isinstance(got[0][0], type) else None)
        taken.update(each[3] for each in fast.seen)
        moved += got[1] != before
        plain += got[1] != before and not got[2]
    assert moved > STEPS / 10
    assert plain > STEPS / 40
    assert failures >= {KeyError, OutOfPaint, InvalidTransition, MachineError}
    # where "loud" agrees, "very loud" is never asked: that row is legal and unreachable by facts
    assert not observed or set(TABLE.rows) - taken <= {TABLE.rows[2]}


def test_a_model_of_the_shared_machine_does_what_fire_does(twin: Twin) -> None:
    table, it, model = twin(TABLE), node("A"), Model()
    table.machine.add_model(model)
    random = Random("model")
    for _ in range(2_000):
        if it.state == "Z":
            it.state = model.state = "A"
        info = {"loud": random.randint(0, 3), "fails": random.random() < 0.3}
        trigger = random.choice(table.triggers())
        expected = outcome(partial(table.fire, it, trigger), info)
        model.heard, model.key = (), it.key
        got = outcome(getattr(model, trigger), info)
        assert (model.heard if got is True else got, model.state) == (expected, it.state)


def test_the_shared_lifecycles_are_all_compiled() -> None:
    """No callback and no list that is not the machine's own makes one of them slow."""
    for each in (*LIFECYCLES.values(), APPLICATION):
        for cells in each._compiled.values():
            assert all(cells.values())


def test_all_that_go_a_way_share_one_step_which_names_it(born: Any, twin: Any) -> None:
    """A journal of a million records of one row has one edge."""
    table, ask = twin(ASK), born(ask_fsm.INITIAL)
    step = table.take(ask, ask_fsm.SUBMIT, {})
    assert step.edge == ("ask", ask_fsm.INITIAL, ask_fsm.SUBMIT, ask_fsm.PENDING)
    assert (step.entered, step.quiet, step.effects) == (True, True, ())
    assert ask.state == step.target == ask_fsm.PENDING
    assert table.take(born(ask_fsm.INITIAL), ask_fsm.SUBMIT, {}) is step


def test_a_step_that_stays_has_effects_or_enters_a_limit(born: Any, twin: Any) -> None:
    app = born(application_fsm.RUNNING)
    step = twin(APPLICATION).take(app, application_fsm.ASK, {})
    assert (step.entered, step.quiet) == (False, True)
    assert step.edge.source == step.edge.target == app.state == application_fsm.RUNNING
    step = twin(ALLOCATION).take(born(allocation_fsm.ALLOCATED), allocation_fsm.RELEASE, {})
    assert step.effects == (RequestRelease(),) and not step.quiet
    parked = twin(ASK).take(born(ask_fsm.PENDING), ask_fsm.PARK, {})
    assert parked.effects == () and not parked.quiet
