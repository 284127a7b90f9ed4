"""The coordinates with which the pages of the web server draw the lifecycles.

graphviz computes the coordinates when a table changes, and the result is committed:
``python -m quadriga.web.pages.layout web/pages/data/layouts.json``. The pages draw from that file,
so a running server needs no graphviz.

All lengths are in pixels, with the origin at the upper left corner. States and labels are given to
graphviz as boxes of a fixed size, so the layout does not depend on the fonts of the machine.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from quadriga.diagrams.formats.image import graphviz_version, image
from quadriga.diagrams.wording import readable
from quadriga.fsm import LIFECYCLES, Lifecycle

#: Width and height of the box of a state.
STATE_SIZE: Final = (116, 48)
#: A label breaks after at most this many characters, unless one word is longer.
LABEL_COLUMNS: Final = 12
#: Room for one character of a label, in the widest of the pages' fonts.
CHARACTER_WIDTH: Final = 7.8
#: Height of one line of a label.
LINE_HEIGHT: Final = 16
#: The narrowest label: the page writes a count below the triggers.
LEAST_LABEL_WIDTH: Final = 48
#: Empty space around the whole picture.
MARGIN: Final = 6

#: graphviz measures nodes in inches and everything else in points; one point is one pixel here.
_POINTS_PER_INCH: Final = 72


def write_layouts(path: str | Path) -> None:
    """Write the layouts of the scheduler's lifecycles to a JSON file.

    Raises ``DiagramError`` where graphviz is missing; the file stays as it is then.
    """
    text = layout_document()
    Path(path).write_text(text, encoding="utf-8")


def layout_document(lifecycles: Iterable[Lifecycle] = tuple(LIFECYCLES.values())) -> str:
    """The layouts as JSON text, with one line for each state and each edge."""
    layouts = ",\n".join(
        f"    {json.dumps(lifecycle.name)}: {_block(_layout(lifecycle))}"
        for lifecycle in lifecycles
    )
    version = json.dumps(graphviz_version())
    return f'{{\n  "graphviz": {version},\n  "lifecycles": {{\n{layouts}\n  }}\n}}\n'


def layout_source(lifecycle: Lifecycle) -> str:
    """The DOT text that graphviz lays out: only boxes of the right sizes, without any words."""
    ids = {state: f"s{number}" for number, state in enumerate(lifecycle.states)}
    width, height = (size / _POINTS_PER_INCH for size in STATE_SIZE)
    lines = [
        "digraph {",
        "  graph [rankdir=LR nodesep=0.25 ranksep=0.1]",
        f"  node [shape=box fixedsize=true width={width:.4f} height={height:.4f}]",
        "  edge [arrowsize=0.8]",
        *(f"  {name}" for name in ids.values()),
    ]
    reached = {lifecycle.initial}
    for (source, target), triggers in _triggers(lifecycle).items():
        # a state stands beside the one that leads to it first, and final states stand at the end
        weight = 1 if target in reached or target in lifecycle.final else 3
        reached.add(target)
        across, down = _label_size(_label_lines(triggers))
        label = (
            f'<TABLE BORDER="0" CELLBORDER="0" FIXEDSIZE="TRUE" WIDTH="{across}" HEIGHT="{down}">'
            "<TR><TD></TD></TR></TABLE>"
        )
        lines.append(f"  {ids[source]} -> {ids[target]} [weight={weight} label=<{label}>]")
    return "\n".join([*lines, "}"]) + "\n"


def _triggers(lifecycle: Lifecycle) -> dict[tuple[str, str], list[str]]:
    """The triggers of each edge: all rows between the same two states are one edge."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.rows:
        if row.target is not None:
            triggers = found.setdefault((row.source, row.target), [])
            if row.trigger not in triggers:
                triggers.append(row.trigger)
    return found


def _label_lines(triggers: list[str]) -> list[str]:
    words = ", ".join(map(readable, triggers))
    return textwrap.wrap(words, LABEL_COLUMNS, break_long_words=False)


def _label_size(lines: list[str]) -> tuple[int, int]:
    """Width and height of a label, with one more line for a count."""
    width = round(max(map(len, lines)) * CHARACTER_WIDTH) + 6
    return max(width, LEAST_LABEL_WIDTH), (len(lines) + 1) * LINE_HEIGHT


def _layout(lifecycle: Lifecycle) -> dict[str, Any]:
    drawn = json.loads(image(layout_source(lifecycle), "json"))
    _, _, width, height = map(float, drawn["bb"].split(","))

    def point(text: str) -> list[float]:
        """A point of graphviz, whose origin is at the lower left corner."""
        x, y = map(float, text.split(","))
        return [round(x + MARGIN, 1), round(height - y + MARGIN, 1)]

    # graphviz names nodes by their number, and groups edges by their source
    nodes = {node["name"]: node for node in drawn["objects"]}
    edges = {(edge["tail"], edge["head"]): edge for edge in drawn["edges"]}
    ids = {state: nodes[f"s{number}"]["_gvid"] for number, state in enumerate(lifecycle.states)}
    states = [
        {"name": state, "at": point(nodes[f"s{number}"]["pos"])}
        for number, state in enumerate(lifecycle.states)
    ]
    arrows = []
    for (source, target), triggers in _triggers(lifecycle).items():
        edge = edges[ids[source], ids[target]]
        tip, *path = edge["pos"].removeprefix("e,").split()
        lines = _label_lines(triggers)
        arrows.append(
            {
                "source": source,
                "target": target,
                "triggers": triggers,
                "lines": lines,
                "label": [*point(edge["lp"]), *_label_size(lines)],
                "path": [point(each) for each in path],
                "tip": point(tip),
            }
        )
    return {
        "width": round(width) + 2 * MARGIN,
        "height": round(height) + 2 * MARGIN,
        "box": list(STATE_SIZE),
        "states": states,
        "edges": arrows,
    }


def _block(layout: dict[str, Any]) -> str:
    """One lifecycle's layout as JSON text; each object in a list has a line of its own."""
    members = []
    for name, value in layout.items():
        text = json.dumps(value)
        if name in ("states", "edges"):
            text = "[\n" + ",\n".join(f"        {json.dumps(each)}" for each in value) + "\n      ]"
        members.append(f"      {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n    }"


if __name__ == "__main__":
    write_layouts(sys.argv[1])
