"""Mermaid's ``stateDiagram-v2``, which GitHub and many wikis draw in place.

The limits of a state and what stays in it are lines of its description. Mermaid cannot colour
arrows, so a path is told by numbers and by the classes of the states.
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
        # the first description is the title, also where it only repeats the identifier
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
    """Mermaid's own entities for what would end a label or start something else."""
    return re.sub(
        r"[^\w \-.,/()\[\]'+=×!?]", lambda found: f"#{ord(found.group())};", one_line(text)
    )


def _line(row: Row, mark: Mark) -> str:
    words = escape(label(row))
    return f"({escape(mark.note)}) {words}" if mark.note else words


def _classes(lifecycle: Lifecycle, ids: dict[str, str], paint: Paint) -> list[str]:
    looks = {
        Tone.WALKED: "walked fill:#d6e6ff,stroke:#0b57d0",
        Tone.CURRENT: "current fill:#ffe9a8,stroke:#0b57d0,stroke-width:3px,font-weight:bold",
    }
    lines = []
    for tone, look in looks.items():
        members = [ids[s] for s in lifecycle.states if paint.state(s).tone is tone]
        if members:
            lines.append(f"    classDef {look}")
            lines.append(f"    class {','.join(members)} {tone.value}")
    return lines
