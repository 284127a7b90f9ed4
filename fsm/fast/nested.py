"""``FastHierarchicalMachine``: the library's hierarchical machine, many times as fast.

A trigger in a state that is not parallel takes its step from a plan of this state (``nested_plans``). The library's
own code runs in all other cases: parallel states, steps that a subclass replaces, states that the machine has not
created itself, triggers from callbacks of nested states, and while the library's loggers print.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from transitions.extensions.nesting import HierarchicalMachine

from quadriga.fsm.fast.events import FastEvent, key_of
from quadriga.fsm.fast.machine import with_lists
from quadriga.fsm.fast.nested_parts import (
    FastNestedEvent,
    FastNestedState,
    FastNestedTransition,
    inside,
)
from quadriga.fsm.fast.nested_plans import DEBUG, NEEDED, STEPS, Known, nested_levels
from quadriga.fsm.fast.plans import Kind
from quadriga.fsm.fast.steps import HAS_FINAL, INFO, keeps, levels
from quadriga.fsm.fast.tracking import Callbacks, Marker, States, changed

_RELEVANT: Final = STEPS | NEEDED | {"state_cls", "__class__", "__dict__"}
#: what leads the library to a state
_WALKING: Final = frozenset("get_state __call__ __enter__ __exit__".split())

_set: Final = object.__setattr__


@with_lists
class FastHierarchicalMachine(HierarchicalMachine):
    """A drop-in for ``transitions.extensions.HierarchicalMachine``."""

    if HAS_FINAL:  # otherwise the library's own code runs, on its own parts
        state_cls = FastNestedState
        transition_cls = FastNestedTransition
        event_cls = FastNestedEvent
    marker_cls = Marker
    _fast_class: type

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _RELEVANT:
            _set(self, name, value)
            return
        # The library's first, empty ones.
        if name in ("states", "events") and name not in self.__dict__:
            value = States(value)
        _set(self, name, value)
        changed(self)

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

    def get_state(self, state: Any, hint: Any = None) -> Any:
        path = state.split(self.state_cls.separator) if type(state) is str else state
        if hint is None and type(path) is list and path and "get_state" not in self.__dict__:
            if keeps(type(self), FastHierarchicalMachine, _WALKING):
                found: Any = self
                try:
                    for name in path:
                        found = found.states[name]
                    return found
                except (AttributeError, KeyError, TypeError):  # the library looks further
                    pass
        return super().get_state(state, hint)

    def _remove_nested_transitions(self, trigger: Any, src_path: Any, dest_path: Any) -> None:
        super()._remove_nested_transitions(trigger, src_path, dest_path)  # type: ignore[misc]
        event = self.events.get(trigger)
        if isinstance(event, FastNestedEvent):  # its lists are new
            for source, found in event.transitions.items():
                if type(found) is list:
                    event.transitions[source] = Callbacks(found)

    # -- triggers ----------------------------------------------------------------------------

    def trigger_event(self, model: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        try:
            own = self.__dict__
            known = own["_known"]
            value = getattr(model, own["model_attribute"])
            plan = known.plans[trigger][value if type(value) is str else id(value)]
            if (
                own["_stack"]
                or inside
                or own["_transition_queue"]
                or not known.simple[type(model)]
                or known.machine is not self
                or known.separator != self.state_cls.separator
                or levels[INFO]
                or nested_levels[DEBUG]
            ):
                plan = None
        except (AttributeError, KeyError, TypeError):  # the library will encounter it as well
            plan = None
        plan = plan or self._plan_for(trigger, model, Kind.GO)
        if plan is None:
            return super().trigger_event(model, trigger, *args, **kwargs)
        return plan(model, args, kwargs)

    def _trigger_event(self, event_data: Any, trigger: str) -> Any:
        """Process a trigger from the queue."""
        queued = self.__dict__["_queued"]
        plan = self._plan_for(trigger, event_data.model, Kind.GIVEN) if queued else None
        return plan(event_data) if plan else super()._trigger_event(event_data, trigger)

    def _can_trigger(self, model: Any, trigger: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            own = self.__dict__
            known = own["_known"]
            value = getattr(model, own["model_attribute"])
            plan = known.asked[trigger][value if type(value) is str else id(value)]
            if (
                own["_stack"]
                or inside
                or known.machine is not self
                or known.separator != self.state_cls.separator
                or levels[INFO]
                or nested_levels[DEBUG]
            ):
                plan = None
        except (AttributeError, KeyError, TypeError):
            plan = None
        plan = plan or self._plan_for(trigger, model, Kind.ASK)
        if plan is None:
            return super()._can_trigger(model, trigger, *args, **kwargs)  # type: ignore[misc]
        if plan.calls:
            own["_stack"].append(own["_known"].root)
            try:
                return plan(model, args, kwargs)
            finally:
                own["_stack"].pop()
        return plan(model, args, kwargs)

    def _plan_for(self, trigger: Any, model: Any, kind: Kind) -> Any:
        """Return a plan for the state of a model, made the second time; ``None`` if the library's own code runs."""
        own = self.__dict__
        if kind is Kind.GO and (own["_queued"] or own["_transition_queue"]):
            return None
        known: Known | None = own.get("_known")
        if known is None or not known.is_true(self):
            if own["_stack"]:  # only the states of a scope are to be seen
                return None
            known = own["_known"] = Known(self)
        value = getattr(model, own["model_attribute"], None)
        if type(value) is not str and not isinstance(value, Enum):
            return None  # parallel states
        if not known.plain or not known.is_simple(model) or not known.fits(self):
            return None
        try:
            plans = getattr(known, kind.value).setdefault(trigger, {})
        except TypeError:
            return None
        key = key_of(value)
        if key not in plans and (plans.get((key,)) or FastEvent.eager):
            plans[key] = known.plan(trigger, model, kind)
        plans[(key,)] = True
        return plans.get(key)


FastHierarchicalMachine.trigger_event.__qualname__ = HierarchicalMachine.trigger_event.__qualname__
FastHierarchicalMachine._fast_class = FastHierarchicalMachine
