"""The library's steps of a trigger, each in one place and without the lines that its logger drops.

``keeps`` and ``is_plain`` tell where they may replace the library's own: where no subclass and no attribute of
an object overrides one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, islice
from types import MethodType
from typing import Any, Final, NamedTuple

from transitions import EventData, Machine, State
from transitions.core import _LOGGER, Condition, Transition

from quadriga.fsm.fast.tracking import GIVEN, FastState, FastTransition, marker_of

#: transitions 0.9.0 has no final states, and its events do not catch errors that are no Exception
HAS_FINAL: Final = hasattr(Machine, "on_final")
CAUGHT: Final = BaseException if HAS_FINAL else Exception

INFO: Final = logging.INFO
#: the logger's cached answers; ``logging`` empties the cache whenever a level changes
levels: Final[dict[int, bool]] = getattr(_LOGGER, "_cache", {})
level: Final = levels.get

MACHINE: Final = frozenset(
    "_process has_queue get_model_state get_state set_state callbacks callback resolve_callable "
    "get_triggers __getattribute__ __setattr__ prepare_event before_state_change after_state_change "
    "finalize_event on_exception on_final".split()
)
#: read from ``machine.__dict__``: the machine's own ``__getattr__`` makes other reading slow
_ATTRIBUTES: Final = frozenset(
    "model_attribute send_event states _transition_queue _prepare_event _before_state_change "
    "_after_state_change _finalize_event".split()
    + ["_on_final"] * HAS_FINAL
)
EVENT: Final = frozenset("trigger _trigger _process _is_valid_source __getattribute__".split())
TRANSITION: Final = frozenset("execute _eval_conditions _change_state __getattribute__".split())
STATE: Final = frozenset("name value __getattribute__".split())
CALLING: Final = frozenset("enter exit".split())
SETTERS: Final = frozenset("__setattr__ __delattr__".split())
CONDITION: Final = frozenset("check __getattribute__".split())

_EXECUTE: Final = Transition.execute
_ENTER: Final = State.enter
_EXIT: Final = State.exit
_CHECK: Final = Condition.check


def _keeps(cls: Any, base: Any, names: frozenset[str]) -> bool:
    """Return whether the class has these attributes from the base class, unchanged."""
    return all(_lookup(cls, name) is _lookup(base, name) for name in names)


keeps: Final[Callable[[Any, Any, frozenset[str]], bool]] = lru_cache(maxsize=1024)(_keeps)


def _lookup(cls: Any, name: str) -> Any:
    return next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), None)


def is_plain(machine: Any) -> bool:
    """Return whether the machine executes all steps of a trigger as ``FastMachine`` does."""
    marker = marker_of(machine)
    if marker.plain is None:
        own, cls = machine.__dict__, type(machine)
        marker.plain = (
            keeps(cls, machine._fast_class, MACHINE)
            and keeps(cls, machine._fast_class, _ATTRIBUTES)
            and MACHINE.isdisjoint(own)
            and own.keys() >= _ATTRIBUTES
        )
    return marker.plain


def unpatched() -> bool:
    """Return whether states and transitions have the methods of the library, as they were when it was imported."""
    methods = FastState.enter, FastState.exit, FastTransition.execute
    return methods == (_ENTER, _EXIT, _EXECUTE)


def noisy() -> bool:
    """Return whether the library's logger prints the steps of a trigger."""
    return level(INFO) is not False and _LOGGER.isEnabledFor(INFO)


def event_data(
    state: Any, event: Any, machine: Any, model: Any, args: Any, kwargs: Any, transition: Any = None
) -> EventData:
    """Return what ``EventData()`` creates, in half of the time."""
    data = _blank(EventData)
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
    state: Any, event: Any, machine: Any, model: Any, args: Any, kwargs: Any, transition: Any = None
) -> EventData:
    data = EventData(state, event, machine, model, args, kwargs)
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


def call(machine: Any, callbacks: Iterable[Any], data: Any) -> None:
    """Do what ``Machine.callbacks`` does."""
    own = machine.__dict__
    for func in callbacks:
        if type(func) is str or isinstance(func, str):
            try:
                func = found = getattr(data.model, func)
                if type(found) is not MethodType and not callable(found):
                    func = constantly(found)
            except AttributeError:
                func = imported(func)
        if own["send_event"]:
            func(data)
        else:
            func(*data.args, **data.kwargs)


def check(machine: Any, condition: Any, data: Any) -> Any:
    """Do what ``Condition.check`` does."""
    if getattr(condition.check, "__func__", None) is not _CHECK:
        return condition.check(data)
    func = condition.func
    if type(func) is str or isinstance(func, str):
        try:
            func = found = getattr(data.model, func)
            if type(found) is not MethodType and not callable(found):
                func = constantly(found)
        except AttributeError:
            func = imported(func)
    if machine.__dict__["send_event"]:
        return func(data) == condition.target
    return func(*data.args, **data.kwargs) == condition.target


def try_each(machine: Any, transitions: Iterator[Any], data: Any) -> None:
    """Do what the loop of ``Event._process`` does."""
    for transition in transitions:
        data.transition = transition
        if _execute(machine, transition, data):
            data.result = True
            return


def _execute(machine: Any, transition: Any, data: Any) -> Any:
    """Do what ``Transition.execute`` does."""
    if getattr(transition.execute, "__func__", None) is not _EXECUTE or not keeps(
        type(transition), Transition, TRANSITION
    ):
        return transition.execute(data)
    if transition.prepare:
        call(machine, transition.prepare, data)
    return may_perform(machine, transition, data)


