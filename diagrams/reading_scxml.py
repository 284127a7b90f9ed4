"""Lifecycles from SCXML documents: ours, and those of other tools that use the same subset.

The subset: states beside each other (``state`` and ``final``), transitions with events, conditions and
targets, ``raise`` in transitions, and one delayed ``send`` on entry that is cancelled on exit. What a
lifecycle cannot express is refused, all of it in one error; nothing is left out silently. Elements and
attributes of other namespaces are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple
from xml.etree import ElementTree

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.reading import Functions, Names, grouped
from quadriga.diagrams.scxml import NAMESPACE
from quadriga.fsm import Lifecycle, Row, Unbounded, Within
from quadriga.fsm.table import HOUR, MINUTE, SECOND

__all__ = ["read_scxml"]

_SCXML = "{http://www.w3.org/2005/07/scxml}"
_OURS = f"{{{NAMESPACE}}}"
_NONE: Mapping[str, object] = {}

_UNITS = {"ms": 10**6, "s": SECOND, "m": MINUTE, "h": HOUR, "d": 24 * HOUR}
_TIME = re.compile(r"(\d+|\d*\.\d+)(ms|s|m|h|d)")

_Element = ElementTree.Element


def read_scxml(text: str, functions: Functions = _NONE) -> Lifecycle:
    """The lifecycle of an SCXML document.

    ``functions`` has the guards and emitters by name. A guard is called as the function that the
    document was written from, or, in a document of another tool, as the text of ``cond``; an emitter as
    the event of ``raise``. A state without a time limit is unbounded, ended by its first transition to
    another state. Raises ``DiagramError`` for what a lifecycle cannot express and for names without a
    function, all of them; and ``DefinitionError`` for a table that is not a lifecycle.
    """
    if "<!DOCTYPE" in text:
        raise DiagramError("the document has a DOCTYPE, which SCXML does not need")
    try:
        # bytes, because the declaration may name an encoding, and the text has none any more
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    except ElementTree.ParseError as error:
        raise DiagramError(f"not XML: {error}") from None
    if root.tag != f"{_SCXML}scxml":
        raise DiagramError(f"not SCXML: the root is {_plain(root)}")
    return _Reader(root, functions).lifecycle()


class _Read(NamedTuple):
    """A row with its line, the number of its source in the line, and its number in the document."""

    line: int
    source: int
    number: int
    row: Row


class _Reader:
    """One document while it is read."""

    def __init__(self, root: _Element, functions: Functions) -> None:
        self.root = root
        self.names = Names(functions)
        self.problems: list[str] = []
        self.name = root.get("name", "lifecycle")
        self.states: dict[str, _Element] = {}
        #: the transitions in their order; without our numbers each is a line of its own
        self.numbers = {each: n for n, each in enumerate(root.iter(f"{_SCXML}transition"))}
        #: the names of guards by the data that stand for them
        self.guards: dict[str, str] = {}
        effect = root.get(f"{_OURS}effects")
        self.effect = f"{effect}." if effect else ""

    def lifecycle(self) -> Lifecycle:
        for element in _ours(self.root):
            match _plain(element):
                case "state" | "final":
                    self.states[element.get("id", f"state {len(self.states) + 1}")] = element
                case "datamodel":
                    self._take_data(element)
                case other:
                    self._refuse(f"<{other}>")
        entry = self.root.get("initial") or next(iter(self.states), "")
        if entry not in self.states:
            self._refuse(f"the initial state {entry!r}, which is not there")
        read = sorted((row for each in self.states for row in self._rows(each)), key=_order)
        rows = [(line, row) for line, _, _, row in read]
        final = tuple(self._called(i) for i, e in self.states.items() if _plain(e) == "final")
        for element in self.states.values():
            if _plain(element) == "final":
                for inner in _ours(element):
                    self._refuse(f"<{_plain(inner)}> in the final state {element.get('id')}")
        lasts = {
            self._called(i): self._limit(i, e, rows)
            for i, e in self.states.items()
            if _plain(e) != "final"
        }
        if self.problems:
            raise DiagramError(
                f"{self.name}: a lifecycle cannot have {'; '.join(dict.fromkeys(self.problems))}"
            )
        self.names.require_all(self.name)
        return Lifecycle(
            self.name,
            initial=self._called(entry),
            final=final,
            lasts=lasts,
            rows=grouped(rows),
        )

    def _refuse(self, what: str) -> None:
        self.problems.append(what)

    def _called(self, state: str) -> str:
        return self.states[state].get(f"{_OURS}name", state)

    def _take_data(self, datamodel: _Element) -> None:
        taken: dict[str, str] = {}
        for data in _ours(datamodel):
            name = data.get("id", "")
            called = data.get(f"{_OURS}name", name)
            if called in taken.values():
                self._refuse(f"two guards that are called {called}")
            taken[name] = called
        self.guards.update(taken)

    # -- transitions -------------------------------------------------------------------------

    def _rows(self, state: str) -> Iterator[_Read]:
        for element in _ours(self.states[state]):
            if _plain(element) == "transition":
                yield from self._transition(state, element)
            elif _plain(element) not in ("onentry", "onexit"):
                self._refuse(f"<{_plain(element)}> in the state {state}")

    def _transition(self, state: str, element: _Element) -> Iterator[_Read]:
        events = element.get("event", "").split()
        target = element.get("target")
        where = f"the transition of {state} on {' '.join(events) or 'no event'}"
        if not events:
            self._refuse(f"a transition without an event (state {state})")
        if target is not None and target not in self.states:
            self._refuse(f"{where} to {target!r}, which is not one state of the document")
            return
        for event in events:
            if not event.isidentifier():
                self._refuse(f"the event {event!r} (a trigger is one word)")
        number = self.numbers[element]
        line, source = self._number(element, "line", number), self._number(element, "source", 0)
        cond = element.get("cond")
        for event in events:
            yield _Read(
                line,
                source,
                number,
                Row(
                    event,
                    self._called(state),
                    None if target is None else self._called(target),
                    self.names.guard(None if cond is None else self.guards.get(cond, cond)),
                    self.names.emitters(self._raised(element, where)),
                    element.get(f"{_OURS}why", "") or self._reason(element, target),
                ),
            )

    def _number(self, element: _Element, attribute: str, otherwise: int) -> int:
        written = element.get(f"{_OURS}{attribute}", "")
        return int(written) if written.isdecimal() else otherwise

    def _reason(self, element: _Element, target: str | None) -> str:
        """A row that changes nothing needs a reason, and another tool has not written one."""
        return "" if target is not None or len(element) else "ignored in the document"

    def _raised(self, element: _Element, where: str) -> Iterator[str]:
        for action in _ours(element):
            event = action.get("event", "")
            if _plain(action) == "raise" and event:
                yield action.get(f"{_OURS}name", event.removeprefix(self.effect))
            else:
                self._refuse(f"<{_plain(action)}> in {where}")

    # -- time limits -------------------------------------------------------------------------

    def _limit(
        self, state: str, element: _Element, rows: list[tuple[int, Row]]
    ) -> Unbounded | Within:
        if ends := element.get(f"{_OURS}unbounded"):
            return Unbounded(ends)
        if lasts := element.get(f"{_OURS}within"):
            return Within(self._time(lasts, state))
        sent = [each for entry in element.findall(f"{_SCXML}onentry") for each in _ours(entry)]
        left = [each for exit in element.findall(f"{_SCXML}onexit") for each in _ours(exit)]
        if sent or left:
            self._check_timer(state, sent, left)
            backoff = element.get(f"{_OURS}backoff")
            return Within(
                self._time(sent[0].get("delay", "") if sent else "1s", state),
                sent[0].get("event", "") if sent else None,
                None if backoff is None else self._time(backoff, state),
            )
        called = self._called(state)
        leaving = (
            row.trigger
            for _, row in rows
            if row.source == called and row.target not in (None, called)
        )
        return Unbounded(next(leaving, ""))

    def _check_timer(self, state: str, sent: list[_Element], left: list[_Element]) -> None:
        """One delayed event on entry, cancelled on exit, is a time limit; anything else is not."""
        known = {"id", "event", "delay"}
        timers = [each for each in sent if _plain(each) == "send" and set(each.keys()) == known]
        cancels = [each.get("sendid") for each in left if _plain(each) == "cancel"]
        if len(timers) != 1 or len(sent) != 1 or cancels != [timers[0].get("id")]:
            self._refuse(
                f"actions on entry or exit of {state} other than one delayed event that is cancelled"
            )

    def _time(self, text: str, state: str) -> int:
        """A CSS2 time in ns."""
        found = _TIME.fullmatch(text.strip())
        ns = Decimal(found[1]) * _UNITS[found[2]] if found else Decimal("0.5")
        if ns != int(ns):
            self._refuse(f"the time {text!r} of {state}")
            return 1
        return int(ns)


def _order(read: _Read) -> tuple[int, int, int]:
    return read[:3]


def _ours(element: _Element) -> Iterator[_Element]:
    """The children in the namespace of SCXML."""
    return (each for each in element if isinstance(each.tag, str) and each.tag.startswith(_SCXML))


def _plain(element: _Element) -> str:
    return str(element.tag).removeprefix(_SCXML)
