"""The trigger of a fast machine: it looks up the plan of its model's state and runs it (``plans``).

A plan is made when a trigger is fired in a state for the second time, because one that is fired once would not earn
it back; it is made the first time if there is one of equal parts (``plans``). The library's own code runs where a
subclass replaces one of its steps, and where its logger prints the steps.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from transitions import EventData
from transitions.core import Event

from quadriga.fsm.fast.plans import LATER, Kind, make_plan
from quadriga.fsm.fast.steps import (
    EVENT,
    INFO,
    event_data,
    is_plain,
    keeps,
    levels,
    noisy,
)
from quadriga.fsm.fast.tracking import (
    Later,
    Reporting,
    Transitions,
    marker_of,
    transitions_of,
)


def key_of(value: Any) -> Any:
    """Return the key of a plan for a state: members of an enumeration are hashed slowly, and some equal strings."""
    return value if type(value) is str else id(value)


class _Running:
    """Stands in a queue for the trigger that runs just now. ``Machine.remove_model`` asks what waits for its model."""

    __slots__ = ("event", "given", "model")  # with a tuple a trigger takes half as long again
    event: Any
    given: tuple[Any, Any]
    model: Any

    @property
    def args(self) -> tuple[Any, ...]:
        return (self,)

    def __call__(self) -> Any:  # it is there twice after ``remove_model``
        event = self.event
        return event._trigger(event_data(None, event, event.machine, self.model, *self.given))


class FastEvent(Reporting, Event):
    """All transitions of a trigger, and the plans made from them."""

    #: whether a plan is made and followed the first time already
    eager = False
    #: plans that take a model, for machines without a queue whose models have their state in ``state``
    #: by ``key_of`` the state; the key in a tuple is there if it was fired without a plan
    _plans: dict[Any, Any]
    #: plans that take an ``EventData``
    _data_plans: dict[Any, Any]
    transitions = Later(transitions_of)  # an attribute of the object as soon as it is read

    def __new__(cls, *args: Any) -> FastEvent:
        new = super().__new__(cls)
        # not a part of its state: models need them before a copy of the event has that
        new.__dict__.update(_plans={}, _data_plans={})
        return new

    def __init__(self, name: str, machine: Any) -> None:
        self.__dict__.update(name=name, machine=machine, transitions=Transitions())

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_plans", "_data_plans", "_later", "subscribers")
        own = {name: value for name, value in self.__dict__.items() if name not in hidden}
        return {**own, "transitions": self.transitions}

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> bool:
        # ``method`` does the same: a call from there to here would take half as long again
        try:
            value = model.state
            plan = self._plans[value if type(value) is str else id(value)]
            if levels[INFO]:
                plan = self._trigger_unplanned
        except (AttributeError, KeyError):  # the library encounters it too, but not here
            plan = self._trigger_unplanned
        return plan(model, args, kwargs)  # type: ignore[no-any-return]

    def method(self) -> Any:
        """Return ``trigger`` as a method of models."""
        plans, unplanned = self._plans, self._trigger_unplanned

        def trigger(model: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                value = model.state
                plan = plans[value if type(value) is str else id(value)]
                if levels[INFO]:
                    plan = unplanned
            except (AttributeError, KeyError):
                plan = unplanned
            return plan(model, args, kwargs)

        return trigger

    def _trigger_unplanned(self, model: Any, args: Any, kwargs: Any) -> bool:
        machine: Any = self.machine
        own = machine.__dict__
        if noisy() or not is_plain(machine) or not self._is_plain() or own["_transition_queue"]:
            return super().trigger(model, *args, **kwargs)
        if own["model_attribute"] != "state":
            return super().trigger(model, *args, **kwargs)
        value = getattr(model, "state", None)
        plan = self.plan_for(value, Kind.GO) or self._unplanned
        return (self._enqueue if own["_queued"] else plan)(model, args, kwargs)

    def _unplanned(self, model: Any, args: Any, kwargs: Any) -> bool:
        """Take the library's own steps, where there is no plan."""
        return super()._trigger(event_data(None, self, self.machine, model, args, kwargs))

    def _enqueue(self, model: Any, args: Any, kwargs: Any) -> bool:
        """Do what ``Machine._process`` does for a machine with a queue."""
        data = event_data(None, self, self.machine, model, args, kwargs)
        return self.machine._process(partial(self._trigger, data))

    def _with_queue(self, plan: Any) -> Any:
        """Return a plan that does what ``Machine._process`` does around another one."""
        own = self.machine.__dict__

        def queued(model: Any, args: Any, kwargs: Any) -> bool:
            queue = own["_transition_queue"]
            if queue:
                return self._enqueue(model, args, kwargs)
            running = _Running()
            running.event = self
            running.model = model
            running.given = args, kwargs
            queue.append(running)
            try:
                plan(model, args, kwargs)
                queue = own["_transition_queue"]
                queue.popleft()
                while queue:
                    queue[0]()
                    queue = own["_transition_queue"]
                    queue.popleft()
            except BaseException:
                own["_transition_queue"].clear()
                raise
            return True

        return queued

    def _trigger(self, data: EventData) -> bool:
        """Process a trigger from the queue of a machine, or for models with another attribute."""
        machine: Any = self.machine
        try:
            value = getattr(data.model, machine.__dict__["model_attribute"])
            plan = self._data_plans[value if type(value) is str else id(value)]
            if levels[INFO]:
                plan = None
        except (AttributeError, KeyError):
            plan = None
        if plan is not None:
            return plan(data)  # type: ignore[no-any-return]
        if noisy() or not (is_plain(machine) and self._is_plain()):
            return super()._trigger(data)
        value = getattr(data.model, machine.__dict__["model_attribute"], None)
        plan = self.plan_for(value, Kind.GIVEN)
        return plan(data) if plan else super()._trigger(data)

    def _is_plain(self) -> bool:
        """Return whether the event takes its steps as that of the fast class does."""
        machine_cls: Any = type(self.machine)
        ours = machine_cls._fast_class.event_cls
        return keeps(type(self), ours, EVENT) and EVENT.isdisjoint(self.__dict__)

    # -- plans -------------------------------------------------------------------------------

    def plan_for(self, value: Any, kind: Kind | None = None) -> Any:
        """Return the plan for a state's value; ``None`` if there is none yet, or can be none.

        It is made the second time; at once without a kind, to be read.
        """
        machine: Any = self.machine
        if kind is None:
            return make_plan(self, machine, marker_of(machine), value, Kind.GO)
        return self._plan_in(
            self._data_plans if kind is Kind.GIVEN else self._plans, key_of(value), value, kind
        )

    def plan_to_ask(self, machine: Any, value: Any) -> Any:
        """Return the plan of ``may_...`` for a state's value, made the second time."""
        asked = marker_of(machine).asked.setdefault(self.name, {})
        return self._plan_in(asked, key_of(value), value, Kind.ASK, machine)

    def _plan_in(self, plans: Any, key: Any, value: Any, kind: Kind, machine: Any = None) -> Any:
        if key in plans:
            return plans[key]
        machine = machine or self.machine
        marker = marker_of(machine)
        now = marker.now
        again = self.eager or (key,) in plans
        plan = make_plan(self, machine, marker, value, kind, again=again)
        if plan is LATER:
            self._keep(plans, (key,), True)
            return None
        if kind is Kind.ASK:
            self._keep(plans, key, plan)
        else:
            steps = super()._trigger if kind is Kind.GIVEN else self._unplanned
            queued = kind is Kind.GO and machine.__dict__["_queued"]
            self._keep(plans, key, self._with_queue(plan or steps) if queued else plan or steps)
        if marker.now is not now:  # by another thread
            plans.pop(key, None)
        return plan

    def _keep(self, plans: dict[Any, Any], key: Any, plan: Any) -> None:
        if not plans:
            marker_of(self.machine).filled.append(plans)
        plans[key] = plan


FastEvent.trigger.__qualname__ = Event.trigger.__qualname__  # shown by errors about its arguments
