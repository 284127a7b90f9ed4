"""Plans of a fast hierarchical machine, and what it knows of its states: the library's own code determines which
states a transition leaves and enters; it is asked once, and again after every change of the machine. See D152 and D348."""

from __future__ import annotations

import logging
from enum import Enum
from functools import partial
from itertools import chain, islice
from types import MethodType, NoneType
from typing import Any, Final, NamedTuple

from transitions.core import Event, listify
from transitions.extensions import nesting
from transitions.extensions.nesting import NestedEventData, NestedState

from quadriga.fsm.fast.events import key_of
from quadriga.fsm.fast.nested_parts import (
    FastNestedState,
    inside,
    is_plain_event,
    is_plain_transition,
    reports_all,
)
from quadriga.fsm.fast.plans import NAMES, Kind, Writer, has_plain_conditions, made_of
from quadriga.fsm.fast.steps import (
    ATTRIBUTES,
    CALLING,
    HAS_FINAL,
    INFO,
    MACHINE,
    ask_each,
    ask_on,
    begun,
    event_data,
    finish,
    keeps,
    level,
    noisy,
    sets_plainly,
)
from quadriga.fsm.fast.tracking import (
    Callbacks,
    Transitions,
    follow,
    is_silent,
    marker_of,
    parts_of,
)

#: Steps that are done here in another way. A machine that replaces any of them runs the library's code.
STEPS: Final = MACHINE | frozenset(
    "trigger_event _trigger_event _trigger_event_nested build_state_tree _get_enum_path get_states "
    "_check_event_result _set_state callback _can_trigger _can_trigger_nested get_global_name __call__ __enter__ __exit__".split()
)
#: attributes of a machine that are read here, or that the knowledge depends on
NEEDED: Final = ATTRIBUTES | {"events", "_queued"}

DEBUG: Final = logging.DEBUG
#: the cached answers of the logger of hierarchical machines
nested_levels: Final[dict[int, bool]] = getattr(nesting._LOGGER, "_cache", {})
ENTER: Final = FastNestedState.scoped_enter
EXIT: Final = FastNestedState.scoped_exit


class Change(NamedTuple):
    """What a transition does to the states, and what has to be called."""

    #: states with their scopes, and whether they only call their callbacks
    left: list[tuple[Any, Any, bool]]
    entered: list[tuple[Any, Any, bool]]
    tree: Any
    value: Any
    state: Any
    #: lists of callbacks of final states
    finals: list[Any]
    #: an attribute that the library adds to its event data where initial states are entered
    scope: Any
    #: states of which several inner ones are entered, and which: lists that may change without a report
    initials: list[tuple[Any, Any]]


class Level(NamedTuple):
    """A scope in which a trigger looks for an event."""

    #: the machine's ``scoped``, ``states``, ``events`` and ``prefix_path`` in this scope
    scope: tuple[Any, Any, Any, Any]
    #: names of the states, from within, with their paths and the states
    sources: list[tuple[str, list[str], Any]]


def descend(machine: Any, levels: list[Level], depth: int) -> None:
    """Enter the root's scope, and those from there down to this one."""
    own = machine.__dict__
    here = own["scoped"], own["states"], own["events"], own["prefix_path"]
    own["_stack"] += [here, *(each.scope for each in levels[:depth])]
    if depth:
        own["scoped"], own["states"], own["events"], own["prefix_path"] = levels[depth].scope


def ascend(machine: Any, depth: int) -> None:
    """Leave scopes until this number of them is left."""
    own = machine.__dict__
    stack = own["_stack"]
    if len(stack) > depth:
        own["scoped"], own["states"], own["events"], own["prefix_path"] = stack[depth]
        del stack[depth:]


