"""Methods of the models of a fast machine: models get them from a class that the machine creates for all of
them.

The library sets a partial for each trigger and state on each model. Here a model gets a subclass of its own
class instead, which has these methods once. The subclass has the name of the model's class, and
``model.__class__`` is still the model's class. The methods are determined by the library's own code, which
binds them to a stand-in (``methods_of``).

A model behaves like the library's models: its own attributes hide the methods, ``del`` removes one, a copy or a
pickle has them, and a removed model no longer gets new triggers. See D150.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable, Mapping
from functools import partial
from operator import is_
from types import FunctionType
from typing import Any, Final

from transitions import Machine

from quadriga.fsm.fast.events import FastEvent
from quadriga.fsm.fast.steps import cached

#: the attribute of a created class that holds its ``Methods``
_KEY: Final = "__quadriga_methods__"
_CLASS: Final = object.__dict__["__class__"]

#: name -> function, arguments before the model, arguments after it
Bound = dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]]


def set_class(model: object, cls: type) -> None:
    """Set the class of a model, bypassing the ``__class__`` property of a created class."""
    _CLASS.__set__(model, cls)


def kind_of(model: object) -> Methods | None:
    """Return the methods that a machine has given to the model."""
    return type(model).__dict__.get(_KEY)


class Methods:
    """The methods that models of one class have from one machine; without a machine for removed models."""

    def __init__(self, machine: Any, base: type, bound: Bound) -> None:
        self.machine = machine
        self.base = base
        self.bound = bound
        #: when this was last known to be what a new model gets
        self.checked: object = None
        #: what has been bound since: for which event or state, under which names, which of them existed
        #: already, and whether models of this class have an attribute with that name
        self.learned: dict[tuple[str, str], tuple[object, list[str], list[str], bool]] = {}
        #: callbacks that the library finds by their names: name -> state, kind
        self.dynamic: dict[str, tuple[Any, str]] = {}
        #: what a machine has found out about the class, and what the class was then
        self.ready: Any = None
        self.content: list[Any] = []
        self.made = _make(self)
        #: those of models of which something is different, by what it is
        self._others: dict[object, Methods] = {}

    def add(self, bound: Bound) -> None:
        """Give more methods to all models."""
        self.bound.update(bound)
        for name, each in bound.items():
            setattr(self.made, name, _method(self.machine, name, *each))
        self._others.clear()

    def other(self, about: str | type | None) -> Methods:
        """Return the same methods without the named one, for another class of the model, or for one that has been
        removed."""
        if about not in self._others:
            bound = {name: each for name, each in self.bound.items() if name != about}
            base = about if isinstance(about, type) else self.base
            self._others[about] = other = Methods(about and self.machine, base, bound)
            other.learned.update(self.learned)
        return self._others[about]

    # They are part of the pickles and copies of models. Through a circle of references one can be encountered
    # before it has its own state; the models that need it wait.

    def __getstate__(self) -> dict[str, Any]:
        return {"machine": self.machine, "base": self.base, "bound": self.bound}

    def __setstate__(self, state: dict[str, Any]) -> None:
        waiting = self.__dict__.pop("waiting", ())
        self.__init__(**state)  # type: ignore[misc]
        for model in waiting:
            set_class(model, self.made)


# -- what a model is to have ---------------------------------------------------------------------


class _StandIn:
    """Is bound instead of a model."""


def methods_of(machine: Any) -> Bound:
    """Return what the library would bind to a new model now."""
    stand_in = _StandIn()
    machine._checked_assignment(stand_in, "trigger", partial(machine._get_trigger, stand_in))
    if hasattr(Machine, "on_final"):  # 0.9.0 has no may_trigger
        machine._checked_assignment(
            stand_in, "may_trigger", partial(machine._can_trigger, stand_in)
        )
    for trigger in machine.events:
        machine._add_trigger_to_model(trigger, stand_in)
    for state in machine.states.values():
        machine._add_model_to_state(state, stand_in)
    return _bound(stand_in)


def bound_by(bind: Any, what: object) -> Bound:
    """Return what this function of the library binds."""
    stand_in = _StandIn()
    bind(what, stand_in)
    return _bound(stand_in)


def _bound(stand_in: object) -> Bound:
    bound: Bound = {}
    for name, each in vars(stand_in).items():
        at = next(n for n, argument in enumerate(each.args) if argument is stand_in)
        bound[name] = (each.func, each.args[:at], each.args[at + 1 :])
    return bound


# -- classes ---------------------------------------------------------------------------------------

_HOOKS: Final = frozenset(
    "__init_subclass__ __getattr__ __getattribute__ __setattr__ __delattr__".split()
)


@cached
def can_have(cls: type) -> bool:
    """Return whether a class for models can be derived from this one without any visible effect."""
    return (
        type(cls) in (type, ABCMeta)
        and _KEY not in cls.__dict__
        and _HOOKS.isdisjoint(class_names(cls))
        and _has_layout(cls)
    )


def _has_layout(cls: type) -> bool:
    """Return whether an object of the class can become one of a subclass."""
    if not cls.__flags__ & 1 << 9:  # created by a class statement, not in C
        return False
    return cls.__basicsize__ == _derive(cls, {}).__basicsize__ and not issubclass(cls, type)


def class_content(cls: type) -> list[Any]:
    """Return everything that a class and its bases define, to detect changes of the class."""
    content: list[Any] = []
    for each in cls.__mro__[:-1]:
        content += each.__dict__
        content += each.__dict__.values()
    return content


def is_same(content: list[Any], other: list[Any]) -> bool:
    """Return whether both contents are the same."""
    return len(content) == len(other) and all(map(is_, content, other))


def class_names(cls: type) -> dict[str, Any]:
    """Return everything that a class and its bases define, the nearest first."""
    names: dict[str, Any] = {}
    for each in cls.__mro__[-2::-1]:
        names.update(each.__dict__)
    return names


def _derive(base: type, names: Mapping[str, Any]) -> type:
    about = {
        "__slots__": (),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    return type(base)(base.__name__, (base,), {**about, **names})


def _make(methods: Methods) -> type:
    names: dict[str, Any] = {
        name: _method(methods.machine, name, *each) for name, each in methods.bound.items()
    }
    names[_KEY] = methods
    # ``type(model)()`` makes an object of the model's class, which no machine knows yet
    names["__new__"] = lambda cls, *args, **kwargs: methods.base(*args, **kwargs)
    names["__class__"] = property(lambda model: methods.base, _change_class)
    names["__delattr__"] = _delete
    names["__reduce_ex__"] = _reduce
    return _derive(methods.base, names)


def _method(
    machine: Any, name: str, func: Any, before: tuple[Any, ...], behind: tuple[Any, ...]
) -> FunctionType:
    def method(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        return func(*before, model, *behind, *args, **kwargs)

    def trigger(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        return func(model, *args, **kwargs)

    def is_state(model: Any, /) -> bool:
        return getattr(model, asked.model_attribute) == value  # type: ignore[no-any-return]

    made: Any = trigger if not before and not behind else method
    if made is trigger and getattr(func, "__func__", None) is FastEvent.trigger:
        made = func.__self__.method()  # a subclass that replaces ``trigger`` is called itself
    if getattr(func, "__func__", None) is Machine.is_state and not behind:
        asked, (value,) = func.__self__, before
        made = is_state
    made.__name__ = made.__qualname__ = name
    return made  # type: ignore[no-any-return]


def _change_class(model: Any, cls: type) -> None:
    """Set ``model.__class__``: the model keeps its methods, as it keeps its own attributes."""
    methods = kind_of(model)
    assert methods is not None
    set_class(model, methods.other(cls).made if can_have(cls) else cls)


def _delete(model: Any, name: str) -> None:
    methods = kind_of(model)
    assert methods is not None
    if name not in methods.bound:
        object.__delattr__(model, name)
        return
    # The attribute hid the method, which the library has overwritten.
    if name in getattr(model, "__dict__", ()):
        object.__delattr__(model, name)
    set_class(model, methods.other(name).made)


# -- copies and pickles ----------------------------------------------------------------------------


def _reduce(model: Any, protocol: Any) -> Any:
    """Reduce the model as its own class does, with the methods as a part of the state."""
    methods = kind_of(model)
    assert methods is not None
    set_class(model, methods.base)
    try:
        reduced = model.__reduce_ex__(protocol)
    finally:
        set_class(model, methods.made)
    if isinstance(reduced, str):
        return reduced
    func, args, *more = reduced
    state = more.pop(0) if more else None
    return (_revive, (func, args), (methods, state), *more)


def _revive(func: Any, args: Iterable[Any]) -> Any:
    model = func(*args)
    set_class(model, _reviving(type(model)))
    return model


@cached
def _reviving(base: Any) -> type:
    """Return the class that a model has until it gets its methods."""
    return _derive(base, {"__setstate__": _restore})


def _restore(model: Any, state: Any) -> None:
    methods, own = state
    set_class(model, type(model).__mro__[1])
    if hasattr(model, "__setstate__"):
        model.__setstate__(own)
    elif own is not None:
        attributes, slots = own if isinstance(own, tuple) else (own, None)
        for name, value in {**(attributes or {}), **(slots or {})}.items():
            setattr(model, name, value)
    if "made" in methods.__dict__:
        set_class(model, methods.made)
    else:
        methods.__dict__.setdefault("waiting", []).append(model)
