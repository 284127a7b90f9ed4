"""``FastMachine``: the library's machine with its whole behaviour, and many times as fast.

A trigger takes its step from a plan (``events``), and plans follow every change of the machine (``tracking``). Models of
one class share their methods (``models``), so that a model costs a pointer.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any, Final, NamedTuple

from transitions import Machine, State
from transitions.core import listify

from quadriga.fsm.fast.events import FastEvent
from quadriga.fsm.fast.models import (
    Methods,
    bound_by,
    can_have,
    class_content,
    class_names,
    is_same,
    kind_of,
    methods_of,
    set_class,
)
from quadriga.fsm.fast.steps import (
    ATTRIBUTES,
    HAS_FINAL,
    INFO,
    MACHINE,
    is_plain,
    keeps,
    levels,
    noisy,
)
from quadriga.fsm.fast.templates import bind, build, key_of, learn, templates
from quadriga.fsm.fast.tracking import (
    CHANGES,
    LISTS,
    Callbacks,
    FastState,
    FastTransition,
    Later,
    Marker,
    States,
    Transitions,
    follow,
    marker_of,
    own,
    states_of,
)

#: names of the methods that bind methods to a model
_BINDING: Final = frozenset(
    "_checked_assignment _add_trigger_to_model _add_model_to_state "
    "_add_may_transition_func_for_trigger".split()
)
#: attributes of a machine on which plans depend
_RELEVANT: Final = MACHINE | ATTRIBUTES | {"events", "models", "_queued", "__class__", "__dict__"}
_set: Final = object.__setattr__


def with_lists(cls: type) -> type:
    """Let each list of callbacks of the machine be the caller's own list, or one whose changes are noticed."""

    def assigning(library: Any) -> Any:
        return lambda machine, callbacks: library.fset(machine, own(callbacks))

    for name in LISTS:
        library: Any = getattr(Machine, name)
        setattr(cls, name, property(library.fget, assigning(library), doc=library.__doc__))
    return cls


class _Models(list[Any]):
    """The models of a machine. The list knows whether only the machine has changed it."""

    touched = False


def _touching(name: str) -> Any:
    change = getattr(list, name)

    def touch(self: _Models, *args: Any) -> Any:
        self.touched = True
        return change(self, *args)

    return touch


for _name in CHANGES:
    setattr(_Models, _name, _touching(_name))


