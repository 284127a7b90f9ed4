"""Lifecycles from documents: the JSON that ``render`` has written.

A document has only the names of guards and emitters. The caller gives the functions by these names,
for example ``vars()`` of the module that has them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quadriga.diagrams.errors import DiagramError
from quadriga.fsm import Lifecycle, Row, Unbounded, Within
from quadriga.fsm.errors import did_you_mean
from quadriga.fsm.history import History
from quadriga.fsm.table import all_of, any_of, atoms, name_of, not_

#: The guards and emitters by their names.
Functions = Mapping[str, Any]

_NONE: Final[Functions] = {}
_ROW_KEYS = ("line", "trigger", "source", "target", "guard", "emit", "why")


def functions_of(lifecycle: Lifecycle) -> dict[str, Callable[..., Any]]:
    """The guards and emitters of a lifecycle by their names, to read a changed copy of it.

    Raises ``DiagramError`` if two of them have the same name.
    """
    found: dict[str, Callable[..., Any]] = {}
    functions: list[Callable[..., Any]] = []
    for row in lifecycle.nested_rows:
        functions += [*row.own_emit, *(atoms(row.guard) if row.guard else ())]
    whole = lifecycle.nesting or lifecycle
    for actions in (whole.on_enter, whole.on_exit):
        functions += [function for emitters in actions.values() for function in emitters]
    for function in functions:
        name = name_of(function)
        if found.setdefault(name, function) is not function:
            raise DiagramError(f"{lifecycle.name}: two functions are called {name}")
    return found


class Names:
    """Looks functions up, and collects the names that have none, so that one error names all."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._missing: dict[str, str] = {}

    def guard(self, name: str | None) -> Any:
        if name is None:
            return None
        try:
            return self._composed(ast.parse(name, mode="eval").body, name)
        except (SyntaxError, RecursionError, MemoryError):  # no text of ours
            return self._find("guard", name)

    def _composed(self, part: ast.expr, name: str) -> Any:
        """``not (is_late or is_lost)``, as guards that are made of others are written."""
        if isinstance(part, ast.BoolOp) and name not in self._functions:
            compose = all_of if isinstance(part.op, ast.And) else any_of
            return compose(*(self._composed(each, ast.unparse(each)) for each in part.values))
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return not_(self._composed(part.operand, ast.unparse(part.operand)))
        return self._find("guard", name)

    def emitters(self, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(self._find("emitter", name) for name in names)

    def _find(self, kind: str, name: str) -> Any:
        found = self._functions.get(name)
        if callable(found):
            return found
        hint = ", which is not callable" if found is not None else ""
        hint = hint or did_you_mean(name, filter(_may_be_meant, self._functions))
        self._missing.setdefault(name, f"{kind} {name}{hint}")
        return _never

    def require_all(self, lifecycle: str) -> None:
        """Raise ``DiagramError`` with every name that no function was given for."""
        if self._missing:
            raise DiagramError(f"{lifecycle}: no function for {', '.join(self._missing.values())}")


def _never(*arguments: object) -> tuple[()]:
    """Stands for a function that is missing; the error is raised before anything is called."""
    return ()


def _may_be_meant(name: object) -> bool:
    """Whether a key of the caller's mapping may be meant: ``vars()`` of a module has others too."""
    return isinstance(name, str) and not name.startswith("__")


def grouped(rows: Iterable[tuple[int, Row]]) -> list[tuple[Row, ...]]:
    """Rows with the numbers of their lines, as ``Lifecycle`` takes them: a tuple for each line."""
    lines: dict[int, list[Row]] = {}
    for line, row in rows:
        lines.setdefault(line, []).append(row)
    return [tuple(lines[line]) for line in sorted(lines)]


# -- JSON --------------------------------------------------------------------------------------------


def read_json(text: str, functions: Functions = _NONE) -> Lifecycle:
    """The lifecycle of a document that ``render(lifecycle, "json")`` has written.

    ``functions`` has the guards and emitters by name. Raises ``DiagramError`` for a document of another
    form, with the place in it, and for names without a function, all of them; and ``DefinitionError``
    for a table that is not a lifecycle.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DiagramError(f"not JSON: {error}") from None
    names = Names(functions)
    table = _table(_Part(document, "the document"), names)
    names.require_all(table["name"])
    return made_from(table)


def made_from(table: dict[str, Any]) -> Lifecycle:
    """A lifecycle from its arguments; those inside are given in the same way."""
    inside = {state: made_from(inner) for state, inner in table["inside"].items()}
    return Lifecycle(**{**table, "inside": inside})


def _table(part: _Part, names: Names) -> dict[str, Any]:
    """The arguments of a lifecycle, without making it: first all missing functions are found."""
    part.require_keys("name", "initial", "final", "states", "rows")
    final = part.texts("final")
    table: dict[str, Any] = {
        "name": part.text("name"),
        "initial": part.text("initial"),
        "final": final,
        "lasts": {},
        "rows": grouped(_row(each, names) for each in part.parts("rows")),
        "on_enter": {},
        "on_exit": {},
        "inside": {},
    }
    for state in part.parts("states"):
        state.require_keys("name", optional=("lasts", "on_enter", "on_exit", "inside"))
        name, lasts = state.text("name"), state.part("lasts")
        # an outer table may have no limit, but actions, of a state inside
        if name not in final and not (lasts.value is None and len(state.value) > 2):
            table["lasts"][name] = _lasts(lasts)
        for what in ("on_enter", "on_exit"):
            if what in state.value:
                table[what][name] = names.emitters(state.texts(what))
        if "inside" in state.value:
            table["inside"][name] = _table(state.part("inside"), names)
    return table


def _lasts(limit: _Part) -> Unbounded | Within:
    if isinstance(limit.value, dict) and "unbounded" in limit.value:
        limit.require_keys("unbounded")
        return Unbounded(limit.text("unbounded"))
    limit.require_keys("within", "then", "backoff_to")
    backoff = limit.value["backoff_to"]
    return Within(
        limit.number("within"),
        limit.text_or_none("then"),
        None if backoff is None else limit.number("backoff_to"),
    )


def _row(part: _Part, names: Names) -> tuple[int, Row]:
    part.require_keys(*_ROW_KEYS, optional=("count",))
    row: Row = Row(
        part.text("trigger"),
        part.text("source"),
        _target(part.part("target")),
        names.guard(part.text_or_none("guard")),
        names.emitters(part.texts("emit")),
        part.text("why"),
    )
    return part.number("line"), row


def _target(part: _Part) -> Any:
    if not isinstance(part.value, dict):
        return None if part.value is None else part._text()
    part.require_keys("history", "deep")
    if not isinstance(part.value["deep"], bool):
        raise DiagramError(f"{part.place}.deep is neither true nor false")
    return History(part.text("history"), part.value["deep"])


class _Part:
    """A value of the document with its place, for errors: ``rows[3].trigger is not text``."""

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def require_keys(self, *keys: str, optional: tuple[str, ...] = ()) -> None:
        if not isinstance(self.value, dict):
            raise DiagramError(f"{self.place} is not an object")
        missing = [key for key in keys if key not in self.value]
        unknown = [key for key in self.value if key not in keys and key not in optional]
        if missing or unknown:
            problem = f"lacks {', '.join(missing)}" if missing else f"has unknown {unknown[0]!r}"
            raise DiagramError(f"{self.place} {problem}")

    def part(self, key: str) -> _Part:
        if not isinstance(self.value, dict) or key not in self.value:
            raise DiagramError(f"{self.place} has no {key}")
        return _Part(self.value[key], self._of(key))

    def parts(self, key: str) -> list[_Part]:
        found = self.part(key)
        if not isinstance(found.value, list):
            raise DiagramError(f"{found.place} is not a list")
        return [_Part(each, f"{found.place}[{n}]") for n, each in enumerate(found.value)]

    def text(self, key: str) -> str:
        return self.part(key)._text()

    def text_or_none(self, key: str) -> str | None:
        found = self.part(key)
        return None if found.value is None else found._text()

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(each._text() for each in self.parts(key))

    def number(self, key: str) -> int:
        found = self.part(key)
        if not isinstance(found.value, int) or isinstance(found.value, bool):
            raise DiagramError(f"{found.place} is not a whole number")
        return found.value

    def _text(self) -> str:
        if not isinstance(self.value, str):
            raise DiagramError(f"{self.place} is not text")
        return self.value

    def _of(self, key: str) -> str:
        return key if self.place == "the document" else f"{self.place}.{key}"