class Known:
    """What is known of a machine as long as the marker is the same."""

    def __init__(self, machine: Any) -> None:
        own = machine.__dict__
        self.machine = machine
        self.marker = marker_of(machine)
        self.now = self.marker.now
        self.separator = machine.state_cls.separator
        #: the machine's ``scoped``, ``states``, ``events`` and ``prefix_path`` outside of all states
        self.root = own["scoped"], own["states"], own["events"], own["prefix_path"]
        cls = type(machine)
        self.plain = (
            HAS_FINAL  # before 0.9.1 the library entered nested states in another way
            and keeps(cls, machine._fast_class, STEPS)
            and keeps(cls, machine._fast_class, NEEDED)
            and STEPS.isdisjoint(own)
            and own.keys() >= NEEDED
            and reports_all(own["states"], own["events"])
        )
        follow(self.marker, *parts_of(machine))
        #: plans of each kind, by trigger and ``key_of`` the state; the key in a tuple has the number of times that
        #: it was fired without a plan
        self.plans: dict[Any, dict[Any, Any]] = {}
        self.given: dict[Any, dict[Any, Any]] = {}
        self.asked: dict[Any, dict[Any, Any]] = {}
        self.marker.filled += [self.plans, self.given, self.asked]
        #: what transitions that no plan takes do in a scope and in a state of the model
        self.changes: dict[Any, Change | None] = {}
        #: classes of models -> whether assigning their state runs no code of theirs
        self.simple: dict[type, bool] = {}

    def __reduce__(self) -> Any:  # a copy or a pickle of the machine starts without knowledge
        return (NoneType, ())

    def is_true(self, machine: Any) -> bool:
        """Return whether this is known of the machine, as it is now."""
        same = self.now is self.marker.now and self.machine is machine
        return same and self.separator == machine.state_cls.separator

    def fits(self, machine: Any) -> bool:
        """Return whether a plan may be followed now: in no scope, and without the lines of the library's loggers."""
        return (
            self.machine is machine
            and self.separator == machine.state_cls.separator
            and not machine.__dict__["_stack"]
            and self._is_quiet()
        )

    def _is_quiet(self) -> bool:
        calm = level(INFO) is False or not noisy()
        return not inside and calm and not nesting._LOGGER.isEnabledFor(DEBUG)

    def changes_state(self, transition: Any, data: Any) -> bool:
        """Do what ``NestedTransition._change_state`` does; return false if the library has to. See D362."""
        machine, model = self.machine, data.model
        if not (self.plain and self.is_true(data.machine) and self._is_quiet()):
            return False
        if not self.is_simple(model) or not is_plain_transition(transition):
            return False
        own = machine.__dict__
        key = transition, *own["prefix_path"], _frozen(getattr(model, own["model_attribute"]))
        if key not in self.changes:
            if len(self.changes) >= 1024:
                self.changes.clear()
            self.changes[key] = self.change(transition, model)
        change = self.changes[key]
        if change is None or any(each.initial != kept for each, kept in change.initials):
            return False
        value, state = _copied(change.value), _copied(change.state)
        move(self, transition, change._replace(value=value, state=state), data)
        return True

    def is_simple(self, model: Any) -> bool:
        """Return whether assigning the state of the model runs no code of its class."""
        cls, known = type(model), self.simple.get(type(model))
        if known is None:
            about = self.machine.__dict__["model_attribute"], self.machine._fast_class.__setattr__
            known = self.simple[cls] = sets_plainly(cls, *about)
        return known

    def plan(self, trigger: str, model: Any, kind: Kind) -> Any:
        """Return the plan of a trigger in the state of the model; ``None`` if the library's code has to run."""
        machine = self.machine
        value = getattr(model, machine.__dict__["model_attribute"])
        if type(value) is not str and not isinstance(value, Enum):
            return None  # parallel states
        levels = self._walk(value)
        writer = levels and _NestedWriter(self, trigger, levels, kind)
        if not writer or not writer.write_all(model):
            return None
        plan = made_of(writer.text, f"{trigger!r} in {value!r}", writer.constants, value)
        plan.calls = writer.calls
        return plan

    def _walk(self, value: Any) -> list[Level] | None:
        """Return the scopes of a state."""
        separator, is_text = self.separator, type(value) is str
        try:
            path = value.split(separator) if is_text else self.machine._get_enum_path(value)
        except ValueError:  # it has been dropped
            return None
        scopes = [self.root]
        for name in path:
            state = scopes[-1][1].get(name)
            if state is None:
                return None
            scopes.append((state, state.states, state.events, [*scopes[-1][3], name]))
        return [
            Level(
                scope,
                [
                    (separator.join(path[depth:end]), path[depth:end], scopes[end][0])
                    for end in range(len(path), depth, -1)
                ],
            )
            for depth, scope in enumerate(scopes[:-1])
        ]

    def change(self, transition: Any, model: Any) -> Change | None:
        """Return what the library would do for this transition in the machine's current scope."""
        machine = self.machine
        data: Any = NestedEventData(None, None, machine, model, (), {})
        try:
            tree, exits, enters = transition._resolve_transition(data)
            with machine():
                finals, _ = transition._final_check(data, tree, enters)
                name = nesting._build_state_list(tree, self.separator)
                value, state = machine._set_state(name), machine.get_states(listify(name))
        except Exception:  # the library will encounter it as well
            return None
        left, entered = _called(exits, EXIT), _called(enters, ENTER)
        if left is None or entered is None:
            return None
        lists = [final.args[0] for final in finals]
        initials = [
            (each, _copied(each.initial))
            for each, *_ in entered
            if not isinstance(each.initial, (str, Enum, NoneType))
        ]
        state, scope = state if len(state) > 1 else state[0], data.__dict__.get("scope")
        return Change(left, entered, tree, value, state, lists, scope, initials)


