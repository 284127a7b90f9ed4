"""SCXML, the state machine notation of the W3C, for interpreters and tools that read it.

An interpreter loads and runs the document as it is. Everything that has no element in SCXML is an
attribute in the namespace ``urn:quadriga:lifecycle``, which interpreters ignore. It is not read again (D304).

- A trigger is an event. An event that is not legal in a state is ignored, as always in SCXML.
- A row that does not change the state is a transition without a target: in SCXML such a transition
  neither leaves nor enters the state.
- A guard is a truth value of the data model, false at the start. The program around the interpreter
  sets it, as it would compute the guard. Without guards the data model is ``null``, which every
  interpreter has; with guards it is ``ecmascript``.
- An emitter raises the internal event ``effect.<emitter>``. No transition takes it; the program around
  the interpreter, or another part of a larger document, may act on it.
  Effects of entering and of leaving a state are raised there; the interpreter also raises those of the
  initial state when it starts.
- A time limit that fires a trigger is a delayed ``send``, which is cancelled when the state is left.
  Growing intervals are only noted.
- A state that is a lifecycle itself is a state with states inside, and its history a ``history``.
See D205.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from quadriga.base.times import SECOND
from quadriga.diagrams.nesting import histories, into_itself
from quadriga.diagrams.wording import identifiers, unused_name
from quadriga.fsm import Lifecycle, Row, Unbounded
from quadriga.fsm.history import History
from quadriga.fsm.table import name_of

NAMESPACE = "urn:quadriga:lifecycle"

_MISSING = "\N{REPLACEMENT CHARACTER}"
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# The names of data are expressions: they must not be words of ECMAScript, nor of Python, whose
# expressions some interpreters take.
_RESERVED = frozenset(
    """
    arguments await break case catch class const continue debugger default delete do else enum eval
    export extends false finally for function if implements import in instanceof interface let new null
    package private protected public return static super switch this throw true try typeof undefined var
    void while with yield In _event _sessionid _name _ioprocessors _x
    """.split()
) | frozenset(keyword.kwlist)


def scxml(lifecycle: Lifecycle) -> str:
    """The state machine as an SCXML document."""
    return _Document(lifecycle).text()


class _Document:
    """One document while it is written."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self.lifecycle = lifecycle
        self.ids = identifiers((*lifecycle.states, *lifecycle.composites))
        #: as they are written: an interpreter knows what a composite is
        self.rows = lifecycle.nested_rows
        #: the prefix of the events of effects: no trigger, because that would take them
        self.effect = unused_name("effect", lifecycle.triggers())
        # by identity: a guard may be an object that is not hashable
        guards = {id(row.guard): row.guard for row in self.rows if row.guard is not None}
        self.guard_names = {key: name_of(guard) for key, guard in guards.items()}
        self.guards = _distinct(self.guard_names, "guard", {*self.ids.values(), *_RESERVED})
        nesting = lifecycle.nesting
        self.on_enter: Mapping[str, Any] = nesting.on_enter if nesting else lifecycle.on_enter
        self.on_exit: Mapping[str, Any] = nesting.on_exit if nesting else lifecycle.on_exit
        caused = [row.own_emit for row in self.rows]
        caused += [emitters for each in (self.on_enter, self.on_exit) for emitters in each.values()]
        emitters = {id(emitter): emitter for emit in caused for emitter in emit}
        self.emitter_names = {key: name_of(each) for key, each in emitters.items()}
        self.emitters = _distinct(self.emitter_names, "emitter", set())

    def text(self) -> str:
        lifecycle = self.lifecycle
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<scxml xmlns="http://www.w3.org/2005/07/scxml" xmlns:quadriga="{NAMESPACE}"'
            + _attributes(
                {
                    "version": "1.0",
                    "datamodel": "ecmascript" if self.guards else "null",
                    "name": lifecycle.name,
                    "initial": self.ids[lifecycle.entry],
                    "quadriga:effects": self.effect if self.emitters else None,
                }
            )
            + ">",
        ]
        if self.guards:
            lines.append("  <datamodel>")
            for key, name in self.guards.items():
                known = self._unlike(name, self.guard_names[key])
                lines.append(f"    <data{_attributes({'id': name, 'expr': 'false', **known})}/>")
            lines.append("  </datamodel>")
        for state in lifecycle.children:
            lines += self._state(state)
        return "\n".join([*lines, "</scxml>"]) + "\n"

    def _state(self, state: str) -> list[str]:
        name = self.ids[state]
        attributes: dict[str, str | None] = {"id": name, **self._unlike(name, state)}
        entry = self._raised(self.on_enter.get(state, ()))
        if state in self.lifecycle.final:
            if not entry:
                return [f"  <final{_attributes(attributes)}/>"]
            return [
                f"  <final{_attributes(attributes)}>",
                f"    <onentry>{''.join(entry)}</onentry>",
                "  </final>",
            ]
        composite = self.lifecycle.composites.get(state)
        lasts = composite.lasts if composite else self.lifecycle.lasts[state]
        if composite:
            attributes["initial"] = self.ids[composite.initial]
        exit = self._raised(self.on_exit.get(state, ()))
        if isinstance(lasts, Unbounded):
            attributes["quadriga:unbounded"] = lasts.ends
        elif lasts.then is None:
            attributes["quadriga:within"] = _seconds(lasts.ns)
        else:
            if lasts.backoff_to is not None:
                attributes["quadriga:backoff"] = _seconds(lasts.backoff_to)
            send = {"id": f"{name}.limit", "event": lasts.then, "delay": _seconds(lasts.ns)}
            entry.append(f"<send{_attributes(send)}/>")
            exit.append(f"<cancel{_attributes({'sendid': send['id']})}/>")
        lines = [f"  <state{_attributes(attributes)}>"]
        lines += [f"    <onentry>{''.join(entry)}</onentry>"] if entry else []
        lines += [f"    <onexit>{''.join(exit)}</onexit>"] if exit else []
        for kind in histories(self.lifecycle, state):
            lines += self._history(kind)
        for row in self.rows:
            if row.source == state:
                lines += self._transition(row)
        for child in composite.children if composite else ():
            lines += [f"  {line}" for line in self._state(child)]
        return [*lines, "  </state>"]

    def _history(self, kind: History) -> list[str]:
        """The history of a composite; if it was never left, the transition in it is taken."""
        initial = self.lifecycle.composites[kind.state].initial
        known = {"id": self._target(kind), "type": "deep" if kind.deep else "shallow"}
        return [
            f"    <history{_attributes(known)}>",
            f"      <transition{_attributes({'target': self.ids[initial]})}/>",
            "    </history>",
        ]

    def _target(self, target: str | History) -> str:
        if isinstance(target, History):
            return f"{self.ids[target.state]}.{'deep' if target.deep else 'shallow'}"
        return self.ids[target]

    def _transition(self, row: Row) -> list[str]:
        attributes = {
            "event": row.trigger,
            "cond": None if row.guard is None else self.guards[id(row.guard)],
            "target": None if row.target is None else self._target(row.target),
            # into a composite from itself, without leaving it
            "type": "internal" if into_itself(self.lifecycle, row) else None,
            "quadriga:why": row.why or None,
        }
        opening = f"    <transition{_attributes(attributes)}"
        if not row.own_emit:
            return [f"{opening}/>"]
        raised = [f"      {each}" for each in self._raised(row.own_emit)]
        return [f"{opening}>", *raised, "    </transition>"]

    def _raised(self, emitters: Iterable[Any]) -> list[str]:
        raised = []
        for emitter in emitters:
            name = self.emitters[id(emitter)]
            event = {
                "event": f"{self.effect}.{name}",
                **self._unlike(name, self.emitter_names[id(emitter)]),
            }
            raised.append(f"<raise{_attributes(event)}/>")
        return raised

    def _unlike(self, name: str, original: str) -> dict[str, str | None]:
        """The original name, where the document has another one."""
        return {} if name == original else {"quadriga:name": original}


def _distinct(names: Mapping[int, str], instead: str, taken: Iterable[str]) -> dict[int, str]:
    """Distinct plain identifiers: each name itself if it can be one, else ``instead`` and a number."""
    used = set(taken)
    found: dict[int, str] = {}
    for number, (key, name) in enumerate(names.items()):
        plain = _IDENTIFIER.fullmatch(name) and name not in used
        found[key] = name if plain else unused_name(f"{instead}{number}", {*used, *names.values()})
        used.add(found[key])
    return found


def _attributes(values: Mapping[str, str | None]) -> str:
    # XML has no way to write control characters, not even as references
    return "".join(
        f" {name}={quoteattr(_UNWRITABLE.sub(_MISSING, value))}"
        for name, value in values.items()
        if value is not None
    )


def _seconds(ns: int) -> str:
    """A CSS2 time, exactly: ``30s``, ``250ms``.

    Fractions are written only below a millisecond: the interpreter of Qt does not read them.
    """
    if ns % SECOND and not ns % 10**6:
        return f"{ns // 10**6}ms"
    whole, rest = divmod(ns, SECOND)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{whole}{fraction}s"
