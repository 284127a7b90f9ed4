"""Resource managers that are far away answer predicates later (`quadriga.si.answers`).

An ask whose predicates are `UNANSWERED` is set aside, as one that they refuse, but it stays there
until the answer has come: looking at it before would be vain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadriga.core.kernel import Kernel
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node

__all__ = ["Unanswered", "awaited", "look_ahead"]


class Unanswered(Exception):
    """Preemption predicates have no answer yet, so that there is nothing to choose from."""


def look_ahead(predicate: Any, ask: Ask, nodes: Iterable[Node], *, allocate: bool) -> None:
    """The predicate has no answer about the ask yet: these nodes come next."""
    ahead = getattr(predicate, "look_ahead", None)
    if ahead is not None:
        ahead(ask.ask_key, (node.node_id for node in nodes), allocate)


def awaited(kernel: Kernel, ask: Ask) -> bool:
    """Whether some answer about the ask is on its way."""
    rm_id = ask.app.partition.rm.rm_id
    for far in (kernel.predicates.get(rm_id), kernel.preemption_predicates.get(rm_id)):
        awaits = getattr(far, "awaits", None)
        if awaits is not None and awaits(ask.ask_key):
            return True
    return False
