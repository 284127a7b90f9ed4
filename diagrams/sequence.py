"""Sequence diagrams of message flows: sender, receiver and time of each message.

The time counts from the first message and is shown only where it changes. With a virtual clock many
messages have the same time, and the diagram should show the waits between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.formats.mermaid import DARK_THEME
from quadriga.diagrams.formats.mermaid import escape as escape_mermaid
from quadriga.diagrams.formats.plantuml import dark_theme
from quadriga.diagrams.formats.plantuml import escape as escape_plantuml
from quadriga.diagrams.formats.style import DARK, LIGHT
from quadriga.diagrams.sequence_svg import Line, sequence_svg
from quadriga.diagrams.wording import elapsed, one_line


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``note`` stands at the receiver; sender and receiver may be the same."""

    time_ns: int
    sender: str
    receiver: str
    label: str
    note: str = ""


class AnyMessage(Protocol):
    """What ``sequence`` reads: a ``Message``, or an ``Exchange`` of ``quadriga.si.Recorder``."""

    @property
    def time_ns(self) -> int: ...
    @property
    def sender(self) -> str: ...
    @property
    def receiver(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def note(self) -> str: ...


_Messages = tuple[AnyMessage, ...]


def sequence(events: Iterable[AnyMessage], format: str = "mermaid", *, dark: bool = False) -> str:
    """The messages, in their order, as ``mermaid``, ``plantuml``, ``svg`` or plain ``text``.

    Participants stand in the order of their first message. ``svg`` needs no graphviz. ``dark`` is for
    pages with a dark background. Raises ``DiagramError`` for an unknown format, for dark text, and for a
    message that is earlier than the one before it.
    """
    messages = tuple(events)
    for before, message in pairwise(messages):
        if message.time_ns < before.time_ns:
            raise DiagramError(f"message {message.label!r} is earlier than {before.label!r}")
    if format not in _WRITERS:
        raise DiagramError(f"unknown format {format!r}; there are {', '.join(SEQUENCE_FORMATS)}")
    if dark and format == "text":
        raise DiagramError("text cannot show dark colours; these can: mermaid, plantuml, svg")
    return "\n".join(_WRITERS[format](messages, dark)) + "\n"


def _participants(messages: _Messages) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for m in messages for name in (m.sender, m.receiver)))


def _moments(messages: _Messages) -> list[tuple[str, AnyMessage]]:
    """Each message with the time to show before it; an empty text if the time has not changed."""
    moments, before = [], None
    for message in messages:
        passed = message.time_ns != before
        moments.append((elapsed(message.time_ns - messages[0].time_ns) if passed else "", message))
        before = message.time_ns
    return moments


# -- mermaid and plantuml ------------------------------------------------------------------------


def _mermaid(messages: _Messages, dark: bool) -> list[str]:
    names = _participants(messages)
    ids = {name: f"p{number}" for number, name in enumerate(names)}
    lines = [*([DARK_THEME] if dark else []), "sequenceDiagram"]
    lines += [f"    participant {ids[name]} as {escape_mermaid(name)}" for name in names]
    across = ",".join(dict.fromkeys(ids[name] for name in (names[0], names[-1]))) if names else ""
    for time, m in _moments(messages):
        if time and m is not messages[0]:
            lines.append(f"    Note over {across}: after {time}")
        lines.append(f"    {ids[m.sender]}->>{ids[m.receiver]}: {escape_mermaid(m.label) or ' '}")
        if m.note:
            lines.append(f"    Note right of {ids[m.receiver]}: {escape_mermaid(m.note)}")
    return lines


def _plantuml(messages: _Messages, dark: bool) -> list[str]:
    names = _participants(messages)
    ids = {name: f"p{number}" for number, name in enumerate(names)}
    lines = ["@startuml", *(dark_theme(DARK) if dark else [])]
    lines += [f'participant "{escape_plantuml(name)}" as {ids[name]}' for name in names]
    for time, m in _moments(messages):
        if time and m is not messages[0]:
            lines.append(f"== after {time} ==")
        words = escape_plantuml(m.label)
        lines.append(f"{ids[m.sender]} -> {ids[m.receiver]} : {words}")
        if m.note:
            lines.append(f"note right of {ids[m.receiver]} : {escape_plantuml(m.note)}")
    return [*lines, "@enduml"]


# -- svg -----------------------------------------------------------------------------------------


def _svg(messages: _Messages, dark: bool) -> list[str]:
    names = _participants(messages)
    index = {name: number for number, name in enumerate(names)}
    lines = [
        Line(index[m.sender], index[m.receiver], m.label, m.note, time)
        for time, m in _moments(messages)
    ]
    return [sequence_svg(names, lines, DARK if dark else LIGHT)]


# -- plain text ----------------------------------------------------------------------------------


def _text(messages: _Messages, dark: bool) -> list[str]:
    """Lifelines as columns, for golden files and terminals."""
    moments = _moments(messages)
    names = [one_line(name) for name in _participants(messages)]
    index = {name: number for number, name in enumerate(_participants(messages))}
    left = max([4, *(len(time) for time, _ in moments)]) + 2
    columns = _columns(messages, names, index, left + (len(names[0]) // 2 if names else 0))
    head = "time"
    for name, column in zip(names, columns, strict=True):
        head = head.ljust(column - len(name) // 2) + name
    lines = [head.rstrip()]
    for time, m in moments:
        here, there = columns[index[m.sender]], columns[index[m.receiver]]
        canvas = list(time.ljust((columns[-1] if columns else 0) + 1))
        for column in columns:
            canvas[column] = "|"
        label, note = one_line(m.label), one_line(m.note)
        if here == there:
            _write(canvas, here + 1, f"-. {label}")
        else:
            low, high = min(here, there), max(here, there)
            shaft = f" {label} ".center(high - low - 2, "-")
            _write(canvas, low + 1, f"{shaft}>" if here < there else f"<{shaft}")
        line = "".join(canvas).rstrip()
        lines.append(f"{line}  ({note})" if note else line)
    return lines


def _columns(
    messages: _Messages, names: list[str], index: Mapping[str, int], first: int
) -> list[int]:
    """The columns of the lifelines, far enough apart for the names and for the labels between."""
    columns = [first] if names else []
    for number in range(1, len(names)):
        at = columns[-1] + (len(names[number - 1]) + len(names[number])) // 2 + 3
        for m in messages:
            low, high = sorted((index[m.sender], index[m.receiver]))
            if low < high == number:
                at = max(at, columns[low] + len(one_line(m.label)) + 8)
            elif low == high == number - 1:
                at = max(at, columns[low] + len(one_line(m.label)) + 6)
        columns.append(at)
    return columns


def _write(canvas: list[str], at: int, text: str) -> None:
    canvas.extend(" " * (at + len(text) - len(canvas)))
    canvas[at : at + len(text)] = text


_WRITERS: Mapping[str, Callable[[_Messages, bool], list[str]]] = {
    "mermaid": _mermaid,
    "plantuml": _plantuml,
    "svg": _svg,
    "text": _text,
}
SEQUENCE_FORMATS = tuple(_WRITERS)
