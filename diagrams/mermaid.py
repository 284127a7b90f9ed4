"""Mermaid's ``stateDiagram-v2``, which GitHub and many wikis draw in place.

The description of a state has its time limit and the rows that do not change it. Mermaid cannot
colour arrows, so numbers on the arrows and classes of the states show a path.
"""

from __future__ import annotations

import re

from quadriga.diagrams.arrows import arrows, staying
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.diagrams.wording import identifiers, label, limit, one_line, readable
from quadriga.fsm import Lifecycle, Row

__all__ = ["escape", "mermaid"]

_RESERVED = frozenset(
    {"accdescr", "acctitle", "as", "choice", "class", "classdef", "click", "default", "direction"}
    | {"end", "fork", "hide", "href", "join", "note", "root", "scale", "state", "statediagram"}
    | {"style"}
)


def mermaid(lifecycle: Lifecycle, paint: Paint | None = None) -> str:
    """The diagram as Mermaid text."""
    paint = paint or Paint()
    ids = identifiers(lifecycle.states, _RESERVED)
    lines = ["stateDiagram-v2"]
    for state in lifecycle.states:
        name = ids[state]
        # Mermaid takes the first description for the title, so it is written even if it only repeats
        # the identifier.
        described = [readable(state), paint.state(state).note, limit(lifecycle, state)]
        lines += [f"    {name} : {escape(text)}" for text in described if text]
        for row in staying(lifecycle, state):
            lines.append(f"    {name} : {_line(row, paint.row(row))} (stays)")
    lines.append(f"    [*] --> {ids[lifecycle.initial]}")
    for arrow in arrows(lifecycle):
        text = "<br/>".join(_line(row, paint.row(row)) for row in arrow.rows)
        lines.append(f"    {ids[arrow.source]} --> {ids[arrow.target]} : {text}")
    lines += [f"    {ids[state]} --> [*]" for state in lifecycle.final]
    lines += _classes(lifecycle, ids, paint)
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text with Mermaid's entities in place of the characters that would end or change a label."""
    return re.sub(
        r"[^\w \-.,/()\[\]'+=×!?]", lambda found: f"#{ord(found.group())};", one_line(text)
    )


def _line(row: Row, mark: Mark) -> str:
    words = escape(label(row))
    return f"({escape(mark.note)}) {words}" if mark.note else words


def _classes(lifecycle: Lifecycle, ids: dict[str, str], paint: Paint) -> list[str]:
    styles = {
        Tone.WALKED: "walked fill:#d6e6ff,stroke:#0b57d0",
        Tone.CURRENT: "current fill:#ffe9a8,stroke:#0b57d0,stroke-width:3px,font-weight:bold",
    }
    lines = []
    for tone, style in styles.items():
        members = [ids[state] for state in lifecycle.states if paint.state(state).tone is tone]
        if members:
            lines.append(f"    classDef {style}")
            lines.append(f"    class {','.join(members)} {tone.value}")
    return lines
