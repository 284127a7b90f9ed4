"""``FastHierarchicalMachine``: the library's hierarchical machine, several times as fast.

A trigger in a state that is not parallel takes its step from what is known of this state: the scopes that the
library enters, and for each transition the states to leave and to enter. The library's own code determines
these; it is asked once, and again after every change of the machine (``tracking``). If no callback has to be
called, a trigger only sets the next state.

The library's own code runs in all other cases: parallel states, steps that a subclass replaces, states that the
machine has not created itself, triggers from callbacks of nested states, and while the library's loggers print.
"""

from __future__ import annotations

import logging
from functools import partial
from itertools import chain
from types import MethodType
from typing import Any, Final

from transitions.extensions import nesting
from transitions.extensions.nesting import (
    HierarchicalMachine,
    NestedEventData,
)

from quadriga.fsm.fast.machine import FastMachine
from quadriga.fsm.fast.nested_parts import (
    FastNestedEvent,
    FastNestedState,
    FastNestedTransition,
    inside,
    is_plain_event,
    is_plain_transition,
)
from quadriga.fsm.fast.nested_plans import (
    ATTRIBUTES,
    ENTER,
    EXIT,
    STEPS,
    Change,
    Known,
    Level,
    ascend,
    descend,
)
from quadriga.fsm.fast.steps import (
    HAS_FINAL,
    INFO,
    call,
    check,
    level,
    noisy,
)
from quadriga.fsm.fast.tracking import Callbacks, States, changed

_DEBUG: Final = logging.DEBUG
#: the cached answers of the logger of hierarchical machines
_level: Final = getattr(nesting._LOGGER, "_cache", {}).get

_RELEVANT: Final = STEPS | ATTRIBUTES | {"state_cls", "__class__", "__dict__"}

_set: Final = object.__setattr__


