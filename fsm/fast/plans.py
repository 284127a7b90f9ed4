"""Plans: what a trigger of a fast machine does in a state, as far as that is known beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from transitions import State
from transitions.core import Condition, Transition

from quadriga.fsm.fast.steps import (
    CALLING,
    CONDITION,
    HAS_FINAL,
    SETTERS,
    STATE,
    TRANSITION,
    keeps,
)
from quadriga.fsm.fast.tracking import Callbacks, Reporting, States, Transitions, clock, is_silent

#: A transition of a plan, its conditions, its two states if it has a destination, and whether these states do
#: nothing but call their lists, and would report if that changed.
Choice = tuple[Any, Any, Any, Any, bool]
#: What a trigger does in a state: the state of all machines for which the plan was made; the class of the
#: state's name, because members of an enumeration may equal strings; the action, which may be only to set the
#: next name; and what that needs: again the first, the state, the list of the transitions, and the choices.
Plan = tuple[object, type, Any, Any, Any]


def make_plan(event: Any, machine: Any, value: Any, direct: bool) -> Plan:
    """Return the plan of an event for a state name; a direct plan may only ask or set."""
    now, kind = clock.now, type(value)
    unknown = (now, kind, type(event)._go_through, None, None)
    name = value if kind is str else value.name if isinstance(value, Enum) else None
    source, states = machine.states.get(name), machine.states
    if source is None or states.__class__ is not States or not _has_plain_name(source):
        return unknown
    found = event.transitions.get(source.name)
    if event.transitions.__class__ is not Transitions or found.__class__ is not Callbacks:
        return unknown
    choices: list[Choice] = []
    for each in found:
        choice = choice_of(machine, each)
        if choice is None:
            return unknown
        choices.append(choice)
    step: Any = type(event)._follow
    new = None
    if direct and choices and all(_is_silent(machine, each) for each in choices):
        step = type(event)._ask
        first = choices[0]
        if not first[1] and (first[3] is None or first[3].value is not None):
            step, new = None, first[3] and first[3].value
        asked = tuple((each, conditions, dest) for each, conditions, _, dest, _ in choices)
        return now, kind, step, new, (now, source, found, asked)
    return now, kind, step, new, (now, source, found, tuple(choices))


def _reports(thing: Any, library: type, names: frozenset[str]) -> bool:
    """Return whether the thing does these steps as the library does, and would report if that changed."""
    cls = type(thing)
    return (
        issubclass(cls, Reporting)
        and keeps(cls, Reporting, SETTERS)
        and keeps(cls, library, names)
        and names.isdisjoint(thing.__dict__)
    )


def _has_plain_name(state: Any) -> bool:
    return keeps(type(state), State, STATE)


def choice_of(machine: Any, transition: Any) -> Choice | None:
    """Return the transition as a choice; ``None`` if it cannot be part of a plan."""
    if not _reports(transition, Transition, TRANSITION):
        return None
    if transition.conditions.__class__ is not Callbacks or not all(
        _reports(condition, Condition, CONDITION) for condition in transition.conditions
    ):
        return None
    if not transition.dest:
        return transition, transition.conditions, None, None, True
    origin = machine.states.get(transition.source)
    dest = machine.states.get(transition.dest)
    if origin is None or dest is None:
        return None
    if not (_has_plain_name(origin) and _has_plain_name(dest)):
        return None
    fixed = _reports(origin, State, CALLING) and _reports(dest, State, CALLING)
    return transition, transition.conditions, origin, dest, fixed


def _is_silent(machine: Any, choice: Choice) -> bool:
    """Return whether nothing is called but conditions, and that cannot change without a report."""
    each, _, origin, dest, fixed = choice
    lists = [machine._prepare_event, machine._before_state_change, machine._after_state_change]
    lists += [machine._finalize_event, each.prepare, each.before, each.after]
    if dest is not None:
        lists += [origin.on_exit, dest.on_enter]
        if HAS_FINAL and dest.final:
            lists.append(machine._on_final)
    return fixed and all(map(is_silent, lists))


def after(transition: Any, choices: tuple[Any, ...], found: Any) -> Iterator[Any]:
    """Return the position in the list of a loop that has come to this transition, whatever the list has become."""
    tried = [choice[0] for choice in choices].index(transition) + 1
    following: Iterator[Any] = iter(found)
    for _ in zip(range(tried), following, strict=False):
        pass
    return following