def _copied(value: Any) -> Any:
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else key_of(value)


def _called(partials: Any, method: Any) -> list[tuple[Any, Any, bool]] | None:
    """Return the states that these enter or leave, their scopes, and whether that only calls their callbacks."""
    found = []
    for each in partials:
        if getattr(each.func, "__func__", None) is not method:
            return None
        state = each.func.__self__
        fixed = keeps(type(state), NestedState, CALLING) and CALLING.isdisjoint(state.__dict__)
        found.append((state, each.args[1], fixed))
    return found


# -- the source of a plan ---------------------------------------------------------------------------


class Origin(NamedTuple):
    """Where a plan looks for transitions: an event, and a state in a scope."""

    event: Any
    name: str
    path: list[str]
    state: Any
    levels: list[Level]
    depth: int
    #: position of the state among the sources of the level
    at: int
    #: its transitions
    found: Any


class _Rest(NamedTuple):
    """What is left of a trigger from a position in a plan."""

    stage: str
    machine: Any
    transition: Any
    lists: tuple[Any, ...]
    position: int
    #: how many transitions of the origin have been tried
    tried: int
    origin: Origin
    trigger: str
    #: where a question is asked next
    others: list[Origin]

    @property
    def found(self) -> Any:
        return self.origin.found


class _NestedWriter(Writer):
    """Writes the source of a plan that goes through the scopes of a state."""

    made = "nested_data(state, origin, machine, model, args, kwargs, transition, result)"

    def __init__(self, known: Known, trigger: str, levels: list[Level], kind: Kind) -> None:
        self.known, self.trigger, self.levels = known, trigger, levels
        event = Event(trigger, known.machine)
        super().__init__(event, known.machine, known.marker, None, None, kind)
        self.constants["known"] = known
        if kind is Kind.ASK:
            self.made, self.resumes = Writer.made, "ask_nested"
        else:
            self.resumes = "resume_nested"

    def write_all(self, model: Any) -> bool:
        """Write the whole plan; return false if it would need what a plan cannot do."""
        origins = self._origins()
        if origins is None or not (self.kind is Kind.ASK or any(each.found for each in origins)):
            return False
        own, lists = self.own, [self.own["_prepare_event"]]
        asks, conditions = self.kind is Kind.ASK, 0
        self.changes: dict[int, Change] = {}
        for origin in origins:
            for each in origin.found:
                if not is_plain_transition(each) or not has_plain_conditions(self.machine, each):
                    return False
                conditions += len(each.conditions)
                lists.append(each.prepare)
                if not asks:
                    lists += [
                        each.before,
                        each.after,
                        own["_before_state_change"],
                        own["_after_state_change"],
                    ]
                if each.dest and not asks:
                    descend(self.machine, self.levels, origin.depth)
                    try:
                        change = self.known.change(each, model)
                    finally:
                        ascend(self.machine, 0)
                    if change is None or change.initials or isinstance(change.value, list):
                        return False
                    self.changes[id(each)] = change
                elif each.dest is not None and asks and not self._is_known(each.dest):
                    return False
        moves = not all(map(_is_bare, self.changes.values()))
        if not self.begin(lists, conditions, moves):
            return False
        self.scoped = self.calls or moves
        self.first_origin: Any = origins[0] if origins else None
        for number, origin in enumerate(origins):
            self.others = origins[number + 1 :]
            if self._origin(origin):
                break
        else:
            if not asks:
                self._done(False)
        self.finish()
        return True

    def first_lines(self) -> list[str]:
        first = []
        if not self.data or self.kind is Kind.ASK:
            first = ["data = transition = result = None"]
        elif self.kind is Kind.GO:
            origin = self.constant("origin", self.first_origin)
            source = self.constant("source", self.first_origin.state)
            first = [f"data = nested_data({source}, {origin}, machine, model, args, kwargs)"]
        if self.calls and self.kind is not Kind.ASK:
            first.append(f"value = {self._attribute()}")
        return first

    def _is_known(self, dest: Any) -> bool:
        try:
            self.machine.get_state(dest)
        except ValueError:
            return False
        return True

    def _origins(self) -> list[Origin] | None:
        """Return where the trigger looks for transitions, in order; ``None`` if an event is not one of ours."""
        origins = []
        for depth in range(len(self.levels) - 1, -1, -1):
            level = self.levels[depth]
            event = level.scope[2].get(self.trigger)
            if event is None:
                continue
            if not is_plain_event(event) or event.transitions.__class__ is not Transitions:
                return None
            for at, (name, path, state) in enumerate(level.sources):
                found = event.transitions.get(name)
                if name in event.transitions:
                    if found.__class__ is not Callbacks:
                        return None
                    origins.append(Origin(event, name, path, state, self.levels, depth, at, found))
        if self.kind is not Kind.ASK:
            return origins
        if any(each.depth for each in origins):
            return None
        # the library asks for the state and each of its parents, and with each for the parents again
        sources = self.levels[0].sources
        return [each for first in range(len(sources)) for each in origins if each.at >= first]

    def _origin(self, origin: Origin) -> bool:
        """Write how the transitions of a state are tried; return whether one of them is executed always."""
        self.origin = origin
        name = self.constant("origin", origin)
        if self.kind is Kind.ASK:
            self.line(f"state = {self.constant('source', origin.state)}")
            made = "event_data(state, event, machine, model, args, kwargs)"
            self.line(f"data = {made if self.data else None}")
            return any(
                self._ask(number, (each, each.conditions, None, None, True))
                for number, each in enumerate(origin.found)
            )
        state = self.constant("source", origin.state)
        if self.data:
            if self.kind is Kind.GIVEN or self.first_origin is not origin:
                self.line(f"to_origin(data, {name})")
        else:
            self.line(f"origin, state = {name}, {state}")
        if self.scoped:
            if self.first_origin is not origin:
                self.line("ascend(machine, 0)")
            if origin.depth:
                self.line(f"descend(machine, {name}.levels, {origin.depth})")
            else:
                self.line(f'own["_stack"].append({self.constant("root", self.levels[0].scope)})')
        self._list("prepare_event", None, self.own["_prepare_event"])
        for number, each in enumerate(origin.found):
            self._choice(number, (each, each.conditions, None, each.dest or None, True))
            if not each.conditions:
                return True
            self.line("data.result = False" if self.data else "result = False")
        return False

    def _change(self, each: Any, origin: Any, dest: Any, fixed: bool) -> None:
        change = self.changes[id(each)]
        if not _is_bare(change):
            self.line(
                f"move(known, {self.constant('transition', each)}, {self.constant('change', change)}, data)"
            )
            self._check(self._rest("changed", each, (), 0))
            return
        if self.data and change.scope is not None:
            self.line(f"data.scope = {change.scope!r}")
        self._set(self.constant("new", change.value))
        state = "data.state" if self.data else "state"
        self.line(f"{state} = {self.constant('state', change.state)}")

    def _rest(self, stage: str, transition: Any, lists: Any, position: int) -> str:
        tried, self.stage = 0 if transition is None else self._number + 1, stage
        about = stage, self.machine, transition, lists, position, tried, self.origin
        return self.constant("rest", _Rest(*about, self.trigger, self.others))

    def _check(self, rest: str, also: str = "", agrees: str = "True") -> None:
        if (
            self.stage in ("prepare_event", "prepare", "conditions", "before")
            and self.kind is not Kind.ASK
        ):
            also += f" or {self._attribute()} is not value"  # it was set past the plan
        super()._check(rest, also, agrees)


