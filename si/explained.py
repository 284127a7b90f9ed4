"""The answer of a scheduler to the question where an application is and why one of its asks waits."""

from __future__ import annotations

from typing import NamedTuple


class FailedCheck(NamedTuple):
    """A check of an ask that fails, with its numbers in words and the smallest change that would help."""

    about: str
    subject: str
    text: str
    remedy: str
    verdict: str


class Explained(NamedTuple):
    """``state`` is in the resource manager's dialect (X1). ``reasons`` and ``verdict`` are about the
    ask, and empty if none was named.

    ``gathers``: the application is a gang that holds placeholders and lacks others. ``reservations``
    are pairs (node id, allocation key) of the nodes that are reserved for its asks. ``checks`` are those
    that fail, in the order of ``reasons``.
    """

    queue: str
    state: str
    reasons: tuple[str, ...] = ()
    verdict: str = ""
    gathers: bool = False
    reservations: tuple[tuple[str, str], ...] = ()
    checks: tuple[FailedCheck, ...] = ()
