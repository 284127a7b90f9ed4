"""Mermaid's ``stateDiagram-v2``, which GitHub and many wikis draw in place.

The description of a state has its time limit and the rows that do not change it. Mermaid cannot
colour arrows, so counts and numbers on the arrows show coverage and a path, and classes of the states
show where an entity was. It has no history either: the label of an arrow says that it leads to one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quadriga.diagrams.formats.arrows import Junction, arrows, junctions, sharing_effects, staying
from quadriga.diagrams.formats.style import Palette, Style
from quadriga.diagrams.nesting import listed, short_name, tree
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.diagrams.wording import (
    actions,
    identifiers,
    label,
    limit,
    one_line,
    readable,
    trigger,
    unused_name,
)
from quadriga.fsm import Lifecycle, Row
from quadriga.fsm.history import History

#: The first line of a dark diagram: without it Mermaid takes the theme of the page.
DARK_THEME = '%%{init: {"theme": "dark"}}%%'

_RESERVED = frozenset(
    {"accdescr", "acctitle", "as", "choice", "class", "classdef", "click", "default", "direction"}
    | {"end", "fork", "hide", "href", "join", "note", "root", "scale", "state", "statediagram"}
    | {"style"}
)


def mermaid(lifecycle: Lifecycle, paint: Paint | None = None, style: Style | None = None) -> str:
    """The diagram as Mermaid text."""
    paint, style = paint or Paint(), style or Style()
    ids = identifiers((*lifecycle.states, *lifecycle.composites), _RESERVED)
    lines = [DARK_THEME] if style.dark else []
    lines.append("stateDiagram-v2")
    if style.left_to_right:
        lines.append("    direction LR")
    for state in lifecycle.children:
        lines += _state(lifecycle, state, ids, paint)
    lines.append(f"    [*] --> {ids[lifecycle.entry]}")
    joined = junctions(lifecycle)
    for arrow in arrows(lifecycle, joined):
        groups = sharing_effects(arrow.rows, paint)
        text = "<br/>".join(_line(rows, paint.row(rows[0])) for rows in groups)
        end, note = _end(arrow.target, ids)
        lines.append(f"    {ids[arrow.source]} --> {end} : {text}{note}")
    for junction in joined:
        lines += _junction(junction, ids, paint)
    lines += [f"    {ids[state]} --> [*]" for state in lifecycle.final]
    lines += _classes(lifecycle, ids, paint, style.palette)
    return "\n".join(lines) + "\n"


def _state(lifecycle: Lifecycle, state: str, ids: dict[str, str], paint: Paint) -> list[str]:
    name = ids[state]
    title = readable(short_name(lifecycle, state))
    # without a colon, which ends a description: Mermaid 11 does not decode entities there
    until = limit(lifecycle, state).replace(": ", " until ")
    described = [escape(text) for text in (title, paint.state(state).note, until) if text]
    described += map(escape, actions(lifecycle, state))
    described += [
        f"{_line([row], paint.row(row))} {listed(lifecycle, row)}"
        for row in staying(lifecycle, state)
    ]
    composite = lifecycle.composites.get(state)
    if composite is None:
        # Mermaid takes the first description for the title, so it is written even if it only repeats
        # the identifier.
        return [f"    {name} : {text}" for text in described]
    inner = [line for child in composite.children for line in _state(lifecycle, child, ids, paint)]
    inner.append(f"    [*] --> {ids[composite.initial]}")
    heading = f'    state "{"<br/>".join(described)}" as {name} {{'
    return [heading, *(f"    {line}" for line in inner), "    }"]


def _end(target: str | History, ids: dict[str, str]) -> tuple[str, str]:
    """Where an arrow ends, and what its label says of it."""
    if isinstance(target, History):
        return ids[target.state], f"<br/>({'deep ' if target.deep else ''}history)"
    return ids[target], ""


def escape(text: str) -> str:
    """Text with Mermaid's entities in place of the characters that would end or change a label."""
    return re.sub(
        r"[^\w \-.,/()\[\]'+=×!?]", lambda found: f"#{ord(found.group())};", one_line(text)
    )


def _line(rows: Sequence[Row], mark: Mark) -> str:
    return _noted(escape(label(*rows)), mark)


def _noted(words: str, mark: Mark) -> str:
    return f"({escape(mark.note)}) {words}" if mark.note else words


def _junction(junction: Junction, ids: dict[str, str], paint: Paint) -> list[str]:
    """A branch with the trigger from each source, and one stem with the effects of all of them."""
    name = unused_name(f"line{junction.line}", ids.values())
    lines = [f"    state {name} <<choice>>"]
    for row in junction.rows:
        words = _noted(escape(trigger(row)), paint.row(row))
        lines.append(f"    {ids[row.source]} --> {name} : {words}")
    words = escape(label(junction.rows[0]))
    end, note = _end(junction.target, ids)
    return [*lines, f"    {name} --> {end} : {words}{note}"]


def _classes(
    lifecycle: Lifecycle, ids: dict[str, str], paint: Paint, palette: Palette
) -> list[str]:
    walked, current = palette.tones[Tone.WALKED], palette.tones[Tone.CURRENT]
    styles = {
        Tone.WALKED: f"walked fill:{walked.fill},stroke:{walked.arrow}",
        Tone.CURRENT: f"current fill:{current.fill},stroke:{current.border},stroke-width:3px,"
        "font-weight:bold",
    }
    lines = []
    for tone, style in styles.items():
        members = [ids[state] for state in tree(lifecycle) if paint.state(state).tone is tone]
        if members:
            lines.append(f"    classDef {style}")
            lines.append(f"    class {','.join(members)} {tone.value}")
    return lines