@with_lists
class FastMachine(Machine):
    """A drop-in for ``transitions.Machine``.

    ``shares_methods = False`` in a subclass binds the methods to each model, as the library does.
    """

    state_cls = FastState
    transition_cls = FastTransition
    event_cls = FastEvent
    marker_cls = Marker
    shares_methods = True
    _fast_class: type
    states: Any = Later(states_of)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        model = args[0] if args else kwargs.get("model", self.self_literal)
        others = {name: value for name, value in kwargs.items() if name != "model"}
        key = None if args and "model" in kwargs else key_of(self, args[1:], others)
        if key is None:
            super().__init__(*args, **kwargs)
            return
        template: Any = templates.get(key)
        arguments = (args[1:], others)
        if template:
            build(self, template, arguments)
            self.__dict__["models"] = _Models()
        else:
            known = set(self.__dict__)
            super().__init__(None, *args[1:], **others)
            learn(key, self, known, arguments)
        if not model:
            return
        if template and self._initial is not None:
            itself = self if model is self.self_literal else model
            if bind(self, template, itself):
                initial = template.plain["_initial"]
                if type(initial) is str:
                    setattr(itself, template.plain["model_attribute"], initial)
                else:
                    self.set_state(initial, model=itself)
                list.append(self.models, itself)
                self._loose.append(itself)
                self._met.add(type(itself))
                return
        self.add_model(model)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _RELEVANT:
            _set(self, name, value)
            return
        own = self.__dict__
        marker = own.get("_marker")
        if marker is not None:
            if "_later" in own:
                _ = self.states  # it is read
            marker.before()
        if name not in own:  # the library's first, empty ones
            if name in ("states", "events"):
                value = States(value)
            elif name == "models":
                value = _Models(value)
                own.update(_current={}, _met=set(), _loose=[], _compares=False)
        _set(self, name, value)
        if marker is not None:
            marker.after()

    def __getstate__(self) -> Any:
        if "_later" not in self.__dict__:
            return super().__getstate__()
        _ = self.states  # it is read
        return {name: value for name, value in self.__dict__.items() if name != "_later"}

    # -- models ------------------------------------------------------------------------------

    def add_model(self, model: Any, initial: Any = None) -> None:
        models = listify(model)
        start = self.initial if initial is None else initial
        if start is None or not self._shares():
            super().add_model(model, initial)
            return
        prepared: dict[type, _Prepared | None] = {}
        for each in models:
            cls = type(each)
            if cls not in prepared:
                prepared[cls] = self._prepare(cls, alone=len(models) == 1)
            ready = prepared[cls]
            if ready is None or not self._share(each, start, ready):
                self._bind(each, initial)

    def remove_model(self, model: Any) -> None:
        known = [mod for mod in listify(model) if mod in self.models]
        gone = [self.models[self.models.index(mod)] for mod in known]
        touched = getattr(self.models, "touched", True)
        super().remove_model(model)
        if isinstance(self.models, _Models):
            self.models.touched = touched
        for mod in gone:
            self._loose[:] = [each for each in self._loose if each is not mod]
            methods = kind_of(mod)
            if methods is not None and methods.machine is self:
                set_class(mod, methods.other(None).made)

    def _shares(self) -> bool:
        return (
            self.shares_methods
            and not getattr(self, "model_override", False)  # 0.9.1 does not have it
            and keeps(type(self), FastMachine, _BINDING)
            and _BINDING.isdisjoint(self.__dict__)
        )

    def _bind(self, mod: Any, initial: Any) -> None:
        """Bind the methods as attributes of the model itself, as the library does."""
        touched, number = getattr(self.models, "touched", True), len(self.models)
        super().add_model([mod], initial)
        if isinstance(self.models, _Models):
            self.models.touched = touched
        self._loose.extend(self.models[number:])

    def _prepare(self, cls: type, *, alone: bool) -> _Prepared | None:
        """Return what the models of a class share; ``None`` if each gets its own."""
        methods = self._current.get(cls)
        if methods is None:
            if issubclass(cls, Machine) or not can_have(cls):
                return None
            if alone and cls.__dictoffset__ and cls not in self._met:  # one model needs no class
                self._met.add(cls)
                return None
        marker = marker_of(self)
        if methods is None or methods.checked is not marker.now:
            follow(marker, self.states, self.events, *self.states.values())
            now, bound = marker.now, methods_of(self)
            if methods is None or methods.bound != bound:
                methods = self._current[cls] = Methods(self, cls, bound)
            methods.checked = now
            methods.dynamic = {
                f"{callback}_{state.name}": (state, callback)
                for callback in self.state_cls.dynamic_methods
                for state in self.states.values()
            }
            methods.ready = None
        content = class_content(cls)
        if methods.ready is None or not is_same(content, methods.content):
            methods.ready, methods.content = self._look_at(cls, methods), content
        return methods.ready  # type: ignore[no-any-return]

    def _look_at(self, cls: type, methods: Methods) -> _Prepared | None:
        names = class_names(cls)
        if not methods.bound.keys().isdisjoint(names):
            return None
        callbacks = []
        for name in methods.dynamic.keys() & names.keys():
            if isinstance(names[name], (FunctionType, classmethod)):
                callbacks.append((name, *methods.dynamic[name]))
            elif not isinstance(names[name], staticmethod):
                return None
        callbacks.sort(key=lambda found: list(methods.dynamic).index(found[0]))
        return _Prepared(methods, callbacks, names.get("__eq__") is None)

    def _share(self, mod: Any, initial: Any, ready: _Prepared) -> bool:
        """Give the model the class that has its methods, unless it has attributes with their names."""
        models, methods = self.models, ready.methods
        if models.__class__ is _Models and not models.touched:
            compare = not ready.by_identity or self._compares
            if mod in (models if compare else self._loose):
                return True
        elif mod in models:
            return True
        names = getattr(mod, "__dict__", None)
        if names and not (
            methods.bound.keys().isdisjoint(names) and methods.dynamic.keys().isdisjoint(names)
        ):
            return False
        try:
            set_class(mod, methods.made)
        except TypeError:  # an object with a memory layout of its own
            return False
        for name, state, callback in ready.callbacks:
            if name not in getattr(state, callback):
                state.add_callback(callback[3:], name)
        try:
            self.set_state(initial, model=mod)
        except BaseException:  # as in the library, it has methods and is no model
            set_class(mod, methods.other(None).made)
            raise
        list.append(models, mod)
        if not ready.by_identity:
            self.__dict__["_compares"] = True
        return True

    # -- triggers and states, as they come and go --------------------------------------------------

    def remove_transition(self, trigger: Any, source: Any = "*", dest: Any = "*") -> None:
        before = self.events[trigger].transitions
        super().remove_transition(trigger, source, dest)
        event = self.events.get(trigger)
        if isinstance(event, FastEvent) and event.transitions is not before:
            kept = {name: Callbacks(found) for name, found in event.transitions.items()}
            event.transitions = Transitions(Callbacks, kept)

    def _add_trigger_to_model(self, trigger: Any, model: Any) -> None:
        bind = super()._add_trigger_to_model
        if not self._teach(model, ("trigger", trigger), self.events[trigger]):
            bind(trigger, model)

    def _add_model_to_state(self, state: Any, model: Any) -> None:
        if not self._teach(model, ("state", state.name), state):
            super()._add_model_to_state(state, model)
        else:
            for callback in self.state_cls.dynamic_methods:
                name = f"{callback}_{state.name}"
                if inspect.ismethod(getattr(model, name, None)):
                    if name not in getattr(state, callback):
                        state.add_callback(callback[3:], name)

    def _teach(self, model: Any, about: tuple[str, str], what: object) -> bool:
        """Add the methods of an event or a state; return false if the library has to bind them to this model."""
        methods = kind_of(model)
        if methods is None or methods.machine is not self:
            return False
        known = methods.learned.get(about)
        if known is None or known[0] is not what:
            if about[0] == "trigger":
                bound = bound_by(super()._add_trigger_to_model, about[1])
            else:
                bound = bound_by(super()._add_model_to_state, what)
            there = [name for name in bound if name in methods.bound]
            clash = not bound.keys().isdisjoint(class_names(methods.base))
            known = methods.learned[about] = (what, list(bound), there, clash)
            if not clash:
                methods.add({n: each for n, each in bound.items() if n not in there})
        _, names, there, clash = known
        if clash:
            return False
        hidden = getattr(model, "__dict__", ())
        for name in names:
            if (
                name in there or name in hidden
            ):  # the library reports that it does not overwrite them
                self._checked_assignment(model, name, getattr(model, name))
        return True

    def plan(self, trigger: str, state: Any) -> str:
        """Return the source of the function that runs when this trigger is fired in this state.

        Raises ``KeyError`` for an unknown trigger, ``ValueError`` for an unknown state, or if the library's own
        steps are followed: the trigger is illegal there, or a subclass replaces a step.
        """
        event: Any = self.events[trigger]
        plain = is_plain(self) and event._is_plain()
        plan = event.plan_for(self.get_state(state).value) if plain else None
        if plan is None:
            raise ValueError(f"{self.name}{trigger} in {state}: the library's own steps run")
        return str(plan.__doc__)

    # -- asking ------------------------------------------------------------------------------

    def _can_trigger(self, model: Any, trigger: Any, *args: Any, **kwargs: Any) -> bool:
        try:
            marker, value = self._marker, model.state
            plan = marker.asked[trigger][value if type(value) is str else id(value)]
            if levels[INFO] or marker.machine() is not self:
                plan = None
        except (AttributeError, KeyError, TypeError):
            plan = None
        if plan is None:
            return self._ask_unplanned(model, trigger, args, kwargs)
        return plan(model, args, kwargs)  # type: ignore[no-any-return]

    def _ask_unplanned(self, model: Any, trigger: Any, args: Any, kwargs: Any) -> bool:
        plan = None
        if HAS_FINAL and not noisy() and is_plain(self) and self.model_attribute == "state":
            event: Any = self.events.get(trigger)
            if isinstance(event, FastEvent) and event.name == trigger:
                plan = event.plan_to_ask(self, getattr(model, "state", None))
        if plan is None:
            return super()._can_trigger(model, trigger, *args, **kwargs)  # type: ignore[no-any-return,misc]
        return plan(model, args, kwargs)  # type: ignore[no-any-return]


class _Prepared(NamedTuple):
    """What an ``add_model`` has found out about a class of models."""

    methods: Methods
    #: methods of the class that are called when a state is entered or left: name, state, kind
    callbacks: list[tuple[str, State, str]]
    by_identity: bool


FastMachine._fast_class = FastMachine
FastMachine.__init__.__signature__ = inspect.signature(Machine.__init__)  # type: ignore[attr-defined]
