"""What plans call, and what is left of a trigger where a plan ends early: the library's own code does it.

``keeps`` and ``is_plain`` tell where they may replace the library's own: where no subclass and no attribute of
an object overrides one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from inspect import getattr_static
from itertools import chain, islice
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple, TypeVar

from transitions import EventData, Machine
from transitions.core import _LOGGER

from quadriga.fsm.fast.tracking import LISTS, Reporting, marker_of

#: transitions 0.9.0 has no final states, and its events do not catch errors that are no Exception
HAS_FINAL: Final = hasattr(Machine, "on_final")
CAUGHT: Final = BaseException if HAS_FINAL else Exception

INFO: Final = logging.INFO
#: the logger's cached answers; ``logging`` empties the cache whenever a level changes
levels: Final[dict[int, bool]] = getattr(_LOGGER, "_cache", {})
level: Final = levels.get

MACHINE: Final = frozenset(LISTS).union(
    "_process has_queue get_model_state get_state set_state callbacks callback resolve_callable "
    "get_triggers __getattribute__ __setattr__ process_context _process_async await_all "
    "cancel_running_transitions".split()
)
#: read from ``machine.__dict__``: the machine's own ``__getattr__`` makes other reading slow
ATTRIBUTES: Final = frozenset(f"_{name}" for name in LISTS).union(
    "model_attribute send_event states _transition_queue".split()
)
EVENT: Final = frozenset("trigger _trigger _process _is_valid_source __getattribute__".split())
TRANSITION: Final = frozenset("execute _eval_conditions _change_state __getattribute__".split())
STATE: Final = frozenset("name value __getattribute__".split())
CALLING: Final = frozenset("enter exit".split())
SETTERS: Final = frozenset("__setattr__ __delattr__".split())
CONDITION: Final = frozenset("check __getattribute__".split())


_Function = TypeVar("_Function", bound=Callable[..., Any])


def cached(function: _Function) -> _Function:
    """Keep the answers of a function about classes."""
    return lru_cache(maxsize=1024)(function)  # type: ignore[return-value]  # a class is no Hashable


@cached
def keeps(cls: Any, base: Any, names: frozenset[str]) -> bool:
    """Return whether the class has these attributes from the base class, unchanged."""
    return all(_lookup(cls, name) is _lookup(base, name) for name in names)


def reports(part: Any, base: Any, names: frozenset[str]) -> bool:
    """Return whether the part has these methods from the base class, and would report if that changed."""
    cls = type(part)
    return (
        issubclass(cls, Reporting)
        and keeps(cls, Reporting, SETTERS)
        and keeps(cls, base, names)
        and names.isdisjoint(part.__dict__)
    )


def _lookup(cls: Any, name: str) -> Any:
    return next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), None)


@cached
def sets_plainly(cls: Any, attribute: str, kept: Any) -> bool:
    """Return whether assigning this attribute of a model runs no code of its class but ``kept``, a machine's own."""
    found = getattr_static(cls, attribute, None)
    return (
        cls.__setattr__ in (object.__setattr__, kept)
        and cls.__getattribute__ is object.__getattribute__
        and (not hasattr(type(found), "__set__") or type(found) is MemberDescriptorType)
    )


def is_plain(machine: Any) -> bool:
    """Return whether the machine executes all steps of a trigger as ``FastMachine`` does."""
    marker = marker_of(machine)
    if marker.plain is None:
        own, cls = machine.__dict__, type(machine)
        if "_later" in own:
            _ = machine.states  # it is read
        marker.plain = (
            keeps(cls, machine._fast_class, MACHINE)
            and keeps(cls, machine._fast_class, ATTRIBUTES)
            and MACHINE.isdisjoint(own)
            and own.keys() >= ATTRIBUTES
        )
    return marker.plain


def noisy() -> bool:
    """Return whether the library's logger prints the steps of a trigger."""
    return level(INFO) is not False and _LOGGER.isEnabledFor(INFO)


def event_data(
    state: Any,
    event: Any,
    machine: Any,
    model: Any,
    args: Any,
    kwargs: Any,
    transition: Any = None,
    kind: type[EventData] = EventData,
) -> EventData:
    """Return what ``EventData()``, or another class of its kind, creates, in half of the time."""
    data = _blank(kind)
    data.state = state
    data.event = event
    data.machine = machine
    data.model = model
    data.args = args
    data.kwargs = kwargs
    data.transition = transition
    data.error = None
    data.result = False
    return data


def _constructed(
    state: Any,
    event: Any,
    machine: Any,
    model: Any,
    args: Any,
    kwargs: Any,
    transition: Any = None,
    kind: type[EventData] = EventData,
) -> EventData:
    data = kind(state, event, machine, model, args, kwargs)
    data.transition = transition
    return data


_blank: Final = EventData.__new__
if vars(event_data(*range(6))) != vars(_constructed(*range(6))):  # another version of the library
    event_data = _constructed


