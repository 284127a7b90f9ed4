"""``FastHierarchicalMachine``: the library's hierarchical machine, several times as fast.

A trigger in a state that is not parallel takes its step from what is known of this state: the scopes
that the library enters, and for each transition the states to leave and to enter. The library's own code
says what these are; it is asked once, and again after every change of the machine (``fast_tracking``).
Where no callback is to be called, a trigger only sets the next state.

The library's own code runs for all that is not plain: parallel states, steps that a subclass replaces,
states that the machine has not made itself, triggers from callbacks of nested states, and while the
library's loggers print.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from inspect import getattr_static
from itertools import chain
from types import MemberDescriptorType, MethodType, NoneType
from typing import Any, Final, NamedTuple

from transitions.extensions import nesting
from transitions.extensions.nesting import (
    HierarchicalMachine,
    NestedEventData,
    NestedState,
)

from quadriga.fsm.fast_machine import FastMachine
from quadriga.fsm.fast_nested_parts import (
    FastNestedEvent,
    FastNestedState,
    FastNestedTransition,
    inside,
    is_plain_event,
    is_plain_transition,
    reports,
    reports_all,
)
from quadriga.fsm.fast_steps import (
    CALLING,
    HAS_FINAL,
    INFO,
    MACHINE,
    call,
    check,
    keeps,
    level,
    noisy,
)
from quadriga.fsm.fast_tracking import Callbacks, States, Transitions, changed, clock, is_silent

__all__ = ["FastHierarchicalMachine"]

_DEBUG: Final = logging.DEBUG
#: the answers so far of the logger of hierarchical machines
_level: Final = getattr(nesting._LOGGER, "_cache", {}).get

#: Steps that are done here in another way. A machine that replaces any of them runs the library's code.
_STEPS: Final = MACHINE | frozenset(
    "trigger_event _trigger_event _trigger_event_nested build_state_tree _get_enum_path get_states "
    "_set_state callback get_global_name __call__ __enter__ __exit__".split()
)
#: attributes of a machine that are read here, or on which depends what is known
_ATTRIBUTES: Final = frozenset(
    "model_attribute send_event states events _queued _transition_queue _prepare_event "
    "_before_state_change _after_state_change _finalize_event _on_exception _on_final".split()
)
_RELEVANT: Final = _STEPS | _ATTRIBUTES | {"state_cls", "__class__", "__dict__"}

_set: Final = object.__setattr__
_ENTER: Final = NestedState.scoped_enter
_EXIT: Final = NestedState.scoped_exit


class _Change(NamedTuple):
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
    #: an attribute that the library gives to its event data, where initial states are entered
    scope: Any


class _Level:
    """A scope in which a trigger looks for an event."""

    def __init__(self, scope: tuple[Any, Any, Any, Any], sources: list[Any]) -> None:
        #: as the machine's ``scoped``, ``states``, ``events`` and ``prefix_path``
        self.scope = scope
        self.events = scope[2]
        #: names of the states, from within, with their paths and the states
        self.sources = sources
        #: by the id of a transition; None where the library has to do it
        self.changes: dict[int, tuple[Any, _Change | None]] = {}


class _Known:
    """What is known of a machine as long as the marker is the same."""

    def __init__(self, machine: Any) -> None:
        own = machine.__dict__
        self.machine = machine
        self.now = clock.now
        self.separator = machine.state_cls.separator
        self.states = own["states"]
        self.events = own["events"]
        cls = type(machine)
        self.plain = (
            HAS_FINAL  # before 0.9.1 the library entered nested states in another way
            and keeps(cls, FastHierarchicalMachine, _STEPS)
            and keeps(cls, FastHierarchicalMachine, _ATTRIBUTES)
            and _STEPS.isdisjoint(own)
            and own.keys() >= _ATTRIBUTES
            and reports_all(self.states, self.events)
        )
        #: (trigger, value of a model's state) -> class of the value, and the next value if all that is
        #: to be done is to set it
        self.plans: dict[Any, tuple[type | None, Any]] = {}
        self.walks: dict[Any, tuple[type, list[_Level] | None]] = {}
        #: classes of models -> whether an assignment to their state runs no code of theirs
        self.simple: dict[type, bool] = {}
        #: events and transitions by id that do their steps as the library does, and would report a change
        self.trusted: dict[int, Any] = {}

    def __reduce__(self) -> Any:  # a copy or a pickle of the machine learns anew
        return (NoneType, ())

    def is_simple(self, model: Any, attribute: str) -> bool:
        cls = type(model)
        known = self.simple.get(cls)
        if known is None:
            found = getattr_static(cls, attribute, None)
            known = self.simple[cls] = (
                cls.__setattr__ in (object.__setattr__, FastHierarchicalMachine.__setattr__)
                and cls.__getattribute__ is object.__getattribute__
                and (not hasattr(type(found), "__set__") or type(found) is MemberDescriptorType)
            )
        return known

    def trusts(self, part: Any, is_plain: Callable[[Any], bool]) -> bool:
        if id(part) in self.trusted:
            return True
        if not is_plain(part):
            return False
        if reports(part):
            self.trusted[id(part)] = part
        return True


class FastHierarchicalMachine(HierarchicalMachine):
    """A drop-in for ``transitions.extensions.HierarchicalMachine``."""

    state_cls = FastNestedState
    transition_cls = FastNestedTransition
    event_cls = FastNestedEvent

    prepare_event = FastMachine.prepare_event
    before_state_change = FastMachine.before_state_change
    after_state_change = FastMachine.after_state_change
    finalize_event = FastMachine.finalize_event
    on_exception = FastMachine.on_exception
    if HAS_FINAL:
        on_final = FastMachine.on_final

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _RELEVANT:
            _set(self, name, value)
            return
        if (
            name in ("states", "events") and name not in self.__dict__
        ):  # the library's first, empty ones
            value = States(value)
        _set(self, name, value)
        changed()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}

    # Scopes come and go without a report: what is known does not depend on where the machine just is.

    def __call__(self, to_scope: Any = None) -> Any:
        if to_scope is not None:
            return super().__call__(to_scope)
        own = self.__dict__
        stack = own["_stack"]
        own["_next_scope"] = stack[0] if stack else (self, own["states"], own["events"], [])
        return self

    def __enter__(self) -> None:
        own = self.__dict__
        own["_stack"].append((own["scoped"], own["states"], own["events"], own["prefix_path"]))
        own["scoped"], own["states"], own["events"], own["prefix_path"] = own["_next_scope"]
        own["_next_scope"] = None

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        own = self.__dict__
        own["scoped"], own["states"], own["events"], own["prefix_path"] = own["_stack"].pop()

    def _remove_nested_transitions(self, trigger: Any, src_path: Any, dest_path: Any) -> None:
        super()._remove_nested_transitions(trigger, src_path, dest_path)
        event = self.events.get(trigger)
        if isinstance(event, FastNestedEvent):  # its lists are new
            for source, found in event.transitions.items():
                if type(found) is list:
                    event.transitions[source] = Callbacks(found)

    # -- triggers ----------------------------------------------------------------------------

    def trigger_event(self, model: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        known = own.get("_known")
        if (
            known is None
            or known.now is not clock.now
            or not known.plain
            or known.machine is not self
            or own["_queued"]
            or own["_transition_queue"]
        ):
            return super().trigger_event(model, trigger, *args, **kwargs)
        try:
            attribute = own["model_attribute"]
            value = getattr(model, attribute)
            kind, new = known.plans[trigger, value]
            ready = (
                type(value) is kind
                and known.separator == self.state_cls.separator
                and known.simple.get(type(model))
                and not inside
                and level(INFO) is False
                and _level(_DEBUG) is False
            )
        except Exception:  # the library will come to it as well
            ready = False
        if not ready:
            data: Any = NestedEventData(None, None, self, model, args, kwargs)
            data.result = None
            return self._trigger_event(data, trigger)
        if new is not None:
            setattr(model, attribute, new)
        return True

    def _trigger_event_nested(self, event_data: Any, trigger: str, _state_tree: Any) -> Any:
        known = self._knowledge() if _state_tree is None else None
        value = known and getattr(event_data.model, self.model_attribute)
        levels = known and self._walk(known, value)
        if not known or not levels:
            return super()._trigger_event_nested(event_data, trigger, _state_tree)
        known.is_simple(event_data.model, self.model_attribute)
        if (trigger, value) not in known.plans:
            new = self._plan(known, levels, event_data.model, trigger)
            known.plans[trigger, value] = (None, None) if new is None else (type(value), *new)
        # As the library: all scopes are entered, and events are tried on the way back. Where nothing is
        # called in a scope, nobody sees that it is not entered.
        result = None
        at: int | None = None
        try:
            for depth in range(len(levels) - 1, -1, -1):
                if result or trigger not in levels[depth].events:
                    continue
                if at is None:
                    self._descend(levels, depth)
                else:
                    self._ascend(at - depth)
                at = depth
                found = self._try(known, levels[depth], event_data, trigger, value)
                result = result if found is None else bool(found)
        finally:
            self._ascend(at or 0)
        return result

    def _descend(self, levels: list[_Level], depth: int) -> None:
        """Enter the scopes from the root down to this one."""
        if depth:
            own = self.__dict__
            here = own["scoped"], own["states"], own["events"], own["prefix_path"]
            own["_stack"] += [here, *(each.scope for each in levels[1:depth])]
            own["scoped"], own["states"], own["events"], own["prefix_path"] = levels[depth].scope

    def _ascend(self, number: int) -> None:
        for _ in range(number):
            self.__exit__(None, None, None)

    # -- what is known -------------------------------------------------------------------------

    def _knowledge(self) -> _Known | None:
        """None where the library's own code has to run."""
        if inside or (level(INFO) is not False and noisy()):
            return None
        if _level(_DEBUG) is not False and nesting._LOGGER.isEnabledFor(_DEBUG):
            return None
        own = self.__dict__
        known: _Known | None = own.get("_known")
        if (
            not known
            or known.now is not clock.now
            or known.machine is not self
            or known.separator != self.state_cls.separator
        ):
            known = own["_known"] = _Known(self)
        plain = known.plain and known.states is own["states"] and known.events is own["events"]
        return known if plain else None

    def _walk(self, known: _Known, value: Any) -> list[_Level] | None:
        """The scopes of a model's state; None if it is not one plain state."""
        kind = type(value)
        if kind is not str and not isinstance(value, Enum):
            return None
        found = known.walks.get(value)
        if found is None or found[0] is not kind:
            found = known.walks[value] = (kind, self._find(known, value))
        return found[1]

    def _find(self, known: _Known, value: Any) -> list[_Level] | None:
        separator = known.separator
        path = value.split(separator) if type(value) is str else self._get_enum_path(value)
        own = self.__dict__
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
            levels.append(_Level(scope, names))
        return levels

    def _plan(self, known: _Known, levels: list[_Level], model: Any, trigger: str) -> Any:
        """The next value in a tuple, or in it None if there is no next one, if nothing is to be called."""
        own = self.__dict__
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
            self._descend(levels, depth)
            try:
                change = self._change(levels[depth], transition, model)
            finally:
                self._ascend(depth)
            if change is None or not all(fixed for _, _, fixed in [*change.left, *change.entered]):
                return None
            lists += [state.on_exit for state, _, _ in change.left]
            lists += [state.on_enter for state, _, _ in change.entered]
            lists += change.finals
            new = change.value
        return (new,) if all(map(is_silent, lists)) else None

    def _change(self, at: _Level, transition: Any, model: Any) -> _Change | None:
        """What the library would do for this transition, in the scope in which the machine is."""
        known = at.changes.get(id(transition))
        if known is None:
            made = self._ask(transition, model) if reports(transition) else None
            known = at.changes[id(transition)] = (transition, made)
        return known[1]

    def _ask(self, transition: Any, model: Any) -> _Change | None:
        data: Any = NestedEventData(None, None, self, model, (), {})
        try:
            tree, exits, enters = transition._resolve_transition(data)
            with self():
                finals, _ = transition._final_check(data, tree, enters)
                name = nesting._build_state_list(tree, self.state_cls.separator)
                if not isinstance(name, str):
                    return None  # parallel states
                value, state = self._set_state(name), self.get_state(name)
        except Exception:  # the library will come to it as well
            return None
        left, entered = _called(exits, _EXIT), _called(enters, _ENTER)
        if left is None or entered is None:
            return None
        for each, _, _ in entered:
            if not isinstance(each.initial, (str, Enum, NoneType)):
                return None  # the list may change without a report
        lists = [final.args[0] for final in finals]
        scope = data.__dict__.get("scope")
        return _Change(transition, left, entered, tree, value, state, lists, scope)

    # -- the steps of a trigger ---------------------------------------------------------------

    def _try(self, known: _Known, at: _Level, data: Any, trigger: str, value: Any) -> Any:
        """``NestedEvent.trigger_nested``"""
        own = self.__dict__
        event = data.event = own["events"][trigger]
        same = getattr(data.model, own["model_attribute"]) is value
        if clock.now is not known.now or not same or not known.trusts(event, is_plain_event):
            return event.trigger_nested(data)
        for name, path, state in at.sources:
            if name not in event.transitions:
                continue
            data.state = state if clock.now is known.now else self.get_state(name)
            data.source_name = name
            data.source_path = list(path)
            if own["_prepare_event"]:
                self._call(known, own["_prepare_event"], data)
            for transition in event.transitions[name]:
                data.transition = transition
                data.result = self._execute(known, at, transition, data, value)
                if data.result:
                    break
            if data.result:
                break
        return data.result

    def _call(self, known: _Known, callbacks: Any, data: Any) -> None:
        """``Machine.callbacks``"""
        for each in callbacks:
            if clock.now is known.now:
                call(self, (each,), data)
            else:
                self.callback(each, data)

    def _execute(self, known: _Known, at: _Level, transition: Any, data: Any, value: Any) -> Any:
        """``Transition.execute``"""
        if clock.now is not known.now or not known.trusts(transition, is_plain_transition):
            return transition.execute(data)
        own = self.__dict__
        if transition.prepare:
            self._call(known, transition.prepare, data)
        for condition in transition.conditions:
            if clock.now is known.now:
                if not check(self, condition, data):
                    return False
            elif not condition.check(data):
                return False
        if own["_before_state_change"] or transition.before:
            self._call(known, chain(own["_before_state_change"], transition.before), data)
        if transition.dest:
            change = None
            if clock.now is known.now and getattr(data.model, own["model_attribute"]) is value:
                change = self._change(at, transition, data.model)
            if change is None:
                transition._change_state(data)
            else:
                self._move(known, change, data)
        if transition.after or own["_after_state_change"]:
            self._call(known, chain(transition.after, own["_after_state_change"]), data)
        return True

    def _move(self, known: _Known, change: _Change, data: Any) -> None:
        """``NestedTransition._change_state``"""
        transition, left, entered, tree, value, state, finals, scope = change
        if scope is not None:
            data.scope = list(scope)
        for each, inner, fixed in left:
            if each.on_exit or not fixed or clock.now is not known.now:
                _EXIT(each, data, inner)
        attribute = self.__dict__["model_attribute"]
        if clock.now is known.now and known.is_simple(data.model, attribute):
            setattr(data.model, attribute, value)
            data.state = state
        else:
            transition._update_model(data, tree)
        for each, inner, fixed in entered:
            if each.on_enter or not fixed or clock.now is not known.now:
                _ENTER(each, data, inner)
        if clock.now is known.now:
            if finals:
                with self():
                    for callbacks in finals:
                        self._call(known, callbacks, data)
        else:
            enters = [partial(MethodType(_ENTER, each), data, inner) for each, inner, _ in entered]
            with self():
                for final in transition._final_check(data, tree, enters)[0]:
                    final()


def _called(partials: Any, method: Any) -> list[tuple[Any, Any, bool]] | None:
    """The states that these enter or leave, their scopes, and whether that only calls their callbacks."""
    found = []
    for each in partials:
        if getattr(each.func, "__func__", None) is not method:
            return None
        state = each.func.__self__
        fixed = keeps(type(state), NestedState, CALLING) and CALLING.isdisjoint(state.__dict__)
        found.append((state, each.args[1], fixed))
    return found


FastHierarchicalMachine.trigger_event.__qualname__ = HierarchicalMachine.trigger_event.__qualname__