class FastHierarchicalMachine(HierarchicalMachine):
    """A drop-in for ``transitions.extensions.HierarchicalMachine``."""

    if HAS_FINAL:  # otherwise the library's own code runs, on its own parts
        state_cls = FastNestedState
        transition_cls = FastNestedTransition
        event_cls = FastNestedEvent
    _fast_class: type

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
        # The library's first, empty ones.
        if name in ("states", "events") and name not in self.__dict__:
            value = States(value)
        _set(self, name, value)
        changed(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}

    # Scopes change without a report: what is known does not depend on the current scope.

    def __call__(self, to_scope: Any = None) -> Any:
        own = self.__dict__
        if to_scope is None:
            stack = own["_stack"]
            own["_next_scope"] = stack[0] if stack else (self, own["states"], own["events"], [])
        elif type(to_scope) is str:
            name = to_scope.split(self.state_cls.separator)[0]
            state = own["states"][name]
            path = [*own["prefix_path"], name]
            own["_next_scope"] = (state, state.states, state.events, path)
        else:
            super().__call__(to_scope)
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
        super()._remove_nested_transitions(trigger, src_path, dest_path)  # type: ignore[misc]
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
            or known.now is not known.marker.now
            or not known.plain
            or known.machine is not self
            or own["_queued"]
            or own["_transition_queue"]
        ):
            return super().trigger_event(model, trigger, *args, **kwargs)
        try:
            attribute = own["model_attribute"]
            value = getattr(model, attribute)
            kind, new = known.plans[trigger, value] if type(value) is not list else (None, None)
            ready = (
                type(value) is kind
                and known.separator == self.state_cls.separator
                and known.simple.get(type(model))
                and not inside
                and level(INFO) is False
                and _level(_DEBUG) is False
            )
        except Exception:  # the library will encounter it as well
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
        levels = known and known.walk(value)
        if not known or not levels:
            return super()._trigger_event_nested(event_data, trigger, _state_tree)  # type: ignore[misc]
        known.is_simple(event_data.model, self.model_attribute)
        if (trigger, value) not in known.plans:
            new = known.plan(levels, event_data.model, trigger)
            known.plans[trigger, value] = (None, None) if new is None else (type(value), *new)
        # As in the library, all scopes are entered, and events are tried on the way back. If nothing is called
        # in a scope, it cannot be observed that it is not entered.
        result = None
        at: int | None = None
        try:
            for depth in range(len(levels) - 1, -1, -1):
                if result or trigger not in levels[depth].events:
                    continue
                if at is None:
                    descend(self, levels, depth)
                else:
                    ascend(self, at - depth)
                at = depth
                found = self._try(known, levels[depth], event_data, trigger, value)
                result = result if found is None else bool(found)
        finally:
            ascend(self, at or 0)
        return result

    # -- what is known -------------------------------------------------------------------------

    def _knowledge(self) -> Known | None:
        """Return what is known of the machine, ``None`` if the library's own code has to run."""
        if inside or (level(INFO) is not False and noisy()):
            return None
        if _level(_DEBUG) is not False and nesting._LOGGER.isEnabledFor(_DEBUG):
            return None
        own = self.__dict__
        known: Known | None = own.get("_known")
        if (
            not known
            or known.now is not known.marker.now
            or known.machine is not self
            or known.separator != self.state_cls.separator
        ):
            known = own["_known"] = Known(self)
        plain = known.plain and known.states is own["states"] and known.events is own["events"]
        return known if plain else None

    # -- the steps of a trigger ---------------------------------------------------------------

    def _try(self, known: Known, at: Level, data: Any, trigger: str, value: Any) -> Any:
        """Do what ``NestedEvent.trigger_nested`` does."""
        own = self.__dict__
        event = data.event = own["events"][trigger]
        same = getattr(data.model, own["model_attribute"]) is value
        if known.marker.now is not known.now or not same or not known.trusts(event, is_plain_event):
            return event.trigger_nested(data)
        for name, path, state in at.sources:
            if name not in event.transitions:
                continue
            data.state = state if known.marker.now is known.now else self.get_state(name)
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

    def _call(self, known: Known, callbacks: Any, data: Any) -> None:
        """Do what ``Machine.callbacks`` does."""
        for each in callbacks:
            if known.marker.now is known.now:
                call(self, (each,), data)
            else:
                self.callback(each, data)

    def _execute(self, known: Known, at: Level, transition: Any, data: Any, value: Any) -> Any:
        """Do what ``Transition.execute`` does."""
        if known.marker.now is not known.now or not known.trusts(transition, is_plain_transition):
            return transition.execute(data)
        own = self.__dict__
        if transition.prepare:
            self._call(known, transition.prepare, data)
        for condition in transition.conditions:
            if known.marker.now is known.now:
                if not check(self, condition, data):
                    return False
            elif not condition.check(data):
                return False
        if own["_before_state_change"] or transition.before:
            self._call(known, chain(own["_before_state_change"], transition.before), data)
        if transition.dest:
            change = None
            if (
                known.marker.now is known.now
                and getattr(data.model, own["model_attribute"]) is value
            ):
                change = known.change(at, transition, data.model)
            if change is None:
                transition._change_state(data)
            else:
                self._move(known, change, data)
        if transition.after or own["_after_state_change"]:
            self._call(known, chain(transition.after, own["_after_state_change"]), data)
        return True

    def _move(self, known: Known, change: Change, data: Any) -> None:
        """Do what ``NestedTransition._change_state`` does."""
        transition, left, entered, tree, value, state, finals, scope = change
        if scope is not None:
            data.scope = list(scope)
        for each, inner, fixed in left:
            if each.on_exit or not fixed or known.marker.now is not known.now:
                EXIT(each, data, inner)
        attribute = self.__dict__["model_attribute"]
        if known.marker.now is known.now and known.is_simple(data.model, attribute):
            setattr(data.model, attribute, value)
            data.state = state
        else:
            transition._update_model(data, tree)
        for each, inner, fixed in entered:
            if each.on_enter or not fixed or known.marker.now is not known.now:
                ENTER(each, data, inner)
        if known.marker.now is known.now:
            if finals:
                with self():
                    for callbacks in finals:
                        self._call(known, callbacks, data)
        else:
            enters = [partial(MethodType(ENTER, each), data, inner) for each, inner, _ in entered]
            with self():
                for final in transition._final_check(data, tree, enters)[0]:
                    final()


FastHierarchicalMachine.trigger_event.__qualname__ = HierarchicalMachine.trigger_event.__qualname__
FastHierarchicalMachine._fast_class = FastHierarchicalMachine