def imported(name: str) -> Any:
    """Return what ``Machine.resolve_callable`` imports for a name that the model does not have."""
    try:
        module_name, func_name = name.rsplit(".", 1)
        module = __import__(module_name)
        for part in module_name.split(".")[1:]:
            module = getattr(module, part)
        return getattr(module, func_name)
    except (ImportError, AttributeError, ValueError):
        raise AttributeError(  # noqa: B904  # its context is the library's
            f"Callable with name '{name}' could neither be retrieved from the passed model nor "
            "imported from a module."
        )


def is_callable(model: Any, name: str) -> bool:
    """Return whether the model has this callback, so that an error of the call is not one of its name."""
    try:
        return callable(getattr(model, name))
    except AttributeError:
        return False


def constantly(value: object) -> Any:
    """Return a stand-in for a callback that is an attribute which cannot be called."""
    return lambda *_, **__: value


def resolved(name: str, data: Any) -> Any:
    """Return what ``Machine.resolve_callable`` finds for a name."""
    try:
        found = getattr(data.model, name)
    except AttributeError:
        return imported(name)
    return found if callable(found) else constantly(found)


# -- the rest of a trigger where its plan ends early -------------------------------------------------


class Rest(NamedTuple):
    """What is left of a trigger from a position in a plan."""

    stage: str
    machine: Any
    event: Any
    transition: Any
    #: the state to be entered
    dest: Any
    #: lists that are gone through just now, and the position in the first of them
    lists: tuple[Any, ...]
    position: int
    #: the transitions of the event, and how many of them have been tried
    found: Any
    tried: int


def resume(rest: Rest, data: Any, agrees: Any) -> None:
    """Do the rest of a trigger with the library's own code, because something has changed."""
    stage, machine, event, transition, dest, _, _, found, tried = rest
    if begun(rest, data, agrees):
        finish(stage, machine, transition, dest, data)
        data.result = True
        return
    left = islice(found, tried, None)
    if stage == "prepare_event":
        left = iter(event.transitions[data.state.name])
    for each in left:
        data.transition = each
        if each.execute(data):
            data.result = True
            return


def begun(rest: Any, data: Any, agrees: Any) -> Any:
    """Do the rest of what was begun; return whether the transition is executed."""
    stage, machine, lists, position = rest.stage, rest.machine, rest.lists, rest.position
    if stage == "conditions":
        return agrees and all(each.check(data) for each in islice(lists[0], position, None))
    if lists:
        machine.callbacks(chain(islice(lists[0], position, None), *lists[1:]), data)
    if stage == "prepare":
        return all(each.check(data) for each in rest.transition.conditions)
    return stage != "prepare_event"


def finish(stage: str, machine: Any, transition: Any, dest: Any, data: Any) -> None:
    """Do what follows a stage of a transition."""
    if stage in ("prepare", "conditions"):
        machine.callbacks(machine.before_state_change, data)
        machine.callbacks(transition.before, data)
    if stage in ("prepare", "conditions", "before"):
        if transition.dest:
            transition._change_state(data)
    elif dest is not None:
        if stage == "on_exit":
            machine.set_state(transition.dest, data.model)
            data.update(getattr(data.model, machine.model_attribute))
            dest = machine.get_state(transition.dest)
            dest.enter(data)
        if stage in ("on_exit", "on_enter") and HAS_FINAL and dest.final:
            machine.callbacks(machine.on_final, data)
    if stage != "after":
        machine.callbacks(transition.after, data)
        machine.callbacks(machine.after_state_change, data)


def ask_on(rest: Any, data: Any, agrees: Any) -> bool:
    """Answer the rest of ``may_...`` as the library does, because something has changed."""
    asked = None if rest.stage == "asked" else partial(begun, rest, data, agrees)
    return ask_each(rest.machine, islice(rest.found, rest.tried, None), data, asked)


def _asked(machine: Any, transition: Any, data: Any) -> bool:
    machine.callbacks(machine.prepare_event, data)
    machine.callbacks(transition.prepare, data)
    return all(each.check(data) for each in transition.conditions)


def ask_each(machine: Any, transitions: Iterator[Any], data: Any, ask: Any = None) -> bool:
    """Do what the loop of ``Machine._can_trigger`` does, after a question that has begun."""
    for transition in chain((None,) if ask else (), transitions):
        if transition is not None:
            if transition.dest is not None:
                try:
                    machine.get_state(transition.dest)
                except ValueError:
                    continue
            data.transition, ask = transition, partial(_asked, machine, transition, data)
        try:
            if ask():
                return True
        except BaseException as error:
            data.error = error
            if not machine.on_exception:
                raise
            machine.callbacks(machine.on_exception, data)
    return False


def settle(machine: Any, data: Any) -> None:
    """Do the last part of ``Event._trigger``: its errors are only logged."""
    try:
        machine.callbacks(machine.finalize_event, data)
    except CAUGHT as error:
        _LOGGER.error(
            "%sWhile executing finalize callbacks a %s occurred: %s.",
            machine.name,
            type(error).__name__,
            error,
        )