def _is_bare(change: Change) -> bool:
    """Return whether nothing is called while the state changes."""
    lists = [
        *(each.on_exit for each, *_ in change.left),
        *(each.on_enter for each, *_ in change.entered),
    ]
    fixed = all(fixed for *_, fixed in chain(change.left, change.entered))
    return fixed and all(map(is_silent, chain(lists, change.finals)))


# -- what plans call ---------------------------------------------------------------------------------


def nested_data(
    state: Any,
    origin: Any,
    machine: Any,
    model: Any,
    args: Any,
    kwargs: Any,
    transition: Any = None,
    result: Any = None,
) -> NestedEventData:
    """Return the data of a trigger that has come to an origin, in half of the time of ``NestedEventData()``."""
    data: Any = _blank(NestedEventData)
    data.state = state
    data.event = origin.event
    data.machine = machine
    data.model = model
    data.args = args
    data.kwargs = kwargs
    data.transition = transition
    data.error = None
    data.result = result
    data.source_path = list(origin.path)
    data.source_name = origin.name
    return data  # type: ignore[no-any-return]


_blank: Final = NestedEventData.__new__


def to_origin(data: Any, origin: Origin) -> None:
    """Tell where the trigger looks for transitions."""
    data.event = origin.event
    data.state = origin.state
    data.source_name = origin.name
    data.source_path = list(origin.path)


