"""Lifecycles from SCXML documents: ours, and those of other tools that use the same subset.

The subset: ``state`` and ``final``, also nested and with ``history``, transitions with events, conditions
and targets, ``raise`` in transitions, on entry and on exit, and one delayed ``send`` on entry that is
cancelled on exit. What a
lifecycle cannot express is refused, all of it in one error; nothing is left out silently. Elements and
attributes of other namespaces are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from xml.etree import ElementTree

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.formats.scxml import NAMESPACE
from quadriga.diagrams.reading import Functions, Names, grouped, made_from
from quadriga.fsm import Lifecycle, Row, Unbounded, Within
from quadriga.fsm.history import History
from quadriga.fsm.nesting import SEPARATOR

_SCXML = "{http://www.w3.org/2005/07/scxml}"
_OURS = f"{{{NAMESPACE}}}"
_NONE: Mapping[str, object] = {}

_UNITS = {"ms": 10**6, "s": SECOND, "m": MINUTE, "h": HOUR, "d": 24 * HOUR}
_TIME = re.compile(r"(\d+|\d*\.\d+)(ms|s|m|h|d)")

_Element = ElementTree.Element
#: rows with the numbers of their lines
Lines = list[tuple[int, Row]]


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
        #: the composites around states, and those of histories
        self.parents: dict[str, str | None] = {}
        self.histories: dict[str, str] = {}
        #: the arguments of the lifecycle inside of each composite, and of the whole
        self.tables: dict[str | None, dict[str, Any]] = {}
        #: the transitions in their order; without our numbers each is a line of its own
        self.numbers = {each: n for n, each in enumerate(root.iter(f"{_SCXML}transition"))}
        #: the names of guards by the data that stand for them
        self.guards: dict[str, str] = {}
        effect = root.get(f"{_OURS}effects")
        self.effect = f"{effect}." if effect else ""

    def lifecycle(self) -> Lifecycle:
        self._collect(self.root, None)
        for state, element in self.states.items():
            if _plain(element) == "final":
                for inner in _ours(element):
                    if not (_plain(inner) == "onentry" and all(map(_is_raise, _ours(inner)))):
                        self._refuse(f"<{_plain(inner)}> in the final state {state}")
        read = sorted((row for each in self.states for row in self._rows(each)), key=_order)
        rows = [(line, row) for line, _, _, row in read]
        table = self._table(None, self._by_table(rows))
        if self.problems:
            raise DiagramError(
                f"{self.name}: a lifecycle cannot have {'; '.join(dict.fromkeys(self.problems))}"
            )
        self.names.require_all(self.name)
        return made_from(table)

    def _collect(self, around: _Element, parent: str | None) -> None:
        """The states, those around before those inside."""
        for element in _ours(around):
            match _plain(element):
                case "state" | "final" as kind:
                    state = element.get("id", f"state {len(self.states) + 1}")
                    self.states[state] = element
                    self.parents[state] = parent
                    if kind == "state":
                        self._collect(element, state)
                case "history" if parent is not None:
                    self.histories[element.get("id", "")] = parent
                    self._check_history(element, parent)
                case "datamodel" if parent is None:
                    self._take_data(element)
                case "transition" | "onentry" | "onexit" if parent is not None:
                    pass
                case other:
                    self._refuse(f"<{other}>" + (f" in the state {parent}" if parent else ""))

    # -- tables ------------------------------------------------------------------------------

    def _by_table(self, rows: Lines) -> dict[str | None, Lines]:
        """The rows of each composite, and of the whole (``None``)."""
        composites = [None, *(s for s in self.states if self._children(s))]
        found: dict[str | None, Lines] = {each: [] for each in composites}
        first = {c: self._number(self.states[c], "first", -1) for c in composites if c is not None}
        for line, row in rows:
            if all(number >= 0 for number in first.values()):
                home = max(
                    (c for c in first if first[c] <= line), key=first.__getitem__, default=None
                )
            else:  # of another tool: the innermost composite around both ends
                target = row.target.state if isinstance(row.target, History) else row.target
                ends = [each for each in (row.source, target) if each is not None]
                homes = (c for c in first if all(each in self._below(c) for each in ends))
                home = max(homes, key=lambda c: len(self._called(c)), default=None)
            found[home].append((line, row))
        return found

    def _table(self, composite: str | None, by_table: dict[str | None, Lines]) -> dict[str, Any]:
        """The arguments of the lifecycle inside of a composite, or of the whole."""
        element = self.root if composite is None else self.states[composite]
        prefix = "" if composite is None else f"{self._called(composite)}{SEPARATOR}"
        children = self._children(composite)
        entry = element.get("initial") or next(iter(children), "")
        if entry not in children:
            where = f" of {composite}" if composite else ""
            self._refuse(f"the initial state {entry!r}{where}, which is not there")
        own_name = prefix.removesuffix(SEPARATOR).rpartition(SEPARATOR)[2]
        table: dict[str, Any] = {
            "name": element.get(f"{_OURS}inside", own_name) if composite else self.name,
            "initial": self._called(entry).removeprefix(prefix) if entry in self.states else "",
            "final": (),
            "lasts": {},
            "rows": grouped((line, _within(row, prefix)) for line, row in by_table[composite]),
            "on_enter": {},
            "on_exit": {},
            "inside": {},
        }
        self.tables[composite] = table
        for state in children:
            name = self._called(state).removeprefix(prefix)
            for what, when in (("on_enter", "onentry"), ("on_exit", "onexit")):
                if raised := self._actions(state, when):
                    table[what][name] = self.names.emitters(raised)
            self._take_limit(state, composite, name, by_table)
            if self._children(state):
                table["inside"][name] = self._table(state, by_table)
        return table

    def _take_limit(
        self, state: str, composite: str | None, name: str, by_table: dict[str | None, Lines]
    ) -> None:
        """Declare how long a state lasts in the table that has the trigger: its own, or one around."""
        element, table = self.states[state], self.tables[composite]
        if _plain(element) == "final":
            table["final"] += (name,)
            return
        called = self._called(state)
        leaving = [
            row.trigger
            for _, row in by_table[composite]
            if row.target not in (None, called)
            and (row.source == called or self._inside(row, state))
        ]
        limit = self._limit(state, element, leaving)
        trigger = limit.ends if isinstance(limit, Unbounded) else limit.then
        home = composite
        while (
            home is not None
            and trigger is not None
            and not self._legal(state, trigger, by_table[home])
        ):
            home = self.parents[home]
        ends = element.get(f"{_OURS}final") == "true" or (composite is not None and not leaving)
        if ends and not self._children(state):
            table["final"] += (name,)
        elif home == composite:
            table["lasts"][name] = limit
        else:
            table["lasts"][name] = Unbounded(leaving[0] if leaving else "")
        if home != composite:
            around = "" if home is None else f"{self._called(home)}{SEPARATOR}"
            self.tables[home]["lasts"][called.removeprefix(around)] = limit

    def _legal(self, state: str, trigger: str, rows: Lines) -> bool:
        called = self._called(state)
        return any(
            row.trigger == trigger and f"{called}{SEPARATOR}".startswith(f"{row.source}{SEPARATOR}")
            for _, row in rows
        ) or any(row.trigger == trigger and self._inside(row, state) for _, row in rows)

    def _inside(self, row: Row, state: str) -> bool:
        return str(row.source).startswith(f"{self._called(state)}{SEPARATOR}") and bool(
            self._children(state)
        )

    def _children(self, state: str | None) -> list[str]:
        return [each for each, parent in self.parents.items() if parent == state]

    def _below(self, composite: str) -> set[str]:
        """The names of all states inside of a composite."""
        found = {self._called(each) for each in self._children(composite)}
        return found.union(*(self._below(each) for each in self._children(composite)))

    def _refuse(self, what: str) -> None:
        self.problems.append(what)

    def _called(self, state: str) -> str:
        own = self.states[state].get(f"{_OURS}name", state)
        parent = self.parents[state]
        if parent is None:
            return own
        around = f"{self._called(parent)}{SEPARATOR}"
        return around + own.removeprefix(around)

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

    def _transition(self, state: str, element: _Element) -> Iterator[_Read]:
        events = element.get("event", "").split()
        target = element.get("target")
        where = f"the transition of {state} on {' '.join(events) or 'no event'}"
        if not events:
            self._refuse(f"a transition without an event (state {state})")
        if target is not None and target not in self.states and target not in self.histories:
            self._refuse(f"{where} to {target!r}, which is not one state of the document")
            return
        to = self._end(target)
        if to in self._below(state) and element.get("type") != "internal":
            self._refuse(f"{where} to {target!r}, which leaves {state} (its type is not internal)")
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
                    to,
                    self.names.guard(None if cond is None else self.guards.get(cond, cond)),
                    self.names.emitters(self._raised(element, where)),
                    element.get(f"{_OURS}why", "") or self._reason(element, target),
                ),
            )

    def _end(self, target: str | None) -> Any:
        """The target of a row."""
        if target is None or target in self.states:
            return None if target is None else self._called(target)
        deep = next(e for e in self.root.iter(f"{_SCXML}history") if e.get("id") == target)
        return History(self._called(self.histories[target]), deep.get("type") == "deep")

    def _check_history(self, element: _Element, composite: str) -> None:
        """An entity without history enters the initial state, as in a lifecycle."""
        children = [e.get("id") for e in _ours(self.states[composite]) if _plain(e) == "state"]
        initial = self.states[composite].get("initial") or next(iter(children), None)
        if [each.get("target") for each in _ours(element)] != [initial]:
            self._refuse(f"a history of {composite} without a transition to its initial state")

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

    def _actions(self, state: str, when: str) -> list[str]:
        """The emitters on entry or exit of a state."""
        element = self.states[state]
        done = [each for block in element.findall(f"{_SCXML}{when}") for each in _ours(block)]
        raised = filter(_is_raise, done)
        return [
            each.get(f"{_OURS}name", each.get("event", "").removeprefix(self.effect))
            for each in raised
        ]

    def _limit(self, state: str, element: _Element, leaving: list[str]) -> Unbounded | Within:
        if ends := element.get(f"{_OURS}unbounded"):
            return Unbounded(ends)
        if lasts := element.get(f"{_OURS}within"):
            return Within(self._time(lasts, state))
        sent = [each for entry in element.findall(f"{_SCXML}onentry") for each in _ours(entry)]
        left = [each for exit in element.findall(f"{_SCXML}onexit") for each in _ours(exit)]
        sent = [each for each in sent if _plain(each) != "raise"]
        left = [each for each in left if _plain(each) != "raise"]
        if sent or left:
            self._check_timer(state, sent, left)
            backoff = element.get(f"{_OURS}backoff")
            return Within(
                self._time(sent[0].get("delay", "") if sent else "1s", state),
                sent[0].get("event", "") if sent else None,
                None if backoff is None else self._time(backoff, state),
            )
        return Unbounded(leaving[0] if leaving else "")

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


def _is_raise(element: _Element) -> bool:
    return _plain(element) == "raise"


def _within(row: Row, prefix: str) -> Row:
    """The row with the names that the states have in the table of their composite."""
    target = row.target
    if isinstance(target, History):
        target = replace(target, state=target.state.removeprefix(prefix))
    elif target is not None:
        target = str(target).removeprefix(prefix)
    return replace(row, source=str(row.source).removeprefix(prefix), target=target)


def _order(read: _Read) -> tuple[int, int, int]:
    return read[:3]


def _ours(element: _Element) -> Iterator[_Element]:
    """The children in the namespace of SCXML."""
    return (each for each in element if isinstance(each.tag, str) and each.tag.startswith(_SCXML))


def _plain(element: _Element) -> str:
    return str(element.tag).removeprefix(_SCXML)
