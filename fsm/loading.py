"""Entities that were stored: which states they may have, and what has become of renamed ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from functools import partial
from itertools import chain, groupby
from typing import Any

from transitions import Machine
from transitions.core import listify

from quadriga.fsm.errors import DefinitionError, did_you_mean, text_of, unknown_state
from quadriga.fsm.fast.steps import cached
from quadriga.fsm.nesting import SEPARATOR, Nesting


class UnknownState(ValueError):
    """An entity whose state is none of its lifecycle's.

    Fields: ``lifecycle`` (its name), ``key`` (the entity's), ``state``, ``states`` (all that there are), and
    ``now``: the state for which ``state`` is a former name or a text, else ``None``. It can be pickled.
    """

    def __init__(
        self, lifecycle: str, key: str, state: Any, states: Collection[Any], now: Any = None
    ) -> None:
        self.lifecycle = lifecycle
        self.key = key
        self.state = state
        self.states = tuple(states)
        self.now = now
        if now is None:
            why = unknown_state(state, self.states)
        else:
            why = f"state {state!r}, which is {now!r} now; migrate() changes it"
        super().__init__(f"{lifecycle} {key!r} is in {why}")

    def __reduce__(self) -> tuple[type[UnknownState], tuple[Any, ...]]:
        return type(self), (self.lifecycle, self.key, self.state, self.states, self.now)


def all_renamed(
    renamed: Mapping[Any, Any], inside: Mapping[Any, Any], nesting: Nesting | None
) -> dict[Any, Any]:
    """The former names of a lifecycle's states, those of the lifecycles inside and of their states included."""
    found: dict[Any, Any] = {
        f"{state}{SEPARATOR}{old}": f"{state}{SEPARATOR}{new}"
        for state, inner in inside.items()
        for old, new in inner.renamed.items()
    }
    for old, new in renamed.items():
        composite = nesting.composites.get(new) if nesting else None
        if composite is None:
            found[old] = new
            continue
        below = f"{new}{SEPARATOR}"
        leaves = {name: leaf for name, leaf in found.items() if name.startswith(below)}
        leaves.update((leaf, leaf) for leaf in composite.leaves)
        for name, leaf in leaves.items():
            found[f"{old}{SEPARATOR}{name.removeprefix(below)}"] = leaf
    return found


def check_renamed(lifecycle: str, states: Collection[Any], renamed: Mapping[Any, Any]) -> None:
    """Raise ``DefinitionError`` if a name is still in use, or becomes what is not a state."""
    for old, new in renamed.items():
        problem = ""
        if old in states:
            problem = f"{text_of(old)!r} is still a state"
        elif new in renamed:
            problem = (
                f"{text_of(old)!r} becomes {text_of(new)!r}, which becomes {text_of(renamed[new])!r}; "
                f"name the last one"
            )
        elif new not in states:
            problem = f"{text_of(old)!r} becomes the unknown state {text_of(new)!r}{did_you_mean(new, states)}"
        if problem:
            raise DefinitionError(f"{lifecycle}: renamed: {problem}")


def check_state(
    lifecycle: str, key: Any, state: Any, states: Collection[Any], renamed: Mapping[Any, Any]
) -> None:
    """Raise ``UnknownState`` unless the state is one of these."""
    if state not in states:
        raise UnknownState(lifecycle, key, state, states, _meant(state, states, renamed))


def present_state(
    lifecycle: str, key: Any, state: Any, states: Collection[Any], renamed: Mapping[Any, Any]
) -> Any:
    """The state that a stored one stands for: by itself, by a former name, or as the text of a member of an Enum.

    Raises ``UnknownState``.
    """
    meant = _meant(state, states, renamed)
    if meant is None:
        raise UnknownState(lifecycle, key, state, states)
    return meant


def _meant(state: Any, states: Collection[Any], renamed: Mapping[Any, Any]) -> Any:
    for name, meant in chain(zip(states, states, strict=True), renamed.items()):
        if name == state:
            return meant
    for known in states:
        if isinstance(known, Enum) and state in (known.name, known.value):
            return known
    return None


# -- machines of the library ----------------------------------------------------------------------


class _ByName(partial[Any]):
    """A trigger as a method of a model: guards and emitters would not see an argument without a name."""

    machine: str
    named: str
    places: int

    def __call__(self, /, *args: Any, **info: Any) -> Any:
        if len(args) > self.places:
            trigger = args[0] if self.places else self.named
            raise TypeError(f"{self.machine}{trigger} takes its information by name")
        return super().__call__(*args, **info)


class _Keeping:
    """A machine that lets a model which has a state of its own keep it."""

    #: old names of states, with the present ones
    renamed: Mapping[Any, Any] = {}

    def _checked_assignment(self, model: Any, name: str, func: Any) -> None:
        machine: Any = self
        if name in machine.events or name == "trigger":
            func = _ByName(func.func, *func.args, **func.keywords)
            func.machine, func.named = machine.name, name
            func.places = int(name == "trigger")  # of the name itself
        super()._checked_assignment(model, name, func)  # type: ignore[misc]

    def add_model(self, model: Any, initial: Any = None, **options: Any) -> None:
        """Register models. One that has a state keeps it, unless ``initial`` is given.

        Raises ``UnknownState`` for a state that the machine does not know; then none is registered.
        """
        machine: Any = self
        add = super().add_model  # type: ignore[misc]
        if initial is not None:
            add(model, initial, **options)
            return
        found = [(_state_of(machine, each), each) for each in listify(model)]
        for state, models in groupby(found, key=lambda each: each[0]):
            add([each for _, each in models], state, **options)


def _state_of(machine: Any, model: Any) -> Any:
    if model is machine.self_literal:
        return None
    state = getattr(model, machine.model_attribute, None)
    if state is None or state == "":
        return None
    states = [each.value for each in machine.states.values()]
    for each in listify(state):  # several where states are parallel
        try:
            machine.get_state(each)
        except ValueError:
            key, name = getattr(model, "key", type(model).__name__), machine.name.removesuffix(": ")
            return present_state(name, key, state, states, machine.renamed)
    return state


@cached
def keeping(machine_cls: type[Machine]) -> type[Machine]:
    """This class of machines, with models that keep a state which they have already."""
    if issubclass(machine_cls, _Keeping):
        return machine_cls

    def reduce(self: Any, protocol: Any) -> Any:
        # a pickle names the class that can be imported
        return _blank, (machine_cls,), self.__getstate__()

    about = {name: getattr(machine_cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    about["__reduce_ex__"] = reduce
    meta: Any = type(machine_cls)
    made: type[Machine] = meta(machine_cls.__name__, (_Keeping, machine_cls), about)
    return made


def _blank(machine_cls: type[Machine]) -> Machine:
    cls = keeping(machine_cls)
    return cls.__new__(cls)
