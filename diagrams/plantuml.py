"""PlantUML's state diagrams."""

from __future__ import annotations

import re

from quadriga.diagrams.arrows import arrows, staying
from quadriga.diagrams.wording import identifiers, label, limit, one_line, readable
from quadriga.fsm import Lifecycle

__all__ = ["escape", "plantuml"]

_RESERVED = frozenset(
    {"as", "end", "enduml", "hide", "note", "scale", "skinparam", "startuml", "state", "title"}
)

# PlantUML styles text between double marks and reads angle brackets as tags.
_MARKS = re.compile(r"""[<>~"\\|#{}%&^=@*]|\[\[|]]|//|__|--|\.\.""")


def plantuml(lifecycle: Lifecycle) -> str:
    """The diagram as PlantUML text."""
    ids = identifiers(lifecycle.states, _RESERVED)
    lines = ["@startuml", "hide empty description"]
    for state in lifecycle.states:
        name = ids[state]
        lines.append(f'state "{escape(readable(state))}" as {name}')
        if until := limit(lifecycle, state):
            lines.append(f"{name} : {escape(until)}")
        for row in staying(lifecycle, state):
            lines.append(f"{name} : {escape(label(row))} (stays)")
    lines.append(f"[*] --> {ids[lifecycle.initial]}")
    for arrow in arrows(lifecycle):
        text = "\\n".join(escape(label(row)) for row in arrow.rows)
        lines.append(f"{ids[arrow.source]} --> {ids[arrow.target]} : {text}")
    lines += [f"{ids[state]} --> [*]" for state in lifecycle.final]
    return "\n".join(lines) + "\n@enduml\n"


def escape(text: str) -> str:
    """Text with code points in place of the characters that PlantUML would read as markup."""
    return _MARKS.sub(lambda m: "".join(f"<U+{ord(c):04X}>" for c in m.group()), one_line(text))