def move(known: Known, transition: Any, change: Change, data: Any) -> None:
    """Do what ``NestedTransition._change_state`` does."""
    left, entered, tree, value, state, finals, scope, _ = change
    machine = known.machine
    if scope is not None:
        data.scope = list(scope)
    for each, inner, fixed in left:
        if each.on_exit or not fixed or known.marker.now is not known.now:
            EXIT(each, data, inner)
    attribute = machine.__dict__["model_attribute"]
    if known.marker.now is known.now and known.is_simple(data.model):
        setattr(data.model, attribute, value)
        data.state = state
    else:
        transition._update_model(data, tree)
    for each, inner, fixed in entered:
        if each.on_enter or not fixed or known.marker.now is not known.now:
            ENTER(each, data, inner)
    if known.marker.now is known.now:
        if finals:
            with machine():
                for callbacks in finals:
                    machine.callbacks(callbacks, data)
    else:
        enters = [partial(MethodType(ENTER, each), data, inner) for each, inner, _ in entered]
        with machine():
            for final in transition._final_check(data, tree, enters)[0]:
                final()


def resume_nested(rest: _Rest, data: Any, agrees: Any) -> None:
    """Do the rest of a trigger with the library's own code, because something has changed."""
    stage, machine, transition, origin = rest.stage, rest.machine, rest.transition, rest.origin
    if begun(rest, data, agrees):
        finish(stage, machine, transition, None, data)
        data.result = True
        return
    if stage != "prepare_event":
        data.result = False
    left = islice(origin.found, rest.tried, None)
    if stage == "prepare_event":
        left = iter(origin.event.transitions[data.source_name])
    for each in left:
        data.transition = each
        data.result = each.execute(data)
        if data.result:
            return
    _try_others(machine, origin, rest.trigger, data)


def _try_others(machine: Any, origin: Origin, trigger: str, data: Any) -> None:
    """Try the transitions of outer states, unless one has been executed."""
    _, _, _, _, levels, depth, at, _ = origin
    for name, path, _ in levels[depth].sources[at + 1 :]:
        if data.result:
            return
        if name in origin.event.transitions:
            data.state, data.source_name = machine.get_state(name), name
            data.source_path = list(path)
            origin.event._process(data)
    for outer in range(depth - 1, -1, -1):
        if data.result:
            return
        ascend(machine, outer + 1)
        if trigger in machine.events:
            data.event = machine.events[trigger]
            data.event.trigger_nested(data)


def ask_nested(rest: Any, data: Any, agrees: Any) -> bool:
    """Answer the rest of ``may_...`` step by step, because something has changed."""
    if ask_on(rest, data, agrees):
        return True
    machine, event = rest.machine, data.event
    for origin in rest.others:
        again = event_data(origin.state, event, machine, data.model, data.args, data.kwargs)
        found = origin.event.transitions.get(origin.name, ())
        if ask_each(machine, iter(found), again):
            return True
    return False


NAMES.update(
    (each.__name__, each)
    for each in (ascend, ask_nested, descend, move, nested_data, resume_nested, to_origin)
)
