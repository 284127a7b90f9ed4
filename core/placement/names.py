"""Queue names made from users, tags and requests."""

from __future__ import annotations

from typing import Final

from quadriga.core.config import QUEUE_NAME
from quadriga.core.runtime.refusal import Refused

ROOT: Final = "root"
DEFAULT_QUEUE: Final = "root.default"
"""The queue of an application that matches no rule, if the queue exists."""
MAX_LEVELS: Final = 100
"""A queue path has at most this many levels, about as many as a configuration can have. Every
operation on a queue passes through all of its levels."""
RECOVERY_QUEUE: Final = "root.@recovery@"
"""The queue of a forced application that no rule places. It already runs and must be accepted."""


def is_qualified(name: str) -> bool:
    """Return True if the name is a path from the root. ``root`` alone is an ordinary name."""
    return name.lower().startswith(f"{ROOT}.")


def escape_dots(name: str) -> str:
    """Return the name as one level of a path, in which dots separate levels."""
    return name.replace(".", "_dot_")


def check_queue_path(path: str) -> None:
    """Raise ``Refused`` if the path has too many levels, or a level that is not a queue name (2.2)."""
    levels = path.split(".")
    if len(levels) > MAX_LEVELS:
        raise Refused(f"a queue path with {len(levels)} levels; at most {MAX_LEVELS} are allowed")
    for level in levels:
        if QUEUE_NAME.fullmatch(level) is None:
            raise Refused(f"{level!r} in {path!r} is not a queue name")


def parent_path(path: str) -> str:
    """Return the path of the queue's parent."""
    return path.rpartition(".")[0]
