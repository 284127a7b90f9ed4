"""``python -m bench._comparison [--write FILE | --check FILE]``: the table, as a page.

``--check`` compares the facts of a committed page with what the programs see now. Figures differ from
machine to machine; they are only printed and written.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from bench._comparison import _automat, _quadriga, _statemachine, _transitions
from bench._comparison.rows import FACTS, FIGURES

LIBRARIES = (_quadriga, _transitions, _statemachine, _automat)

HEAD = """\
# Beside other libraries

What four libraries do with the same tasks. Every cell is what a program saw: `tox -e comparison` runs one for
each cell (`bench/_comparison/`), and fails if a cell of this page is not what it sees. `tox -e comparison -- --write
docs/comparison.md` writes the page.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench._comparison", description=__doc__)
    parser.add_argument("--write", metavar="FILE", help="write the page")
    parser.add_argument("--check", metavar="FILE", help="compare the facts of a page")
    options = parser.parse_args()
    facts = table(FACTS, fact)
    if options.check:
        page = Path(options.check).read_text(encoding="utf-8")
        wrong = [line for line in facts if line not in page]
        for line in wrong:
            print(f"not on the page: {line}", file=sys.stderr)
        print(f"{len(facts) - len(wrong)} of {len(facts)} lines are on the page")
        return 1 if wrong else 0
    page = f"{HEAD}\n{versions()}\n\n" + "\n".join(facts)
    page += f"\n\n## Figures\n\n{machine()}\n\n" + "\n".join(table(FIGURES, figure)) + "\n"
    notes = Path(__file__).with_name("notes.md").read_text(encoding="utf-8")
    page += "\n" + notes
    if options.write:
        Path(options.write).write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    return 0


def versions() -> str:
    said = ", ".join(f"{each.NAME} {version_of(each)}" for each in LIBRARIES)
    return f"Versions: {said}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}."


def version_of(library: ModuleType) -> str:
    return version(library.DISTRIBUTION)


def machine() -> str:
    return (
        "Times are ratios to quadriga.fsm on the same machine in the same run "
        f"({platform.machine()}, CPython {platform.python_version()}, not compiled). More than 1 is slower."
    )


def table(rows: dict[str, str], cell: object) -> list[str]:
    names = [each.NAME for each in LIBRARIES]
    lines = [line_of(["", *names]), line_of(["---"] * (len(names) + 1))]
    for name, question in rows.items():
        lines.append(line_of([question, *cell(name)]))  # type: ignore[operator]
    return lines


def line_of(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fact(name: str) -> list[str]:
    cells = []
    for library in LIBRARIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = getattr(library, name)()
        if not isinstance(said, str):
            raise TypeError(f"{library.__name__}.{name} has seen {said!r}")
        cells.append(" ".join(said.split()).replace("|", "\\|"))
    return cells


def figure(name: str) -> list[str]:
    values = [getattr(library, name)() for library in LIBRARIES]
    if name == "memory":
        return [f"{round(value, -1):,.0f}" for value in values]
    ours = values[0]
    cells = ["1"]
    for value in values[1:]:
        cells.append("no guards" if value is None else short(value / ours))
    return cells


def short(ratio: float) -> str:
    """Two digits: more would be noise."""
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"


if __name__ == "__main__":
    sys.exit(main())
