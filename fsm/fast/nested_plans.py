"""What a fast hierarchical machine knows of its states: determined once by the library's own code, and kept as
long as the marker is the same (``tracking``). See D152."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import getattr_static
from types import MemberDescriptorType, NoneType
from typing import Any, Final, NamedTuple

from transitions.extensions import nesting
from transitions.extensions.nesting import NestedEventData, NestedState

from quadriga.fsm.fast.nested_parts import (
    FastNestedState,
    is_plain_event,
    is_plain_transition,
    reports,
    reports_all,
)
from quadriga.fsm.fast.steps import CALLING, HAS_FINAL, MACHINE, keeps
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
    "_check_event_result _set_state callback get_global_name __call__ __enter__ __exit__".split()
)
#: attributes of a machine that are read here, or that the knowledge depends on
ATTRIBUTES: Final = frozenset(
    "model_attribute send_event states events _queued _transition_queue _prepare_event "
    "_before_state_change _after_state_change _finalize_event _on_exception _on_final".split()
)

_GETTERS: Final = frozenset({"__getattribute__"})
ENTER: Final = FastNestedState.scoped_enter
EXIT: Final = FastNestedState.scoped_exit


class Change(NamedTuple):
    """What a transition does to the states, and what has to be called."""

    transition: Any
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


class Level:
    """A scope in which a trigger looks for an event."""

    def __init__(self, scope: tuple[Any, Any, Any, Any], sources: list[Any]) -> None:
        #: the machine's ``scoped``, ``states``, ``events`` and ``prefix_path`` in this scope
        self.scope = scope
        self.events = scope[2]
        #: names of the states, from within, with their paths and the states
        self.sources = sources
        #: by the id of a transition; ``None`` if the library has to execute it
        self.changes: dict[int, tuple[Any, Change | None]] = {}


def descend(machine: Any, levels: list[Level], depth: int) -> None:
    """Enter the scopes from the root down to this one."""
    if depth:
        own = machine.__dict__
        here = own["scoped"], own["states"], own["events"], own["prefix_path"]
        own["_stack"] += [here, *(each.scope for each in levels[1:depth])]
        own["scoped"], own["states"], own["events"], own["prefix_path"] = levels[depth].scope


def ascend(machine: Any, number: int) -> None:
    """Leave this number of scopes."""
    for _ in range(number):
        machine.__exit__(None, None, None)


class Known:
    """What is known of a machine as long as the marker is the same."""

    def __init__(self, machine: Any) -> None:
        own = machine.__dict__
        self.machine = machine
        self.marker = marker_of(machine)
        self.now = self.marker.now
        self.separator = machine.state_cls.separator
        self.states = own["states"]
        self.events = own["events"]
        cls = type(machine)
        self.plain = (
            HAS_FINAL  # before 0.9.1 the library entered nested states in another way
            and keeps(cls, machine._fast_class, STEPS)
            and keeps(cls, machine._fast_class, ATTRIBUTES)
            and STEPS.isdisjoint(own)
            and own.keys() >= ATTRIBUTES
            and reports_all(self.states, self.events)
        )
        follow(self.marker, *parts_of(machine))
        #: (trigger, value of a model's state) -> class of the value, and the next value if nothing has to be
        #: done but to set it
        self.plans: dict[Any, tuple[type | None, Any]] = {}
        self.walks: dict[Any, tuple[type, list[Level] | None]] = {}
        #: classes of models -> whether assigning their state runs no code of theirs
        self.simple: dict[type, bool] = {}
        #: events and transitions, by id, that execute their steps as the library does and would report a change
        self.trusted: dict[int, Any] = {}

    def __reduce__(self) -> Any:  # a copy or a pickle of the machine starts without knowledge
        return (NoneType, ())

    def is_simple(self, model: Any, attribute: str) -> bool:
        """Return whether assigning this attribute of the model runs no code of its class."""
        cls = type(model)
        known = self.simple.get(cls)
        if known is None:
            found = getattr_static(cls, attribute, None)
            known = self.simple[cls] = (
                cls.__setattr__ in (object.__setattr__, self.machine._fast_class.__setattr__)
                and keeps(cls, object, _GETTERS)
                and (not hasattr(type(found), "__set__") or type(found) is MemberDescriptorType)
            )
        return known

    def trusts(self, part: Any, is_plain: Callable[[Any], bool]) -> bool:
        """Return whether the part is plain; remember it if it would report a change."""
        if id(part) in self.trusted:
            return True
        if not is_plain(part):
            return False
        if reports(part):
            self.trusted[id(part)] = part
        return True

    def walk(self, value: Any) -> list[Level] | None:
        """Return the scopes of a model's state; ``None`` if it is not one plain state."""
        kind = type(value)
        if kind is not str and not isinstance(value, Enum):
            return None
        found = self.walks.get(value)
        if found is None or found[0] is not kind:
            found = self.walks[value] = (kind, self._find(value))
        return found[1]

    def _find(self, value: Any) -> list[Level] | None:
        separator = self.separator
        path = value.split(separator) if type(value) is str else self.machine._get_enum_path(value)
        own = self.machine.__dict__
        scopes = [(own["scoped"], own["states"], own["events"], own["prefix_path"])]
        for name in path:
            state = scopes[-1][1].get(name)
            if state is None:
                return None
            scopes.append((state, state.states, state.events, [*scopes[-1][3], name]))
        levels = []
        for depth, scope in enumerate(scopes[:-1]):
            ends = range(len(path), depth, -1)
            names = [
                (separator.join(path[depth:end]), path[depth:end], scopes[end][0]) for end in ends
            ]
            levels.append(Level(scope, names))
        return levels

    def plan(self, levels: list[Level], model: Any, trigger: str) -> Any:
        """Return the next value in a tuple if nothing has to be called; the tuple has ``None`` if there is no
        next one."""
        own = self.machine.__dict__
        lists = [own["_prepare_event"], own["_before_state_change"], own["_after_state_change"]]
        lists += [own["_finalize_event"], own["_on_exception"]]
        transition = None
        for depth in range(len(levels) - 1, -1, -1):
            event = levels[depth].events.get(trigger)
            if event is None:
                continue
            if not is_plain_event(event) or not reports(event):
                return None
            if event.transitions.__class__ is not Transitions:
                return None
            for name, _, _ in levels[depth].sources:
                found = event.transitions.get(name, None)
                if found is not None and found.__class__ is not Callbacks:
                    return None
                if found:
                    transition = found[0]
                    break
            if transition is not None:
                break
        if transition is None or not is_plain_transition(transition) or not reports(transition):
            return None
        lists += [transition.prepare, transition.conditions, transition.before, transition.after]
        new = None
        if transition.dest:
            descend(self.machine, levels, depth)
            try:
                change = self.change(levels[depth], transition, model)
            finally:
                ascend(self.machine, depth)
            if change is None or not all(fixed for _, _, fixed in [*change.left, *change.entered]):
                return None
            lists += [state.on_exit for state, _, _ in change.left]
            lists += [state.on_enter for state, _, _ in change.entered]
            lists += change.finals
            new = change.value
        return (new,) if all(map(is_silent, lists)) else None

    def change(self, at: Level, transition: Any, model: Any) -> Change | None:
        """Return what the library would do for this transition in the machine's current scope."""
        known = at.changes.get(id(transition))
        if known is None:
            made = self._ask(transition, model) if reports(transition) else None
            known = at.changes[id(transition)] = (transition, made)
        return known[1]

    def _ask(self, transition: Any, model: Any) -> Change | None:
        machine = self.machine
        data: Any = NestedEventData(None, None, machine, model, (), {})
        try:
            tree, exits, enters = transition._resolve_transition(data)
            with machine():
                finals, _ = transition._final_check(data, tree, enters)
                name = nesting._build_state_list(tree, self.separator)
                if not isinstance(name, str):
                    return None  # parallel states
                value, state = machine._set_state(name), machine.get_state(name)
        except Exception:  # the library will encounter it as well
            return None
        left, entered = _called(exits, EXIT), _called(enters, ENTER)
        if left is None or entered is None:
            return None
        for each, _, _ in entered:
            if not isinstance(each.initial, (str, Enum, NoneType)):
                return None  # the list may change without a report
        lists = [final.args[0] for final in finals]
        scope = data.__dict__.get("scope")
        return Change(transition, left, entered, tree, value, state, lists, scope)


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
