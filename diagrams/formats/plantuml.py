"""PlantUML's state diagrams."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quadriga.diagrams.formats.arrows import (
    Junction,
    arrows,
    junctions,
    sharing_effects,
    staying,
    stem_tone,
)
from quadriga.diagrams.formats.style import Palette, Style
from quadriga.diagrams.nesting import listed, short_name
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

_RESERVED = frozenset(
    {"as", "end", "enduml", "hide", "note", "scale", "skinparam", "startuml", "state", "title"}
)

# PlantUML styles text between double marks and reads angle brackets as tags.
_MARKS = re.compile(r"""[<>~"\\|#{}%&^=@*]|\[\[|]]|//|__|--|\.\.""")


#: How an arrow of a tone is drawn beside its colour, and the border of a state.
_ARROWS = {Tone.COVERED: ",bold", Tone.MISSED: ",dashed", Tone.WALKED: ",bold"}
_BORDERS = {Tone.CURRENT: ";line.bold"}


def plantuml(lifecycle: Lifecycle, paint: Paint | None = None, style: Style | None = None) -> str:
    """The diagram as PlantUML text."""
    paint, style = paint or Paint(), style or Style()
    palette = style.palette
    ids = identifiers((*lifecycle.states, *lifecycle.composites), _RESERVED)
    lines = ["@startuml", "hide empty description"]
    if style.left_to_right:
        lines.append("left to right direction")
    if style.dark:
        lines += dark_theme(palette)
    for state in lifecycle.children:
        lines += _state(lifecycle, state, ids, paint, palette)
    lines.append(f"[*] --> {ids[lifecycle.entry]}")
    joined = junctions(lifecycle)
    for arrow in arrows(lifecycle, joined, paint):
        groups = sharing_effects(arrow.rows, paint)
        text = "\\n".join(_line(rows, paint.row(rows[0]), palette) for rows in groups)
        ends = _ends(
            ids[arrow.source], _end(arrow.target, ids), paint.row(arrow.rows[0]).tone, palette
        )
        lines.append(f"{ends} : {text}")
    for junction in joined:
        lines += _junction(junction, ids, paint, palette)
    lines += [f"{ids[state]} --> [*]" for state in lifecycle.final]
    return "\n".join(lines) + "\n@enduml\n"


def _state(
    lifecycle: Lifecycle, state: str, ids: dict[str, str], paint: Paint, palette: Palette
) -> list[str]:
    name, mark = ids[state], paint.state(state)
    title = escape(readable(short_name(lifecycle, state)))
    lines = [f'state "{title}" as {name}{_box(mark.tone, palette)}']
    if composite := lifecycle.composites.get(state):
        lines[0] += " {"
        for child in composite.children:
            inner = _state(lifecycle, child, ids, paint, palette)
            lines += [f"  {line}" for line in inner]
        lines += [f"  [*] --> {ids[composite.initial]}", "}"]
    if mark.note:
        lines.append(f"{name} : <b>{escape(mark.note)}</b>")
    if until := limit(lifecycle, state):
        faded = palette.tones[mark.tone].faded
        lines.append(f"{name} : {_coloured(escape(until), faded)}")
    lines += [f"{name} : {escape(text)}" for text in actions(lifecycle, state)]
    for row in staying(lifecycle, state):
        words = f"{escape(label(row))} {listed(lifecycle, row)}"
        lines.append(f"{name} : {_noted(words, paint.row(row), palette)}")
    return lines


def _end(target: str | History, ids: dict[str, str]) -> str:
    """Where an arrow ends: PlantUML draws the history of a composite in it."""
    if isinstance(target, History):
        return f"{ids[target.state]}[{'H*' if target.deep else 'H'}]"
    return ids[target]


def dark_theme(palette: Palette) -> list[str]:
    """The style for a page with a dark background, of every kind of diagram that we write."""
    everything = {"Background": palette.fill, "Line": palette.line, "Font": palette.text}
    rules = {
        "root": everything,
        "document": {"Background": palette.page},
        "circle": {"Background": palette.line},
    }
    lines = ["<style>"]
    for selector, colours in rules.items():
        lines.append(f"{selector} {{")
        lines += [f"  {name}Color {colour}" for name, colour in colours.items()]
        lines.append("}")
    return [*lines, "</style>"]


def escape(text: str) -> str:
    """Text with code points in place of the characters that PlantUML would read as markup."""
    return _MARKS.sub(lambda m: "".join(f"<U+{ord(c):04X}>" for c in m.group()), one_line(text))


def _line(rows: Sequence[Row], mark: Mark, palette: Palette) -> str:
    return _noted(escape(label(*rows)), mark, palette)


def _noted(words: str, mark: Mark, palette: Palette) -> str:
    """Words in the colour of the mark, with its note."""
    noted = f"<b>({escape(mark.note)})</b> {words}" if mark.note else words
    return _coloured(noted, palette.tones[mark.tone].text)


def _coloured(words: str, colour: str) -> str:
    return f"<color:{colour}>{words}</color>" if colour else words


def _ends(source: str, target: str, tone: Tone, palette: Palette) -> str:
    colour = palette.tones[tone].arrow
    stroke = f"[{colour}{_ARROWS.get(tone, '')}]" if colour else ""
    return f"{source} -{stroke}-> {target}"


def _box(tone: Tone, palette: Palette) -> str:
    """The colours of a state's box, as PlantUML writes them after its name."""
    colours = palette.tones[tone]
    border = f"line:{colours.border[1:]}" if colours.border else ""
    text = f"text:{colours.faded[1:]}" if colours.faded else ""
    written = ";".join(filter(None, (colours.fill.removeprefix("#"), border, text)))
    return f" #{written}{_BORDERS.get(tone, '')}" if written else ""


def _junction(junction: Junction, ids: dict[str, str], paint: Paint, palette: Palette) -> list[str]:
    """A branch with the trigger from each source, and one stem with the effects of all of them."""
    name = unused_name(f"line{junction.line}", ids.values())
    lines = [f"state {name} <<choice>>"]
    for row in junction.rows:
        mark = paint.row(row)
        words = _noted(escape(trigger(row)), mark, palette)
        lines.append(f"{_ends(ids[row.source], name, mark.tone, palette)} : {words}")
    stem = stem_tone(junction, paint)
    words = _line(junction.rows[:1], Mark(stem), palette)
    return [*lines, f"{_ends(name, _end(junction.target, ids), stem, palette)} : {words}"]
