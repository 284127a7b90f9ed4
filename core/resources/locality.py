"""What a gang, or one of its task groups, wants of the domains that its members run in (Q13).

A level is the label of nodes that names a domain: a zone, a rack, a host. Locality is declared by tags, of
the application for its whole gang, of an ask for the task group of the ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from quadriga.core.config.partitions import MAX_LEVEL

#: all members run in one domain of this level; in one domain of this level, or of a wider one, if possible;
#: in a domain of this level run at most so many members of a task group
REQUIRED: Final = "topology.required"
PREFERRED: Final = "topology.preferred"
MEMBERS: Final = "topology.members"
#: no task group has more members in a domain
MAX_MEMBERS: Final = 1_000_000


class LocalityError(ValueError):
    """A tag cannot be read; the text names it."""


class Rule(NamedTuple):
    """Levels by their labels; empty where nothing is wanted. With both, ``required`` is the widest level
    and ``preferred`` the one to begin with. Each domain of the level ``bounded`` in which members of a task
    group run has ``least`` to ``most`` of them."""

    required: str = ""
    preferred: str = ""
    bounded: str = ""
    least: int = 1
    most: int = MAX_MEMBERS


class Locality(NamedTuple):
    """The rules for an ask: that of its whole gang, and that of its task group."""

    gang: Rule | None = None
    group: Rule | None = None


def read_rule(tags: Mapping[str, str]) -> Rule | None:
    """The rule that the tags declare, if any. Raises ``LocalityError``."""
    if REQUIRED not in tags and PREFERRED not in tags and MEMBERS not in tags:
        return None
    required, preferred = _level(tags, REQUIRED), _level(tags, PREFERRED)
    if MEMBERS not in tags:
        return Rule(required, preferred) if required or preferred else None
    said = tags[MEMBERS]
    level, _, numbers = said.rpartition("=")
    first, dash, last = numbers.partition("-")
    least, most = _number(first) if dash else 1, _number(last if dash else first)
    if not level or len(level) > MAX_LEVEL or not 0 < least <= most:
        raise LocalityError(
            f"tag {MEMBERS} is {said[:MAX_LEVEL]!r}, not a label, '=', and how many members may run in one "
            f"domain, such as 8 or 4-8 (at most {MAX_MEMBERS})"
        )
    return Rule(required, preferred, level, least, most)


def _level(tags: Mapping[str, str], name: str) -> str:
    level = tags.get(name, "")
    if len(level) > MAX_LEVEL:
        raise LocalityError(
            f"tag {name} has {len(level)} characters, a label at most {MAX_LEVEL}: {level[:50]!r}"
        )
    return level


def _number(text: str) -> int:
    """The number, 0 if it is none or too large."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
    return number if number <= MAX_MEMBERS else 0
