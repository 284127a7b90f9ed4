"""Templates: what equal arguments have built before, so that an equal machine costs a fraction of the first.

A machine for each object (``Machine(model=self, states=..., transitions=...)`` in ``__init__``) is built from the same
arguments each time. The second such machine leaves a template; those after it are copied from it, the transitions of a
trigger not before they are read. Only arguments of plain data make one (``marshal`` has no other), and only machines
whose class replaces nothing of the library's.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from functools import lru_cache, partial
from marshal import dumps
from types import NoneType
from typing import Any, Final, NamedTuple

from transitions import Machine

from quadriga.fsm.fast.events import FastEvent
from quadriga.fsm.fast.models import methods_of
from quadriga.fsm.fast.steps import HAS_FINAL
from quadriga.fsm.fast.tracking import (
    GIVEN,
    Callbacks,
    FastCondition,
    FastState,
    FastTransition,
    Marker,
    States,
    list_of,
)

#: most templates, and the size of the longest arguments that have one, in bytes
_MOST: Final = 256
_LONGEST: Final = 1 << 16
_PLAIN: Final = (str, bool, int, float, NoneType)
#: what a class may define beside its machine
_FREE: Final = frozenset(
    "__init__ __module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __static_attributes__ "
    "__firstlineno__ __eq__ __hash__ __repr__ __str__".split()
)
#: beginnings of names that a machine finds although nothing has set them
_FOUND: Final = ("on_enter", "on_exit", "before", "after", "prepare", "__")


#: callbacks of a list that is made, or the number of the caller's list (``lists_of``)
Contents = tuple[str, ...] | int


class NoTemplate(Exception):
    """The machine has a part that is not plain data."""


class Template(NamedTuple):
    """A machine without models, in constants."""

    plain: dict[str, Any]
    #: callbacks of the machine, by attribute
    lists: list[tuple[str, Contents]]
    #: name, attributes, callbacks of entering and leaving
    states: list[tuple[str, dict[str, Any], Contents, Contents]]
    #: name, transitions (``transitions_of`` makes them)
    events: list[tuple[str, Any]]
    #: name of a method of a model; its function's name; the event, if it is one's; arguments before and after the model
    methods: list[tuple[str, str, str | None, tuple[Any, ...], tuple[Any, ...]]]
    #: names of the functions that are the machine's
    asked: set[str]
    #: names that a model must not have, and whether a machine can be its own model
    names: frozenset[str]
    selfish: bool
    #: whether it keeps lists of the caller
    keeps: bool
    #: stands for it where plans are kept
    token: object


#: ``None`` until a second machine is built, ``False`` if there can be no template
templates: Final[dict[tuple[type, bytes], Template | bool | None]] = {}


def key_of(machine: Any, args: Any, kwargs: Any) -> tuple[type, bytes] | None:
    """Return what equal machines have in common; ``None`` if these arguments have no template."""
    cls: Any = type(machine)
    own = machine.__dict__
    if not _builds_plainly(cls) or (own and not _hooks(cls._fast_class).isdisjoint(own)):
        return None
    states = args[0] if args else kwargs.get("states")
    if type(states) is not list:
        return None
    for state in states:  # the library adds to the caller's dictionary
        if type(state) is dict and "ignore_invalid_triggers" not in state:
            return None
    try:
        key = dumps((args, kwargs), 0)  # a version whose bytes depend on values only
    except ValueError:
        return None
    return (cls, key) if len(key) <= _LONGEST else None


@lru_cache(maxsize=16)
def _hooks(cls: Any) -> frozenset[str]:
    """Return the names that change how a machine is built, if a subclass or an object has them of its own."""
    kept = "_current _met _loose _compares _marker __copy__ __deepcopy__".split()
    return frozenset(dir(cls)).union(vars(Machine(None)), kept) - _FREE


def _builds_plainly(cls: Any) -> bool:
    """Return whether the class builds a machine exactly as its fast class does, as it is now."""
    fast = cls._fast_class
    return (
        HAS_FINAL
        and cls.__mro__[-3:] == (fast, Machine, object)
        and all(_hooks(fast).isdisjoint(each.__dict__) for each in cls.__mro__[:-3])
    )


def lists_of(arguments: Any) -> list[list[Any]]:
    """Return all lists in the arguments, in an order that depends on values only."""
    found = []
    for each in arguments.values() if type(arguments) is dict else arguments:
        if type(each) is list:
            found.append(each)
        if type(each) in (list, tuple, dict):
            found += lists_of(each)
    return found


def learn(key: tuple[type, bytes], machine: Any, known: set[str], arguments: Any) -> None:
    """Keep a template of a machine that has no models yet, if it is the second one."""
    if key not in templates:
        if len(templates) >= _MOST:
            templates.clear()
        templates[key] = None
    elif templates[key] is None:
        try:
            templates[key] = _template(machine, known, lists_of(arguments))
        except NoTemplate:
            templates[key] = False


# -- from a machine to a template ------------------------------------------------------------------


def _template(machine: Any, known: set[str], given: list[list[Any]]) -> Template:
    numbers = {id(each): number for number, each in enumerate(given)}
    if len(numbers) < len(given):  # one list in two places, which are two lists next time
        raise NoTemplate
    own = {name: value for name, value in machine.__dict__.items() if name not in known}
    for name in ("_transition_queue", "models", "_current", "_met", "_loose"):
        if own.pop(name):
            raise NoTemplate
    states, events = own.pop("states"), own.pop("events")
    own.pop("_marker", None)
    lists = [
        (n, _contents(own.pop(n), numbers)) for n in list(own) if type(own[n]) in (Callbacks, list)
    ]
    attributes = [
        (name, *_divided(state, FastState, numbers, "on_enter", "on_exit"))
        for name, state in states.items()
    ]
    kept = []
    for name, event in events.items():
        if type(event) is not FastEvent or event.subscribers or event.name != name:
            raise NoTemplate
        found = event.transitions
        kept.append(
            (name, [(source, [_parts(t, numbers) for t in found[source]]) for source in found])
        )
    described = [*lists, *attributes, *(t for _, each in kept for _, found in each for t in found)]
    keeps = any(type(part) is int for each in described for part in each)
    attribute = own["model_attribute"]
    between = "" if attribute == "state" else f"{attribute}_"
    bound = ["trigger", "may_trigger", *events, *(f"may_{name}" for name in events)]
    bound += [f"is_{between}{name}" for name in states]
    if max(Counter(bound).values()) > 1 or own.get("model_override"):
        raise NoTemplate  # the library says what it does not bind
    methods = []
    for name, (func, before, behind) in methods_of(machine).items():
        event_name = func.__self__.name if type(func.__self__) is FastEvent else None
        methods.append((name, func.__name__, event_name, before, behind))
    dynamic = [f"{c}_{name}" for c in FastState.dynamic_methods for name in states]
    selfish = _hooks(type(machine)._fast_class).isdisjoint(bound) and not any(
        name.startswith(_FOUND) for name in bound
    )
    names = frozenset(bound).union(dynamic)
    if not names.isdisjoint(object.__dict__):
        raise NoTemplate
    asked = {func for _, func, event, *_ in methods if event is None}
    found = lists, attributes, kept, methods, asked, names, selfish, keeps
    return Template(_plain(own), *found, object())


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    if not all(type(value) in _PLAIN for value in values.values()):
        raise NoTemplate
    return values


def _contents(callbacks: Any, numbers: dict[int, int]) -> Contents:
    if id(callbacks) in numbers:
        return numbers[id(callbacks)]
    if type(callbacks) is not Callbacks or not all(type(each) is str for each in callbacks):
        raise NoTemplate
    return tuple(callbacks)


def _divided(part: Any, cls: Any, numbers: dict[int, int], *lists: str) -> tuple[Any, ...]:
    """Return the attributes of a part and its lists, each apart."""
    if type(part) is not cls or part.subscribers:
        raise NoTemplate
    own = {n: v for n, v in part.__dict__.items() if n not in ("subscribers", "conditions")}
    found = [_contents(own.pop(name), numbers) for name in lists]
    return (_plain(own), *found)


def _parts(transition: Any, numbers: dict[int, int]) -> tuple[Any, ...]:
    if type(transition) is not FastTransition or type(transition.conditions) is not Callbacks:
        raise NoTemplate
    conditions = [_divided(each, FastCondition, numbers)[0] for each in transition.conditions]
    return (
        conditions,
        *_divided(transition, FastTransition, numbers, "prepare", "before", "after"),
    )


# -- from a template to a machine --------------------------------------------------------------------


def build(machine: Any, template: Template, arguments: Any) -> None:
    """Give a new machine what the library would have given it, but no model."""
    given = lists_of(arguments) if template.keeps else []
    own = machine.__dict__
    own.update(template.plain)
    own["_marker"] = marker = Marker(machine)
    # Every part reports from the beginning, so what was not reported is as in the template.
    alone, marker.plain = marker.alone, True
    marker.origin = None if template.keeps else template.token
    for name, contents in template.lists:
        own[name] = list_of(contents, given, alone)
    own["_later"] = template.states, given, alone
    own["events"] = events = States()
    events.subscribers = alone
    put, new_event = OrderedDict.__setitem__, object.__new__
    for name, each in template.events:
        event = new_event(FastEvent)
        event.__dict__.update(
            name=name,
            machine=machine,
            subscribers=alone,
            _later=(each, given, alone),
            _plans={},
            _data_plans={},
        )
        put(events, name, event)
    own.update(_transition_queue=deque(), _current={}, _met=set(), _loose=[])


def bind(machine: Any, template: Template, model: Any) -> bool:
    """Bind the methods to the first model as the library does; return false if this one needs a closer look."""
    cls: Any = type(model)
    own = getattr(model, "__dict__", None)
    itself = model is machine
    if type(own) is not dict or isinstance(model, GIVEN):
        return False
    if not (template.selfish if itself else cls.__setattr__ is object.__setattr__):
        return False
    if cls.__getattribute__ is not object.__getattribute__:
        return False
    if not itself and hasattr(cls, "__getattr__"):
        return False
    names = template.names
    if not all(map(names.isdisjoint, (own, *(each.__dict__ for each in cls.__mro__[:-1])))):
        return False
    events = machine.__dict__["events"]
    found = {func: getattr(machine, func) for func in template.asked}
    for name, func, event, before, behind in template.methods:
        asked = found[func] if event is None else getattr(events[event], func)
        own[name] = partial(asked, *before, model, *behind)
    return True
