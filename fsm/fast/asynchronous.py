"""``FastAsyncMachine``: the library's ``AsyncMachine`` without what it does for callbacks that do not exist.

For each list of callbacks, empty or not, the library makes two coroutines and a future, and for each callback a task
that begins in the next turn of the event loop. Here an empty list costs nothing. A callback still has a task with a
context of its own; it begins at once if nothing else would have had a turn before it.

Everything is read when the library would read it, so no change of a machine has to be followed.
``quadriga.fsm`` does not import this module, because it imports the extensions of the library.
See D324.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError, Task, current_task, gather, get_running_loop
from collections import defaultdict
from collections.abc import Generator, Iterable
from functools import partial
from inspect import isawaitable
from sys import exception
from threading import get_ident
from types import CoroutineType, coroutine
from typing import Any, Final

from transitions.extensions.asyncio import (
    _LOGGER,
    AsyncCondition,
    AsyncEvent,
    AsyncEventData,
    AsyncMachine,
    AsyncState,
    AsyncTransition,
    HierarchicalAsyncMachine,
)

from quadriga.fsm.fast.events import FastEvent, key_of
from quadriga.fsm.fast.machine import FastMachine
from quadriga.fsm.fast.plans import choices_of
from quadriga.fsm.fast.steps import EVENT, INFO, event_data, is_plain, keeps, resolved, sets_plainly
from quadriga.fsm.fast.tracking import (
    FastCondition,
    FastState,
    FastTransition,
    Marker,
    follow,
    is_silent,
    marker_of,
)

#: before 0.9.3 the library took other steps
_HAS_STEPS: Final = hasattr(AsyncMachine, "cancel_running_transitions")
#: before Python 3.12 a task cannot begin at once
_CAN_BEGIN: Final = sys.version_info >= (3, 12)
#: of any type, as its argument ``eager_start`` came with Python 3.12
_TASK: Final[Any] = Task
#: how many tasks may begin within each other: the stack grows with each
_DEEPEST: Final = 8
#: so many lists are called without a turn of the event loop, since input and timers wait meanwhile
_PATIENCE: Final = 16

#: in each thread: how many tasks have begun within each other, with ``_DEEPEST`` for each that has others to begin after
#: it; and how many lists have been called since the last turn of the event loop
_here: Final[defaultdict[int, list[int]]] = defaultdict(lambda: [0, 0])
_GATHERING: Final = frozenset({"await_all"})
_NOW: Final = (True,)
_LEVELS: Final[dict[int, bool]] = getattr(_LOGGER, "_cache", {})


@coroutine
def _turns(ready: Any, number: int) -> Generator[None, None, BaseException | None]:
    """Let others have their turns while some are ready; return a cancellation that came meanwhile."""
    cancelled = None
    for _ in range(number):
        if ready:
            try:
                yield
            except CancelledError as error:
                cancelled = error
    return cancelled


def _has_failed(task: Any) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _gather(made: list[Any]) -> Any:
    """Do what ``asyncio.gather`` does with coroutines, in the same turns of the event loop, but in none where nothing
    else is ready."""
    loop: Any = get_running_loop()
    # To call get_task_factory() takes longer than all the questions below.
    ready, factory = getattr(loop, "_ready", None), getattr(loop, "_task_factory", _NOW)
    here = _here[get_ident()]
    if (
        ready is None
        or (ready and len(made) > 1)  # others would see a difference if one fails and another waits
        or here[0] >= _DEEPEST
        or exception() is not None  # a task that began now would see it
        or factory is not None
        or not _CAN_BEGIN
    ):
        return await gather(*made)
    here[1] += 1
    if ready or here[1] > _PATIENCE:
        here[1] = 0
        cancelled = await _turns(_NOW, 1)
        if cancelled is not None:  # before the tasks would have begun
            for each in made:
                each.close()
            await _turns(ready, 2)
            raise cancelled
    if len(made) == 1:
        here[0] += 1
        try:
            ended: Any = _TASK(made[0], loop=loop, eager_start=True)
        finally:
            here[0] -= 1
        if not ended.done():
            return await gather(ended)
    else:
        ended = gather(*_begin(made, loop, here))
        if not ended.done():  # it is if one has failed
            return await ended
    if ready:
        cancelled = await _turns(ready, 2)
        if cancelled is not None:
            ended.cancelled() or ended.exception()  # it has been seen
            raise cancelled
    return [ended.result()] if len(made) == 1 else ended.result()


def _begin(made: list[Any], loop: Any, here: list[int]) -> list[Any]:
    """Begin a task for each coroutine; the last one has none to begin after it."""
    tasks: list[Any] = []
    for each in made:
        deeper = 1 if each is made[-1] and not any(map(_has_failed, tasks)) else _DEEPEST
        here[0] += deeper
        try:
            tasks.append(_TASK(each, loop=loop, eager_start=True))
        finally:
            here[0] -= deeper
    return tasks


async def _call(own: Any, func: Any, data: Any) -> Any:
    """Do what ``AsyncMachine.callback`` does; return what the callback returns."""
    if isinstance(func, str):
        func = resolved(func, data)
    found = func(data) if own["send_event"] else func(*data.args, **data.kwargs)
    kind = type(found)
    if kind is CoroutineType or (found is not None and kind is not bool and isawaitable(found)):
        found = await found
    return found


async def _check(own: Any, condition: Any, data: Any) -> Any:
    """Do what ``AsyncCondition.check`` does."""
    if type(condition) is not FastAsyncCondition or "check" in condition.__dict__:
        return await condition.check(data)
    return await _call(own, condition.func, data) == condition.target


SETS: Final = FastMachine.__setattr__


class _Known:
    """What is known of a trigger in a state, until the machine changes: every part does what the library's does."""

    __slots__ = ("asked", "event", "machine", "marker", "now", "own", "quiet", "state", "value")

    def __init__(self, event: Any, machine: Any, marker: Marker, value: Any, about: Any) -> None:
        self.event, self.machine, self.own = event, machine, machine.__dict__
        self.marker, self.now = marker, marker.now
        self.value = value  # its id is a key
        self.state, _, choices = about
        #: what callbacks of ``may_...`` are given as the trigger, as of the other machines' plans
        self.asked = AsyncEvent(event.name, machine)
        own = self.own
        names = "_prepare_event _before_state_change _after_state_change _finalize_event _on_final".split()
        (each, _, origin, dest, _), *_ = choices
        lists = [*map(own.get, names), each.conditions, each.prepare, each.before, each.after]
        lists += [origin.on_exit, dest.on_enter] if dest else []
        follow(marker, *lists)
        #: the only state that may be entered, if nothing is called on the way
        self.quiet = dest if all(map(is_silent, lists)) else None

    async def run(self, data: Any, mine: Any = None) -> Any:
        """Do what ``AsyncEvent._trigger`` does."""
        machine, own = self.machine, self.own
        data.state = self.state
        try:
            if own["_prepare_event"]:
                await self.calls(own["_prepare_event"], data)
            for transition in self.event.transitions[data.state.name]:
                data.transition = transition
                if self.marker.now is self.now:
                    data.result = await self.execute(transition, data, mine)
                else:
                    data.result = await transition.execute(data)
                if data.result:
                    break
        except BaseException as error:
            _LOGGER.error(
                "%sException was raised while processing the trigger '%s': %s",
                machine.name,
                data.event.name,
                repr(error),
            )
            data.error = error
            if not own["_on_exception"]:
                raise
            await self.calls(own["_on_exception"], data)
        finally:
            if own["_finalize_event"]:
                try:
                    await self.calls(own["_finalize_event"], data)
                except BaseException as error:
                    _LOGGER.error(
                        "%sWhile executing finalize callbacks a %s occurred: %s.",
                        machine.name,
                        type(error).__name__,
                        error,
                    )
        return data.result

    async def execute(self, transition: Any, data: Any, mine: Any) -> bool:
        """Do what ``AsyncTransition.execute`` does."""
        machine, own, model = self.machine, self.own, data.model
        if transition.prepare:
            await self.calls(transition.prepare, data)
        conditions = transition.conditions
        if conditions and not all(await _gather([_check(own, each, data) for each in conditions])):
            return False
        if mine is None or len(mine) > 1:
            await machine.cancel_running_transitions(model, data.event.name)
        if own["_before_state_change"]:
            await self.calls(own["_before_state_change"], data)
        if transition.before:
            await self.calls(transition.before, data)
        if transition.dest:
            if self.marker.now is not self.now:
                await transition._change_state(data)
            else:
                origin = own["states"][transition.source]
                if origin.on_exit:
                    await self.calls(origin.on_exit, data)
                attribute = own["model_attribute"]
                if self.marker.now is self.now and sets_plainly(type(model), attribute, SETS):
                    data.state = dest = own["states"][transition.dest]
                    setattr(model, attribute, dest.value)
                else:
                    machine.set_state(transition.dest, model)
                    data.state = machine.get_state(getattr(model, attribute))
                    dest = machine.get_state(transition.dest)
                if self.marker.now is not self.now:
                    await dest.enter(data)
                elif dest.on_enter:
                    await self.calls(dest.on_enter, data)
                if dest.final and own["_on_final"]:
                    await self.calls(own["_on_final"], data)
        if transition.after:
            await self.calls(transition.after, data)
        if own["_after_state_change"]:
            await self.calls(own["_after_state_change"], data)
        return True

    def calls(self, funcs: Any, data: Any) -> Any:
        """Do what ``AsyncMachine.callbacks`` does."""
        if self.marker.now is self.now or is_plain(self.machine):
            own = self.own
            return _gather([_call(own, func, data) for func in funcs])
        return self.machine.callbacks(funcs, data)


