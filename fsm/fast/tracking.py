"""The parts of a fast machine, which report their changes, so that plans made from them can be kept.

A part reports to its subscribers: they are asked before a change and told after it. A machine has a
``Marker``, which subscribes to the parts that a plan depends on when the plan is made: an attribute of a state,
transition, condition or event, an entry of a mapping, or the content of a callback list that one of these classes has
created. When one of them changes, the marker drops all plans of its machine.

A list that the caller has passed in stays the caller's own, as in the library: the caller may change it at any
time without notice. A plan compares such a list before it relies on what was in it.
See D297.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from enum import EnumMeta
from typing import Any, Final
from weakref import ref

from transitions import Machine, State
from transitions.core import Condition, Transition, listify

#: the lists of callbacks that a machine has; transitions 0.9.0 has no final states
LISTS: Final = tuple(
    name
    for name in (
        *("prepare_event", "before_state_change", "after_state_change", "finalize_event"),
        *("on_exception", "on_final"),
    )
    if hasattr(Machine, name)
)
#: what ``listify`` returns unchanged
GIVEN: Final = (list, tuple, EnumMeta)


class Marker:
    """Stands for the present state of a machine; drops its plans when a part changes.

    A copy or a pickle of a part has a copy of it that follows nothing.
    """

    #: whether it prevents every change
    refuses: Any = False

    def __init__(self, machine: Any = None) -> None:
        #: replaced by every change
        self.now: object = object()
        #: dictionaries of plans, which a change empties
        self.filled: list[dict[Any, Any]] = []
        #: plans of ``may_...`` by trigger and state
        self.asked: dict[str, dict[Any, Any]] = {}
        #: whether the machine executes the steps of a trigger as its fast class does, if that is known
        self.plain: bool | None = None
        self.machine: Any = (lambda: None) if machine is None else ref(machine)
        self.alone = (self,)
        #: the template from which an unchanged machine was copied, and what its plans find before a change
        self.origin: object = None
        self.lazy: list[Any] = []

    @property
    def alive(self) -> bool:
        return self.machine() is not None

    def before(self) -> None:
        """Prepare for a change; may raise an error that prevents it."""
        for parts in self.lazy:
            parts.fill()

    def after(self) -> None:
        """Follow up a change."""
        self.now, self.plain, self.origin = object(), None, None
        self.lazy.clear()
        self.asked.clear()
        filled, self.filled = self.filled, []
        for plans in filled:
            plans.clear()

    def __reduce__(self) -> Any:  # a copy of a machine makes its own
        return type(self), ()


def marker_of(machine: Any) -> Marker:
    """Return the marker of the machine."""
    marker: Marker | None = machine.__dict__.get("_marker")
    if marker is None or marker.machine() is not machine:
        marker = machine.__dict__["_marker"] = type(machine).marker_cls(machine)
    return marker


def changed(machine: Any) -> None:
    """Drop all plans of the machine."""
    marker = machine.__dict__.get("_marker")
    if marker is not None:
        marker.after()


def follow(marker: Marker, *parts: Any) -> None:
    """Let these parts of a machine report to its marker, as far as they report anything."""
    alone = marker.alone
    for part in parts:
        known = getattr(part, "subscribers", alone)
        if marker not in known:
            others = (each for each in known if each.alive)
            part.__dict__["subscribers"] = (*others, marker) if known else alone


def parts_of(machine: Any) -> Iterator[Any]:
    """Yield everything that decides what a trigger of the machine does."""
    yield from (getattr(machine, name) for name in LISTS)
    yield from _parts_below(machine.states, machine.events)


def _parts_below(states: Any, events: Any) -> Iterator[Any]:
    yield from (states, events)
    for state in states.values():
        yield from (state, state.on_enter, state.on_exit, getattr(state, "on_final", []))
        if hasattr(state, "states"):
            yield from _parts_below(state.states, state.events)
    for event in events.values():
        yield from (event, event.transitions)
        for transitions in event.transitions.values():
            yield transitions
            for each in transitions:
                yield from (each, each.conditions, each.prepare, each.before, each.after)
                yield from each.conditions


def _reporting(base: type, *names: str) -> Callable[[type], type]:
    """Return a decorator that lets these methods of the base class report a change."""

    def method(name: str) -> Callable[..., Any]:
        change = getattr(base, name)

        def report(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.subscribers:
                return change(self, *args, **kwargs)
            for subscriber in self.subscribers:
                subscriber.before()
            try:
                return change(self, *args, **kwargs)
            finally:
                for subscriber in self.subscribers:
                    subscriber.after()

        report.__name__ = name
        return report

    def decorate(cls: type) -> type:
        for name in names:
            setattr(cls, name, method(name))
        return cls

    return decorate


#: what changes a list
CHANGES: Final = (
    "append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"
).split()
_MAPPING = "clear pop popitem setdefault update __setitem__ __delitem__ __ior__".split()


@_reporting(list, *CHANGES)
class Callbacks(list[Any]):
    """A list of callbacks, conditions or transitions that a machine has created itself."""

    subscribers: tuple[Marker, ...] = ()


@_reporting(OrderedDict, *_MAPPING, "move_to_end")
class States(OrderedDict[Any, Any]):
    """The states of a machine by name."""

    subscribers: tuple[Marker, ...] = ()


@_reporting(defaultdict, *_MAPPING)
class Transitions(defaultdict[Any, Any]):
    """The transitions of an event by the name of their source."""

    subscribers: tuple[Marker, ...] = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or (Callbacks,)))

    def __missing__(self, key: Any) -> Any:
        if self.subscribers and any(subscriber.refuses for subscriber in self.subscribers):
            return Callbacks()  # reading is no change
        return super().__missing__(key)


def own(value: Any) -> Any:
    """Return the callbacks as a list like ``listify``, but as one that reports its changes if it is new."""
    if value is None:
        return Callbacks()
    found = listify(value)
    return found if found is value else Callbacks(found)


def is_silent(callbacks: Any) -> bool:
    """Return whether the list is empty and reports when that changes."""
    return callbacks.__class__ is Callbacks and not callbacks


@_reporting(object, "__setattr__", "__delattr__")
class Reporting:
    """Reports the change of every attribute."""

    subscribers: tuple[Marker, ...] = ()

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("quadriga.fsm.fast."):  # shown by the library's own __repr__
            cls.__name__ = cls.__name__.removeprefix("Fast")


_CLASS: Final = object.__dict__["__class__"]


def with_library_init(new: Any, library: Any, *args: Any, **kwargs: Any) -> None:
    """Initialise the object as one of the library, whose attributes are not reported."""
    cls = type(new)
    _CLASS.__set__(new, library)
    try:
        library.__init__(new, *args, **kwargs)
    finally:
        _CLASS.__set__(new, cls)


class FastState(Reporting, State):
    """A state whose changes are noticed."""

    _library: type = State

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with_library_init(self, self._library, *args, **kwargs)
        own, given = self.__dict__, {id(each) for each in (*args, *kwargs.values())}
        for name in ("on_enter", "on_exit", "on_final"):
            if name in own and id(own[name]) not in given:  # the library created a new list
                own[name] = Callbacks(own[name])


class FastCondition(Reporting, Condition):
    """A condition whose changes are noticed."""

    def __init__(self, func: Any, target: bool = True) -> None:
        self.__dict__.update(func=func, target=target)


class FastTransition(Reporting, Transition):
    """A transition whose changes are noticed."""

    condition_cls = FastCondition

    def __init__(
        self,
        source: Any,
        dest: Any,
        conditions: Any = None,
        unless: Any = None,
        before: Any = None,
        after: Any = None,
        prepare: Any = None,
    ) -> None:
        condition = self.condition_cls
        made = [] if conditions is None else [condition(each) for each in listify(conditions)]
        if unless is not None:
            made += [condition(each, target=False) for each in listify(unless)]
        self.__dict__.update(  # not reported: nobody follows a new part
            source=source,
            dest=dest,
            prepare=own(prepare),
            before=own(before),
            after=own(after),
            conditions=Callbacks(made),
        )


class Later:
    """An attribute of a copy that a template describes, until it is read."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self.name = name

    def __get__(self, copy: Any, cls: type) -> Any:
        own = {} if copy is None else copy.__dict__
        if "_later" not in own:
            raise AttributeError(f"{cls.__name__!r} object has no attribute {self.name!r}")
        return own.setdefault(self.name, self.make(*own["_later"]))


