"""The types of a machine of the library ``transitions``, written as a module: ``quadriga-fsm stubs``.

The library gives methods to models while the program runs, so no type checker knows them. The module has a class
``Model`` to derive the models' class from. At run time the class is empty, so the library binds its own methods.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from inspect import Parameter, Signature
from keyword import iskeyword
from types import SimpleNamespace
from typing import Any, Final

from transitions import Machine, State
from transitions.extensions.nesting import HierarchicalMachine

from quadriga.diagrams.errors import DiagramError

#: builtin types that can be written without an import and have no parameters
_PLAIN: Final = (bool, bytes, complex, float, int, object, str)
_ANYTHING: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_REST: Final = "*args: Any, **kwargs: Any"


class _Text:
    """Source that ``str(signature)`` writes as it is."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __repr__(self) -> str:
        return self.source


def stubs(machine: Machine, name: str) -> str:
    """The source of a module with the types of a machine's models: ``State``, ``Trigger``, ``Model`` and ``Machine``.

    ``name`` is what the module says it is made from. Equal machines give equal text. Signatures of callbacks that are
    named by a string are read from the first model. Raises ``DiagramError`` for a state of an enumeration that
    no module can import.
    """
    return _Stubs(machine, name).module()


class _Stubs:
    def __init__(self, machine: Machine, name: str) -> None:
        self.machine: Any = machine
        self.name = name
        self.nested = isinstance(machine, HierarchicalMachine)
        self.asynchronous = inspect.iscoroutinefunction(type(machine).dispatch)
        self.separator = getattr(self.machine.state_cls, "separator", "_")
        self.states: dict[str, State] = dict(self._states(self.machine.states))
        #: the events of a name with the prefix that the names of their states lack
        self.events: dict[str, list[tuple[str, Any]]] = {}
        for event in self.machine.events.values():
            self.events.setdefault(event.name, []).append(("", event))
        for full, state in self.states.items():
            for event in getattr(state, "events", {}).values():
                self.events.setdefault(event.name, []).append((full + self.separator, event))
        self.imports: set[str] = set()
        self.paths: list[str] = []

    def _states(self, states: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, State]]:
        for name, state in states.items():
            yield above + name, state
            yield from self._states(getattr(state, "states", {}), f"{above}{name}{self.separator}")

    def module(self) -> str:
        body = self._model()  # first, because it finds what has to be imported
        values = [self._value(full, state) for full, state in self.states.items()]
        aliases = [_alias("State", values), _alias("Trigger", map(_quoted, self.events))]
        needed = {"TYPE_CHECKING", "Any", "Protocol", "TypeAlias"}
        needed |= {"Never" if alias.endswith("Never\n") else "Literal" for alias in aliases}
        if self._is_parallel():
            aliases.append('Parallel: TypeAlias = "list[State | Parallel]"\n')
        imports = "".join(f"    import {module}\n" for module in sorted(self.imports))
        return (
            f'"""The types of {self.name}, written by ``quadriga-fsm stubs``. Do not edit."""\n\n'
            "from __future__ import annotations\n\n"
            f"from typing import {', '.join(sorted(needed))}\n\n"
            + (f"if TYPE_CHECKING:\n{imports}\n" if imports else "")
            + "\n".join(aliases)
            + "".join(f"\n\n{path}" for path in self.paths)
            + "\n\nclass Model:\n    if TYPE_CHECKING:\n"
            + "".join(f"        {line}\n" for line in body)
            + "\n\nclass Machine(Protocol):\n"
            "    def get_triggers(self, *states: State) -> list[Trigger]: ...\n"
            f"    {self._def('dispatch', f'(self, trigger: Trigger, {_REST})')}\n"
        )

    def _value(self, full: str, state: State) -> str:
        value = state.value
        return self._imported(type(value), value.name) if isinstance(value, Enum) else _quoted(full)

    def _imported(self, kind: type, *names: str) -> str:
        if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
            raise DiagramError(
                f"{self.name} has states of {kind.__qualname__}, which no module can import: define it in a module"
            )
        self.imports.add(kind.__module__)
        return ".".join((kind.__module__, kind.__qualname__, *names))

    def _is_parallel(self) -> bool:
        owners = [self.machine, *self.states.values()] if self.nested else []
        return any(isinstance(getattr(owner, "initial", None), list | tuple) for owner in owners)

    # -- what the machine binds ------------------------------------------------------------------------

    def _model(self) -> list[str]:
        """The lines of the class, in the order in which the library binds: of two equal names the first counts."""
        attribute = self.machine.model_attribute
        named = f"(self, trigger: Trigger, {_REST})"
        bound = {"trigger": self._def("trigger", named)}
        Machine(plain := SimpleNamespace(), states=["A"], initial="A")
        if hasattr(plain, "may_trigger"):  # not before transitions 0.9.2
            bound["may_trigger"] = self._def("may_trigger", named)
        asks, to_paths, is_paths = "(self)", {}, {}
        if self.nested:
            asks = "(self, allow_substates: bool = ...)"
            # it takes names only; an asynchronous machine's awaits nothing, so it does nothing
            enums = any(isinstance(state.value, Enum) for state in self.states.values())
            if not self.asynchronous:
                state = "str" if enums else "State"
                bound["to"] = f"def to(self, state: {state}, {_REST}) -> None: ..."
        for trigger in self.events:
            fires = self._signature(trigger, asked=False)
            bound.setdefault(
                f"may_{trigger}", self._def(f"may_{trigger}", self._signature(trigger, asked=True))
            )
            if trigger.startswith("to_") and self.nested and self.separator != "_":
                to_paths[tuple(trigger[3:].split(self.separator))] = (fires, True)
            else:
                bound.setdefault(trigger, self._def(trigger, fires))
        for full in self.states:
            if self.nested and self.separator != "_":
                is_paths[tuple(full.split(self.separator))] = (asks, False)
            else:
                prefix = "is" if self.nested or attribute == "state" else f"is_{attribute}"
                bound.setdefault(f"{prefix}_{full}", f"def {prefix}_{full}{asks} -> bool: ...")
        bound |= self._tree("to_", to_paths) | self._tree("is_", is_paths) | self._callbacks()
        if getattr(
            self.machine, "model_override", False
        ):  # then it binds only what the class declares
            declared = [type(model) for model in self.machine.models[:1]]
            bound = {
                name: line
                for name, line in bound.items()
                if any(hasattr(k, name) for k in declared)
            }
        bound = {attribute: f"{attribute}: State" + " | Parallel" * self._is_parallel()} | bound
        return [line for name, line in bound.items() if name.isidentifier() and not iskeyword(name)]

    def _def(self, name: str, signature: str) -> str:
        return f"{'async ' * self.asynchronous}def {name}{signature} -> bool: ..."

    def _tree(
        self, prefix: str, paths: Mapping[tuple[str, ...], tuple[str, bool]]
    ) -> dict[str, str]:
        """The members for ``model.is_on.low()``, which the library has where the separator is no underscore."""
        found = {}
        for path, (signature, fires) in paths.items():
            if len(path) == 1:
                name = prefix + (f"s{path[0]}" if not prefix and path[0][:1].isdigit() else path[0])
                below = {
                    other[1:]: given
                    for other, given in paths.items()
                    if other[:1] == path and other[1:]
                }
                define = self._def if fires else _plain
                found[name] = define(name, signature)
                if below:
                    members = [define("__call__", signature), *self._tree("", below).values()]
                    kind = f"_Path{len(self.paths) + 1}"
                    self.paths.append(
                        f"class {kind}(Protocol):\n" + "".join(f"    {m}\n" for m in members)
                    )
                    found[name] = f"{name}: {kind}"
        return found

    # -- signatures of callbacks ------------------------------------------------------------------------

    def _signature(self, trigger: str, *, asked: bool) -> str:
        """What the callbacks of a trigger take, if those that restrict it agree, else anything.

        ``asked`` is for ``may_...``, which runs conditions and what prepares them.
        """
        found: list[Sequence[Parameter]] = []
        for callback in [] if self.machine.send_event else self._run_by(trigger, asked):
            parameters = self._parameters(callback)
            if parameters is not None and not any(p.kind in _ANYTHING for p in parameters):
                found.append(parameters)
        if (
            len({tuple((p.name, p.kind, p.default is p.empty) for p in given) for given in found})
            != 1
        ):
            return f"(self, {_REST})"
        first = found[0]
        positional = any(p.kind is Parameter.POSITIONAL_ONLY for p in first)
        kind = Parameter.POSITIONAL_ONLY if positional else Parameter.POSITIONAL_OR_KEYWORD
        written = [Parameter("self", kind)]
        for place, parameter in enumerate(first):
            kinds = {self._type(given[place].annotation) for given in found} - {"Any"}
            annotation = _Text(kinds.pop() if len(kinds) == 1 else "Any")
            default = parameter.empty if parameter.default is parameter.empty else _Text("...")
            written.append(parameter.replace(annotation=annotation, default=default))
        return str(Signature(written))

    def _run_by(self, trigger: str, asked: bool) -> Iterator[Any]:
        machine = self.machine
        yield from machine.prepare_event
        if not asked:
            yield from (
                *machine.before_state_change,
                *machine.after_state_change,
                *machine.finalize_event,
            )
        for above, event in self.events[trigger]:
            for transition in (t for given in event.transitions.values() for t in given):
                yield from (*transition.prepare, *(c.func for c in transition.conditions))
                if asked:
                    continue
                yield from (*transition.before, *transition.after)
                if transition.dest is not None:
                    for place, calls in (
                        (transition.source, "on_exit"),
                        (transition.dest, "on_enter"),
                    ):
                        yield from getattr(self.states.get(f"{above}{place}"), calls, ())

    def _resolved(self, callback: Any) -> Any:
        model = SimpleNamespace(model=next(iter(self.machine.models), None))
        try:
            return self.machine.resolve_callable(callback, model)
        except (AttributeError, ImportError, ValueError):
            return None  # the library reports it when it is called

    def _parameters(self, callback: Any) -> Sequence[Parameter] | None:
        resolved = self._resolved(callback)
        for eval_str in (True, False):  # an annotation may be one that only type checkers can read
            try:
                return tuple(inspect.signature(resolved, eval_str=eval_str).parameters.values())
            except Exception:
                continue
        return None

    def _type(self, annotation: Any) -> str:
        if annotation in _PLAIN:
            return str(annotation.__name__)
        if not isinstance(annotation, type) or hasattr(annotation, "__class_getitem__"):
            return "Any"
        local = "<locals>" in annotation.__qualname__
        if (
            local
            or annotation.__module__ in ("builtins", "__main__")
            or annotation is Parameter.empty
        ):
            return "Any"
        return self._imported(annotation)

    def _callbacks(self) -> dict[str, str]:
        """Methods of the model that take the library's event: a method of the class has to fit."""
        found: dict[str, str] = {}
        if not self.machine.send_event:
            return found
        for trigger in self.events:
            for callback in self._run_by(trigger, asked=False):
                if isinstance(callback, str) and inspect.ismethod(self._resolved(callback)):
                    self.imports.add("transitions")
                    found[callback] = (
                        f"def {callback}(self, event: transitions.EventData, /) -> Any: ..."
                    )
        return found


def _plain(name: str, signature: str) -> str:
    return f"def {name}{signature} -> bool: ..."


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _alias(name: str, values: Iterable[str]) -> str:
    """A ``Literal``, as text if it has members of enumerations, which are imported for type checkers only."""
    given = list(dict.fromkeys(values))
    if not given:
        return f"{name}: TypeAlias = Never\n"
    lines = "".join(f"    {value},\n" for value in given)
    if all(value.startswith('"') for value in given):
        return f"{name}: TypeAlias = Literal[\n{lines}]\n"
    literal = ", ".join(given)
    return f"{name}: TypeAlias = {_quoted(f'Literal[{literal}]')}\n"
