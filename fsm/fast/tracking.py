"""The parts of a fast machine, which report their changes, so that plans made from them can be kept.

``clock.now`` is replaced whenever a part changes: an attribute of a state, transition, condition or event, an
entry of a mapping, or the content of a callback list that one of these classes has created. A plan with another
``now`` is made again.

A list that the caller has passed in stays the caller's own, as in the library: the caller may change it at any
time without notice. No plan is made that depends on such a list (``is_silent``).

A part can also have subscribers (``Subscriber``), which are asked before a change and told after it.
See D151.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from enum import EnumMeta
from typing import Any, Final, Protocol

from transitions import State
from transitions.core import Condition, Transition, listify

#: what ``listify`` returns unchanged
_GIVEN: Final = (list, tuple, EnumMeta)


class Clock:
    """Holds the object that stands for the present state of all fast machines."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: object = object()


clock = Clock()


def changed() -> None:
    """Invalidate all plans."""
    clock.now = object()


class Subscriber(Protocol):
    """Follows the changes of parts. A copy or a pickle of a part has a copy that follows nothing."""

    @property
    def alive(self) -> bool: ...
    @property
    def refuses(self) -> bool:
        """Whether it prevents every change."""

    def before(self) -> None:
        """Prepare for a change; may raise an error that prevents it."""

    def after(self) -> None:
        """Follow up a change."""


def subscribe(part: Any, subscriber: Subscriber) -> None:
    """Let the part report its changes to the subscriber as well."""
    known = part.subscribers
    if subscriber not in known:
        part.__dict__["subscribers"] = (*(s for s in known if s.alive), subscriber)


def _reporting(base: type, *names: str) -> Callable[[type], type]:
    """Return a decorator that lets these methods of the base class report a change."""

    def method(name: str) -> Callable[..., Any]:
        change = getattr(base, name)

        def report(self: Any, *args: Any, **kwargs: Any) -> Any:
            for subscriber in self.subscribers:
                subscriber.before()
            try:
                return change(self, *args, **kwargs)
            finally:
                changed()
                for subscriber in self.subscribers:
                    subscriber.after()

        report.__name__ = name
        return report

    def decorate(cls: type) -> type:
        for name in names:
            setattr(cls, name, method(name))
        return cls

    return decorate


_LIST = (
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"),
    *("__setitem__", "__delitem__", "__iadd__", "__imul__"),
)
_MAPPING = (
    "clear",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "__setitem__",
    "__delitem__",
    "__ior__",
)


@_reporting(list, *_LIST)
class Callbacks(list[Any]):
    """A list of callbacks, conditions or transitions that a machine has created itself."""

    subscribers: tuple[Subscriber, ...] = ()


@_reporting(OrderedDict, *_MAPPING, "move_to_end")
class States(OrderedDict[Any, Any]):
    """The states of a machine by name."""

    subscribers: tuple[Subscriber, ...] = ()


@_reporting(defaultdict, *_MAPPING)
class Transitions(defaultdict[Any, Any]):
    """The transitions of an event by the name of their source."""

    subscribers: tuple[Subscriber, ...] = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or (Callbacks,)))

    def __missing__(self, key: Any) -> Any:
        if any(subscriber.refuses for subscriber in self.subscribers):
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


class Reporting:
    """Reports the change of every attribute."""

    subscribers: tuple[Subscriber, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        for subscriber in self.subscribers:
            subscriber.before()
        object.__setattr__(self, name, value)
        changed()
        for subscriber in self.subscribers:
            subscriber.after()

    def __delattr__(self, name: str) -> None:
        for subscriber in self.subscribers:
            subscriber.before()
        object.__delattr__(self, name)
        changed()
        for subscriber in self.subscribers:
            subscriber.after()


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

    def __init__(
        self, name: Any, on_enter: Any = None, on_exit: Any = None, *args: Any, **kwargs: Any
    ):
        with_library_init(self, State, name, on_enter, on_exit, *args, **kwargs)
        attributes = self.__dict__
        if not on_enter or not isinstance(on_enter, _GIVEN):  # the library created a new list
            attributes["on_enter"] = Callbacks(attributes["on_enter"])
        if not on_exit or not isinstance(on_exit, _GIVEN):
            attributes["on_exit"] = Callbacks(attributes["on_exit"])


class FastCondition(Reporting, Condition):
    """A condition whose changes are noticed."""

    def __init__(self, func: Any, target: bool = True) -> None:
        with_library_init(self, Condition, func, target)


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
        with_library_init(
            self, Transition, source, dest, None, None, own(before), own(after), own(prepare)
        )
        condition = self.condition_cls
        made = [condition(each) for each in listify(conditions)]
        made += [condition(each, target=False) for each in listify(unless)]
        self.__dict__["conditions"] = Callbacks(made)


for _fast, _library in (
    (FastState, State),
    (FastCondition, Condition),
    (FastTransition, Transition),
):
    _fast.__name__ = _library.__name__  # shown by the library's own __repr__