def list_of(contents: Any, given: list[Any], alone: Any) -> Any:
    """Return a list of callbacks that a template describes: by what is in it, or the number of a given one."""
    if type(contents) is int:
        return given[contents]
    made = Callbacks(contents)
    made.subscribers = alone
    return made


def states_of(described: Any, given: list[Any], alone: Any) -> States:
    """Return the states of a machine that a template describes."""
    states = States()
    for name, plain, entering, leaving in described:
        state = FastState.__new__(FastState)
        state.__dict__.update(
            plain,
            on_enter=list_of(entering, given, alone),
            on_exit=list_of(leaving, given, alone),
            subscribers=alone,
        )
        states[name] = state
    states.subscribers = alone
    return states


def transitions_of(described: Any, given: list[Any], alone: Any) -> Transitions:
    """Return the transitions of an event that a template describes."""
    made: dict[str, Any] = {}
    for source, each in described:
        made[source] = found = list_of((), given, alone)
        for conditions, plain, prepare, before, after in each:
            asked = [FastCondition.__new__(FastCondition) for _ in conditions]
            for condition, known in zip(asked, conditions, strict=True):
                condition.__dict__.update(known, subscribers=alone)
            transition = FastTransition.__new__(FastTransition)
            transition.__dict__.update(
                plain,
                prepare=list_of(prepare, given, alone),
                before=list_of(before, given, alone),
                after=list_of(after, given, alone),
                conditions=list_of(asked, given, alone),
                subscribers=alone,
            )
            list.append(found, transition)
    transitions = Transitions(Callbacks, made)
    transitions.subscribers = alone
    return transitions
