"""The parts of a fast hierarchical machine, which report their changes as those of a flat machine do."""

from __future__ import annotations

from typing import Any, Final

from transitions.extensions.nesting import NestedEvent, NestedState, NestedTransition

from quadriga.fsm.fast.steps import STATE, TRANSITION, reports
from quadriga.fsm.fast.tracking import (
    FastState,
    FastTransition,
    Reporting,
    States,
    Transitions,
    with_library_init,
)

_EVENT: Final = frozenset("trigger_nested _process __getattribute__".split())
_TRANSITION: Final = TRANSITION | frozenset(
    "_resolve_transition _enter_nested _update_model _final_check _final_check_nested".split()
)
_STATE: Final = STATE | frozenset("scoped_enter scoped_exit".split())

#: Nested states that are currently being entered or left, by id. Their names are longer meanwhile, and the
#: library mistakes them for others.
inside: Final[set[int]] = set()


class FastNestedState(FastState, NestedState):
    """A nested state whose changes are noticed."""

    _library = NestedState

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.__dict__.update(states=States(), events=States())

    def scoped_enter(self, event_data: Any, scope: Any = None) -> None:
        self._scoped(self.enter, event_data, scope)

    def scoped_exit(self, event_data: Any, scope: Any = None) -> None:
        self._scoped(self.exit, event_data, scope)

    def _scoped(self, step: Any, event_data: Any, scope: Any) -> None:
        """Take a step in the scope of the state: its name includes those of its parents."""
        self.__dict__["_scope"] = scope or []
        if scope:
            inside.add(id(self))
        try:
            step(event_data)
        finally:
            self.__dict__["_scope"] = []
            inside.discard(id(self))


class FastNestedTransition(FastTransition, NestedTransition):
    """A nested transition whose changes are noticed."""

    def _change_state(self, event_data: Any) -> None:
        known = event_data.machine.__dict__.get("_known")
        if known is None or not known.changes_state(self, event_data):
            super()._change_state(event_data)


class FastNestedEvent(Reporting, NestedEvent):
    """An event of a hierarchical machine or of a state, whose changes are noticed."""

    def __init__(self, name: str, machine: Any) -> None:
        with_library_init(self, NestedEvent, name, machine)
        self.__dict__["transitions"] = Transitions()


def is_plain_event(event: Any) -> bool:
    """Return whether the event tries its transitions as the library does, and would report if that changed."""
    return reports(event, NestedEvent, _EVENT)


def is_plain_transition(transition: Any) -> bool:
    """Return whether the transition takes its steps as the library does, and would report if that changed."""
    return reports(transition, FastNestedTransition, _TRANSITION)


def reports_all(states: Any, events: Any) -> bool:
    """Return whether all states of a tree are plain and would report a change of the tree."""
    if states.__class__ is not States or events.__class__ is not States:
        return False
    for state in states.values():
        if not (
            isinstance(state, FastNestedState)
            and reports(state, FastNestedState, _STATE)
            and not state.__dict__["_scope"]
            and reports_all(state.states, state.events)
        ):
            return False
    return True