class FastAsyncState(FastState, AsyncState):
    """A state whose changes are noticed."""


class FastAsyncCondition(FastCondition, AsyncCondition):
    """A condition whose changes are noticed."""


class FastAsyncTransition(FastTransition, AsyncTransition):
    """A transition whose changes are noticed."""

    condition_cls = FastAsyncCondition


class FastAsyncEvent(FastEvent, AsyncEvent):
    """A trigger that goes through no empty list."""

    async def trigger(self, model: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        known = self._known(model)
        machine: Any = self.machine
        if known is None:
            return await AsyncEvent.trigger(self, model, *args, **kwargs)
        own, tasks, key = known.own, machine.async_tasks, id(model)
        if known.quiet and key not in tasks:
            queue = own["_transition_queue"]
            if own["_queued"] == "model":
                queue = own["_transition_queue_dict"].get(key, True)
            if not queue and sets_plainly(type(model), own["model_attribute"], SETS):
                setattr(model, own["model_attribute"], known.quiet.value)
                return True
        data = event_data(None, self, machine, model, args, kwargs)
        context, queued = machine.current_context, own["_queued"]
        if context.get() is not None or (own["_transition_queue"] and not queued):
            if queued or own["_transition_queue"]:
                return await machine.process_context(partial(self._trigger, data), model)
            return await known.run(data)
        task = current_task()
        token = context.set(task)
        mine = tasks.setdefault(key, [])
        mine.append(task)
        try:
            return await (self._enter(known, data, mine) if queued else known.run(data, mine))
        except CancelledError:
            return False
        finally:
            mine.remove(task)
            context.reset(token)
            if not mine:
                del tasks[key]

    async def _enter(self, known: _Known, data: Any, mine: Any) -> bool:
        """Do what ``AsyncMachine._process_async`` does for a machine with a queue."""
        queues, key = known.own["_transition_queue_dict"], id(data.model)
        queues[key].append(partial(self._trigger, data))
        if len(queues[key]) > 1:
            return True
        run = known.run(data, mine)
        while True:
            try:
                await run
            except BaseException:
                queues[key].clear()
                raise
            try:
                queues[key].popleft()
            except KeyError:  # the model is gone
                return True
            if not queues[key]:
                return True
            run = queues[key][0]()

    async def _trigger(self, event_data: Any) -> Any:  # type: ignore[override]
        """Process a trigger from a queue, or where the library's steps lead here."""
        known = self._known(event_data.model)
        if known is None:
            return await AsyncEvent._trigger(self, event_data)
        return await known.run(event_data)

    def _known(self, model: Any) -> Any:
        """Return what is known of this trigger in the state of the model; ``None`` if the library's steps run."""
        machine: Any = self.machine
        if _LEVELS.get(INFO) is not False and _LOGGER.isEnabledFor(INFO):
            return None
        try:
            value = getattr(model, machine.__dict__["model_attribute"])
            return self._plans[value if type(value) is str else id(value)]
        except (AttributeError, KeyError):  # the library encounters it too, but not here
            pass
        value = getattr(model, machine.model_attribute, None)
        marker = marker_of(machine)
        plain = _HAS_STEPS and is_plain(machine) and keeps(type(self), FastAsyncEvent, EVENT)
        if not plain or not EVENT.isdisjoint(self.__dict__) or "model_graphs" in machine.__dict__:
            return None
        about = choices_of(self, machine, marker, value, asks=False)
        if about is None or not about[2] or not all(choice[4] for choice in about[2]):
            return None
        known = _Known(self, machine, marker, value, about)
        self._keep(self._plans, key_of(value), known)
        return known

    def plan_for(self, value: Any, kind: Any = None) -> None:
        """There is no generated plan."""


class _Calls:
    """Callbacks of both machines."""

    @staticmethod
    async def await_all(callables: Iterable[Any]) -> list[Any]:
        made = [each() for each in callables]
        fits = all(type(each) is CoroutineType for each in made)
        return await (_gather(made) if fits else gather(*made)) if made else made

    async def callbacks(self, funcs: Any, event_data: Any) -> None:
        if funcs or "await_all" in self.__dict__ or not keeps(type(self), _Calls, _GATHERING):
            call = event_data.machine.callback
            await self.await_all([partial(call, func, event_data) for func in funcs])


class FastAsyncMachine(_Calls, AsyncMachine, FastMachine):  # type: ignore[misc]
    """A drop-in for ``transitions.extensions.asyncio.AsyncMachine``."""

    state_cls = FastAsyncState  # type: ignore[assignment]
    transition_cls = FastAsyncTransition
    event_cls = FastAsyncEvent
    shares_methods = False

    async def _can_trigger(self, model: Any, trigger: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        event: Any = self.events.get(trigger)
        if type(event) is not FastAsyncEvent or (known := event._known(model)) is None:
            return await super()._can_trigger(model, trigger, *args, **kwargs)  # type: ignore[misc]
        own: Any = known.own
        data: Any = None
        for transition in event.transitions[known.state.name]:
            if transition.dest is not None and transition.dest not in own["states"]:
                continue
            if not (own["_prepare_event"] or transition.prepare or transition.conditions):
                return True
            if data is None:
                data = event_data(
                    known.state, known.asked, self, model, args, kwargs, None, AsyncEventData
                )
            data.transition = transition
            try:
                if own["_prepare_event"]:
                    await known.calls(own["_prepare_event"], data)
                if transition.prepare:
                    await known.calls(transition.prepare, data)
                asks = [_check(own, each, data) for each in transition.conditions]
                if not asks or all(await _gather(asks)):
                    return True
            except BaseException as error:
                data.error = error
                if not own["_on_exception"]:
                    raise
                await known.calls(own["_on_exception"], data)
        return False


FastAsyncMachine._fast_class = FastAsyncMachine


class FastHierarchicalAsyncMachine(_Calls, HierarchicalAsyncMachine):  # type: ignore[misc]
    """A drop-in for ``transitions.extensions.asyncio.HierarchicalAsyncMachine``."""