def may_perform(machine: Any, transition: Any, data: Any) -> bool:
    """Do the part of ``Transition.execute`` that follows the preparation."""
    for condition in transition.conditions:
        if not check(machine, condition, data):
            return False
    perform(machine, transition, data)
    return True


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


def resume(rest: Rest, data: Any, agrees: Any = True) -> None:
    """Do the rest of a trigger step by step, because something has changed."""
    stage, machine, event, transition, dest, lists, position, found, tried = rest
    if stage == "conditions":
        left = islice(lists[0], position, None)
        agrees = agrees and all(check(machine, each, data) for each in left)
    elif lists:
        call(machine, chain(islice(lists[0], position, None), *lists[1:]), data)
    if stage == "prepare_event":
        try_each(machine, iter(event.transitions[data.state.name]), data)
        return
    if stage == "prepare":
        agrees = all(check(machine, each, data) for each in transition.conditions)
    if not agrees:
        try_each(machine, islice(found, tried, None), data)
        return
    perform(machine, transition, data, stage, dest)
    data.result = True


def ask_on(rest: Rest, data: Any, agrees: Any) -> bool:
    """Answer the rest of ``may_...`` step by step, because something has changed."""
    begun = None if rest.stage == "asked" else partial(_rest_of_question, rest, agrees)
    return ask_each(rest.machine, islice(rest.found, rest.tried, None), data, begun)


def _rest_of_question(rest: Rest, agrees: Any, machine: Any, data: Any) -> bool:
    stage, _, _, transition, _, lists, position, _, _ = rest
    if stage == "conditions":
        left = islice(lists[0], position, None)
        return agrees and all(check(machine, each, data) for each in left)
    call(machine, chain(islice(lists[0], position, None), *lists[1:]), data)
    return all(check(machine, each, data) for each in transition.conditions)


def _question(machine: Any, data: Any) -> bool:
    call(machine, machine.prepare_event, data)
    call(machine, data.transition.prepare, data)
    return all(check(machine, condition, data) for condition in data.transition.conditions)


def ask_each(machine: Any, transitions: Iterator[Any], data: Any, begun: Any = None) -> bool:
    """Do what the loop of ``Machine._can_trigger`` does, after a question that has begun."""
    for transition in chain((None,) if begun else (), transitions):
        if transition is not None:
            if transition.dest is not None:
                try:
                    machine.get_state(transition.dest)
                except ValueError:
                    continue
            data.transition, begun = transition, _question
        try:
            if begun(machine, data):
                return True
        except BaseException as error:
            data.error = error
            if not machine.on_exception:
                raise
            call(machine, machine.on_exception, data)
    return False


#: how far a transition has come
_STAGES: Final = {
    None: 0, "prepare": 0, "conditions": 0, "before": 1, "on_exit": 2, "on_enter": 3, "on_final": 4, "after": 5
}  # fmt: skip


def perform(
    machine: Any, transition: Any, data: Any, stage: str | None = None, dest: Any = None
) -> None:
    """Do the part of ``Transition.execute`` that follows the conditions, or what is left of it."""
    done = _STAGES[stage]
    own = machine.__dict__
    if done < 1 and (own["_before_state_change"] or transition.before):
        call(machine, chain(own["_before_state_change"], transition.before), data)
    if (transition.dest if done < 2 else dest is not None) and done < 4:
        if done < 2:
            leave(machine, machine.get_state(transition.source), data)
        if done < 3:
            _set_state(machine, own, transition.dest, data)
            dest = machine.get_state(transition.dest)
            enter(machine, dest, data)
        if HAS_FINAL and dest.final:
            call(machine, machine.on_final, data)
    if done < 5 and (transition.after or own["_after_state_change"]):
        call(machine, chain(transition.after, own["_after_state_change"]), data)


def _set_state(machine: Any, own: Any, name: Any, data: Any) -> None:
    """Do what ``Machine.set_state`` and ``EventData.update`` do."""
    states, model, attribute = own["states"], data.model, own["model_attribute"]
    dest = states.get(name) if type(name) is str else None
    if dest is None or "set_state" in own or "get_state" in own or isinstance(model, GIVEN):
        machine.set_state(name, model)
    else:
        setattr(model, attribute, dest.value)
    reached = getattr(model, attribute)
    if type(reached) is str and reached in states and "get_state" not in own:
        data.state = states[reached]
    else:
        data.update(reached)


def leave(machine: Any, state: Any, data: Any) -> None:
    """Do what ``State.exit`` does."""
    if getattr(state.exit, "__func__", None) is _EXIT:
        call(machine, state.on_exit, data)
    else:
        state.exit(data)


def enter(machine: Any, state: Any, data: Any) -> None:
    """Do what ``State.enter`` does."""
    if getattr(state.enter, "__func__", None) is _ENTER:
        call(machine, state.on_enter, data)
    else:
        state.enter(data)


def settle(machine: Any, data: Any) -> None:
    """Do the last part of ``Event._trigger``: its errors are only logged."""
    try:
        call(machine, machine.__dict__["_finalize_event"], data)
    except CAUGHT as error:
        _LOGGER.error(
            "%sWhile executing finalize callbacks a %s occurred: %s.",
            machine.name,
            type(error).__name__,
            error,
        )
