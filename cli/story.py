"""``quadriga story``: the history of one entity, from the journal of a simulation or a service."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from quadriga.base.times import MILLISECOND, SECOND
from quadriga.cli.errors import FOUND, CommandError, about

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands
    from quadriga.sim.scripted.recording import Gap, Line

_SUGGESTED = 5
#: that many damaged places of a journal are named; the rest is counted
_PLACES = 5
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3600, 60
#: ns; later times are real ones: virtual time begins at 0, and no simulation lasts for thirty years
_REAL = SECOND * 1_000_000_000


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "story",
        help="show the history of one entity",
        description="Print every state change of one entity of a simulation or a service that was"
        " run with --journal FILE. A key is the lifecycle and the id: application/8687, node/zewura1,"
        " allocation/8687/8687-0-0.",
        epilog="examples:\n  quadriga story application/8687 --journal run.jsonl\n",
    )
    parser.add_argument("key", help="the entity, as lifecycle/id")
    parser.add_argument("--journal", metavar="FILE", required=True, help="the journal to read")
    parser.add_argument("--json", action="store_true", help="print a JSON array; times in ns")
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Print the story; of a damaged journal what can be read."""
    story, _, damaged = read_story("story", arguments.journal, arguments.key)
    if arguments.json:
        print(json.dumps([line._asdict() for line in story], indent=2))
    else:
        print("\n".join(_told(story)))
    return FOUND if damaged else 0


def read_story(command: str, journal: str, key: str) -> tuple[list[Line], int, bool]:
    """All lines about one entity, the time of the last line of the journal, and whether the journal is
    damaged: then standard error says what was skipped.

    Raises `CommandError` for a file that is not a journal, and for a key that is not in it.
    """
    from quadriga.sim.scripted.recording import JournalError, read_journal

    keys: dict[str, None] = {}
    story: list[Line] = []
    end = 0
    damage = _Damage()
    try:
        with about(f"{command}: {journal}"):
            for line in read_journal(journal, damage.add):
                if line.key == key:
                    story.append(line)
                keys[line.key] = None
                end = line.time
    except JournalError as error:
        raise CommandError(f"{command}: {error}") from error
    for note in damage.notes():
        print(f"{command}: {journal}: skipped {note}", file=sys.stderr)
    if not story:
        raise CommandError(f"{command}: {_unknown(key, keys)}")
    return story, end, damage.places > 0


class _Damage:
    """What was skipped of a journal: the first places, and the sums."""

    def __init__(self) -> None:
        self._first: list[Gap] = []
        self._size = 0
        self.places = 0

    def add(self, gap: Gap) -> None:
        if self.places < _PLACES:
            self._first.append(gap)
        self.places += 1
        self._size += gap.size

    def notes(self) -> Iterable[str]:
        for offset, size, before, after in self._first:
            if after is None:
                where = f"after record {before}"
            elif before is None:
                where = f"before record {after}"
            else:
                where = f"between records {before} and {after}"
            yield _plain(f"{_bytes(size)} at offset {offset}, {where}")
        if self.places > _PLACES:
            yield f"{_bytes(self._size)} in all, at {self.places} places"


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size} bytes"


def _unknown(key: str, keys: Iterable[str]) -> str:
    known = list(keys)
    if not known:
        return "the journal is empty"
    # the bare id of a job matches all keys that contain it as a part
    parts = set(key.split("/"))
    near = [each for each in known if parts <= set(each.split("/"))]
    near.sort(key=lambda each: each.count("/"))
    near = near or [each for each in known if key in each] or get_close_matches(key, known, 3)
    hint = f"; near it: {', '.join(near[:_SUGGESTED])}" if near else ""
    return f"nothing is called {key!r} in this journal{hint}"


def _told(story: list[Line]) -> Iterable[str]:
    yield _plain(story[0].key)
    rows = [
        (
            _time(line.time),
            _plain(line.source),
            f"{_plain(line.trigger)} ->",
            _plain(line.target) if line.target != line.source else "stays",
            _plain(line.cause),
        )
        for line in story
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].rjust(widths[0])]
        cells += [cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()


def _time(ns: int) -> str:
    """Days and time of day since the start, to the ms: ``12 d 03:04:05.000``. Real times from a
    service are printed as dates (UTC)."""
    if ns >= _REAL:
        when = datetime.fromtimestamp(ns // SECOND, UTC)
        return f"{when:%Y-%m-%d %H:%M:%S}.{ns // MILLISECOND % 1000:03}"
    seconds, rest = divmod(ns, SECOND)
    days, seconds = divmod(seconds, _DAY_S)
    hours, seconds = divmod(seconds, _HOUR_S)
    minutes, seconds = divmod(seconds, _MINUTE_S)
    return f"{days} d {hours:02}:{minutes:02}:{seconds:02}.{rest // MILLISECOND:03}"


def _plain(text: object) -> str:
    """Replace control characters, so that text from a file cannot control the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
