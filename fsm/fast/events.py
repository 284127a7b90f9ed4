"""The trigger of a fast machine: what remains of the library's steps where it is known what they call.

For each trigger and state a plan holds the transitions with their two states, and whether anything has to be
called at all. It is valid as long as ``clock.now`` is the same (``tracking``). The callbacks are not part of
it: their lists are read at the moment at which the library reads them. A callback may change anything; after
such a change the rest of the trigger is executed step by step (``steps``).

The library's own code runs where a subclass replaces one of its steps, and where its logger prints the steps.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from types import MethodType
from typing import Any, Final

from transitions import EventData
from transitions.core import Event

from quadriga.fsm.fast.plans import Plan, after, make_plan
from quadriga.fsm.fast.steps import (
    CALLED_BEFORE,
    CAUGHT,
    EVENT,
    HAS_FINAL,
    INFO,
    LEFT,
    call,
    constantly,
    enter,
    event_data,
    imported,
    is_plain,
    keeps,
    leave,
    level,
    may_perform,
    noisy,
    perform,
    settle,
    try_each,
)
from quadriga.fsm.fast.tracking import (
    Reporting,
    Transitions,
    clock,
    with_library_init,
)

_set: Final = object.__setattr__
_blank: Final = EventData.__new__
_NO_PLAN: Final[Plan] = (None, type, None, None, None)


class FastEvent(Reporting, Event):
    """All transitions of a trigger, and the plans made from them."""

    _plans: dict[Any, Plan]
    #: plans of a machine with a queue, which must not be followed past it
    _queued_plans: dict[Any, Plan]
    #: the attributes of the machine
    _owns: dict[str, Any]

    def __init__(self, name: str, machine: Any) -> None:
        with_library_init(self, Event, name, machine)
        self.__dict__.update(transitions=Transitions(), _plans={}, _queued_plans={})
        self.__dict__["_owns"] = machine.__dict__

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "machine":
            self.__dict__["_owns"] = value.__dict__

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_plans": {}, "_queued_plans": {}}
        del state["_owns"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _owns=state["machine"].__dict__)

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> bool:
        # ``method`` does the same: a call from there to here would take half as long again
        machine = self.machine
        try:
            attribute = self._owns["model_attribute"]
            value = model.state if attribute == "state" else getattr(model, attribute)
            now, kind, step, new, rest = self._plans.get(value, _NO_PLAN)
        except (AttributeError, TypeError):  # the library encounters it too, but not here
            now, kind, step, new, rest = _NO_PLAN
            value = None
        if now is not clock.now or type(value) is not kind or level(INFO) is not False:
            return self._trigger_unplanned(model, args, kwargs)
        if step is None:
            try:
                if new is not None:
                    if model is machine:  # its __setattr__ looks only at other names
                        _set(model, attribute, new)
                        reached = getattr(model, attribute)
                    elif attribute == "state":
                        model.state = new
                        reached = model.state
                    else:
                        setattr(model, attribute, new)
                        reached = getattr(model, attribute)
                    if reached is not new:
                        machine.get_state(reached)
                return True
            except BaseException as error:
                return self._fail_silently(model, args, kwargs, rest, error)
        return step(self, machine, model, args, kwargs, rest)  # type: ignore[no-any-return]

    def method(self) -> Any:
        """Return ``trigger`` as a method of models."""
        event, machine, owns = self, self.machine, self._owns
        plans, unplanned = self._plans, self._trigger_unplanned

        def trigger(model: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                attribute = owns["model_attribute"]
                value = model.state if attribute == "state" else getattr(model, attribute)
                now, kind, step, new, rest = plans.get(value, _NO_PLAN)
            except (AttributeError, TypeError):
                now, kind, step, new, rest = _NO_PLAN
                value = None
            if now is not clock.now or type(value) is not kind or level(INFO) is not False:
                return unplanned(model, args, kwargs)
            if step is None:
                try:
                    if new is not None:
                        if attribute == "state":
                            model.state = new
                            reached = model.state
                        else:
                            setattr(model, attribute, new)
                            reached = getattr(model, attribute)
                        if reached is not new:
                            machine.get_state(reached)
                    return True
                except BaseException as error:
                    return event._fail_silently(model, args, kwargs, rest, error)
            return step(event, machine, model, args, kwargs, rest)

        return trigger

    def _trigger_unplanned(self, model: Any, args: Any, kwargs: Any) -> bool:
        machine: Any = self.machine
        if noisy() or not is_plain(machine) or not self._is_plain():
            return super().trigger(model, *args, **kwargs)
        if machine._queued or machine._transition_queue:
            if machine._queued:  # for the next trigger
                self._plan_for(machine, getattr(model, machine.model_attribute, ""), self._plans)
            return super().trigger(model, *args, **kwargs)
        self._plan_for(machine, getattr(model, machine.model_attribute), self._plans)
        return self._go_through(machine, model, args, kwargs, None)

    def _enqueue(self, machine: Any, model: Any, args: Any, kwargs: Any, rest: Any) -> bool:
        """Do what ``Machine._process`` does for a machine with a queue."""
        owns = self._owns
        data = event_data(None, self, machine, model, args, kwargs)
        owns["_transition_queue"].append(partial(self._trigger, data))
        if len(owns["_transition_queue"]) > 1:
            return True
        try:
            while owns["_transition_queue"]:
                owns["_transition_queue"][0]()
                owns["_transition_queue"].popleft()
        except BaseException:
            owns["_transition_queue"].clear()
            raise
        return True

    def _trigger(self, data: EventData) -> bool:
        """Process a trigger from the queue of a machine."""
        machine: Any = self.machine
        try:
            value = getattr(data.model, self._owns["model_attribute"])
            plan = self._queued_plans.get(value, _NO_PLAN)
            good = plan[0] is clock.now and plan[1] is type(value) and level(INFO) is False
        except (AttributeError, TypeError):
            good = False
        if good:
            return plan[2](self, machine, None, None, None, plan[4], data)  # type: ignore[no-any-return]
        if noisy() or not (is_plain(machine) and self._is_plain()):
            return super()._trigger(data)
        self._plan_for(machine, getattr(data.model, machine.model_attribute), self._queued_plans)
        return self._go_through(machine, None, None, None, None, data)

    def _is_plain(self) -> bool:
        return keeps(type(self), FastEvent, EVENT) and EVENT.isdisjoint(self.__dict__)

    # -- plans -------------------------------------------------------------------------------

    def _plan_for(self, machine: Any, value: Any, plans: dict[Any, Plan]) -> Plan | None:
        try:
            plan = plans.get(value)
        except TypeError:  # no state is unhashable; the library reports the error
            return None
        if plan is None or plan[0] is not clock.now or plan[1] is not type(value):
            if plans is self._plans and machine._queued:
                plan = (clock.now, type(value), FastEvent._enqueue, None, None)
            else:
                plan = make_plan(self, machine, value, plans is self._plans)
            plans[value] = plan
        return plan

    # -- the steps of a trigger ---------------------------------------------------------------

    def _ask(self, machine: Any, model: Any, args: Any, kwargs: Any, rest: Any) -> bool:
        """Follow a plan that calls nothing but conditions."""
        owns = self._owns
        now, source, found, choices = rest
        data: Any = None
        transition: Any = None
        try:
            for transition, conditions, dest in choices:
                if data is not None:
                    data.transition = transition
                agrees = True
                for condition in conditions:
                    func = condition.func
                    if type(func) is str or isinstance(func, str):
                        try:
                            func = named = getattr(model if data is None else data.model, func)
                            if type(named) is not MethodType and not callable(named):
                                func = constantly(named)
                        except AttributeError:
                            func = imported(func)
                    if owns["send_event"]:
                        if data is None:
                            data = _blank(EventData)
                            data.state = source
                            data.event = self
                            data.machine = machine
                            data.model = model
                            data.args = args
                            data.kwargs = kwargs
                            data.transition = transition
                            data.error = None
                            data.result = False
                        answer = func(data)
                    elif data is None:
                        answer = func(*args, **kwargs)
                    else:
                        answer = func(*data.args, **data.kwargs)
                    if answer is condition.target or answer == condition.target:
                        continue
                    agrees = False
                    break
                if clock.now is not now:  # a condition has changed something
                    if data is None:
                        data = event_data(source, self, machine, model, args, kwargs, transition)
                    if agrees:
                        perform(machine, transition, data)
                        data.result = True
                    else:
                        try_each(machine, after(transition, choices, found), data)
                    return self._finish(data)
                if agrees:
                    if dest is not None:
                        target = model if data is None else data.model
                        attribute, new = owns["model_attribute"], dest._name
                        if attribute == "state":
                            target.state = new
                            reached = target.state
                        else:
                            setattr(target, attribute, new)
                            reached = getattr(target, attribute)
                        if reached is not new:
                            machine.get_state(reached)
                    if data is not None:
                        data.state = dest or source
                        data.result = True
                    return True
            return False if data is None else data.result
        except BaseException as error:
            if data is None:
                data = event_data(source, self, machine, model, args, kwargs, transition)
            return self._fail(data, error)

    def _follow(
        self, machine: Any, model: Any, args: Any, kwargs: Any, rest: Any, data: Any = None
    ) -> bool:
        """Follow a plan with callbacks."""
        owns = self._owns
        now, source, found, choices = rest
        if data is None:
            data = _blank(EventData)
            data.state = source
            data.event = self
            data.machine = machine
            data.model = model
            data.args = args
            data.kwargs = kwargs
            data.transition = None
            data.error = None
            data.result = False
        else:
            data.state = source
        try:
            if owns["_prepare_event"]:
                call(machine, owns["_prepare_event"], data)
                if clock.now is not now or data.state is not source:
                    try_each(machine, iter(self.transitions[data.state.name]), data)
                    return self._finish(data)
            for transition, conditions, origin, dest, fixed in choices:
                data.transition = transition
                if transition.prepare:
                    call(machine, transition.prepare, data)
                    if clock.now is not now:
                        if may_perform(machine, transition, data):
                            data.result = True
                        else:
                            try_each(machine, after(transition, choices, found), data)
                        return self._finish(data)
                agrees = True
                for condition in conditions:
                    func = condition.func
                    if type(func) is str or isinstance(func, str):
                        try:
                            func = named = getattr(data.model, func)
                            if type(named) is not MethodType and not callable(named):
                                func = constantly(named)
                        except AttributeError:
                            func = imported(func)
                    if owns["send_event"]:
                        answer = func(data)
                    else:
                        answer = func(*data.args, **data.kwargs)
                    if answer is condition.target or answer == condition.target:
                        continue
                    agrees = False
                    break
                if clock.now is not now:
                    if agrees:
                        perform(machine, transition, data)
                        data.result = True
                    else:
                        try_each(machine, after(transition, choices, found), data)
                    return self._finish(data)
                if not agrees:
                    continue
                if owns["_before_state_change"] or transition.before:
                    call(machine, chain(owns["_before_state_change"], transition.before), data)
                    if clock.now is not now:
                        perform(machine, transition, data, CALLED_BEFORE)
                        data.result = True
                        return self._finish(data)
                if dest is not None:
                    if origin.on_exit or not fixed:
                        leave(machine, origin, data)
                        if clock.now is not now:
                            perform(machine, transition, data, LEFT)
                            data.result = True
                            return self._finish(data)
                    attribute, new = owns["model_attribute"], dest._name
                    setattr(data.model, attribute, new)
                    reached = getattr(data.model, attribute)
                    data.state = dest if reached is new else machine.get_state(reached)
                    if dest.on_enter or not fixed:
                        enter(machine, dest, data)
                    if HAS_FINAL and dest.final:
                        call(machine, owns["_on_final"], data)
                if transition.after or owns["_after_state_change"]:
                    call(machine, chain(transition.after, owns["_after_state_change"]), data)
                data.result = True
                break
        except BaseException as error:
            return self._fail(data, error)
        if owns["_finalize_event"]:
            settle(machine, data)
        return data.result  # type: ignore[no-any-return]

    def _go_through(
        self, machine: Any, model: Any, args: Any, kwargs: Any, rest: Any, data: Any = None
    ) -> bool:
        """Do what ``Event._trigger`` does, without a plan."""
        data = data or event_data(None, self, machine, model, args, kwargs)
        data.state = state = machine.get_model_state(data.model)
        try:
            if self._is_valid_source(state):
                call(machine, machine.prepare_event, data)
                try_each(machine, iter(self.transitions[data.state.name]), data)
        except BaseException as error:
            return self._fail(data, error)
        return self._finish(data)

    def _fail_silently(
        self, model: Any, args: Any, kwargs: Any, rest: Any, error: BaseException
    ) -> bool:
        _, source, found, _ = rest
        data = event_data(source, self, self.machine, model, args, kwargs, found[0])
        return self._fail(data, error)

    def _fail(self, data: Any, error: BaseException) -> bool:
        """Handle an error. Call it where the error is being handled."""
        try:
            if not isinstance(error, CAUGHT):
                raise error
            data.error = error
            if not self.machine.on_exception:
                raise error
            call(self.machine, self.machine.on_exception, data)
        finally:
            settle(self.machine, data)
        return data.result  # type: ignore[no-any-return]

    def _finish(self, data: Any) -> bool:
        if self.machine.finalize_event:
            settle(self.machine, data)
        return data.result  # type: ignore[no-any-return]


FastEvent.__name__ = Event.__name__  # shown by the library's own __repr__
FastEvent.trigger.__qualname__ = Event.trigger.__qualname__  # shown by errors about its arguments
