"""Names of queues as placement makes them: from users, tags and requests."""

from __future__ import annotations

from typing import Final

from quadriga.core.config import QUEUE_NAME
from quadriga.core.model.refusal import Refused

__all__ = ["DEFAULT_QUEUE", "RECOVERY_QUEUE", "above", "check", "flat", "is_qualified"]

ROOT: Final = "root"
#: where an application goes that no rule places, if the queue exists
DEFAULT_QUEUE: Final = "root.default"
#: about as many as a configuration can have; an answer to each has to go through all of them
MOST_LEVELS: Final = 100
#: where one goes that runs already and must be taken in whatever the rules say
RECOVERY_QUEUE: Final = "root.@recovery@"


def is_qualified(name: str) -> bool:
    """Whether the name is a path from the root; ``root`` alone is a name like any other."""
    return name.lower().startswith(f"{ROOT}.")


def flat(name: str) -> str:
    """One component for a path: the dots in a name would be levels of the tree."""
    return name.replace(".", "_dot_")


def check(path: str) -> None:
    """Raise ``Refused`` where a level of the path is no queue name (2.2, the rule of 1.6), or where
    there are too many."""
    levels = path.split(".")
    if len(levels) > MOST_LEVELS:
        raise Refused(f"a queue with {len(levels)} levels, of {MOST_LEVELS} that there may be")
    for level in levels:
        if QUEUE_NAME.fullmatch(level) is None:
            raise Refused(f"{level!r} in {path!r} is not a queue name")


def above(path: str) -> str:
    """The path of the parent."""
    return path.rpartition(".")[0]
