"""Resource managers that are far away answer predicates later (`quadriga.si.remote_predicates`).

An ask whose predicates are `ANSWER_PENDING` is set aside, as one that they refuse, but it stays there
until the answer has come: looking at it before would be vain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["Crowded", "Unanswered", "awaited", "first_allowed", "look_ahead"]


class Crowded(Exception):
    """Predicates have no answer, and will not ask for more before some have come. Those who are next
    in order keep their place: nothing more is decided for their resource manager in this round."""


class Unanswered(Exception):
    """Preemption predicates have no answer yet, so that there is nothing to choose from."""


def first_allowed(predicate: Any, ask: Ask, nodes: Iterable[Node]) -> Node | None:
    """The first of the nodes that the ask may go to by an answer that is there already.

    The order of nodes has changed since the predicate was asked about some of them. To ask about
    those that are first now, again and again, would not come to an end.
    """
    allowed_of = getattr(predicate, "allowed", None)
    allowed = allowed_of(ask.ask_key) if allowed_of is not None else ()
    if not allowed:
        return None
    return next((node for node in nodes if node.node_id in allowed), None)


def look_ahead(predicate: Any, ask: Ask, nodes: Iterable[Node], *, allocate: bool = True) -> None:
    """The predicate has no answer about the ask yet: these nodes come next. Raises `Crowded`."""
    if not predicate.awaits(ask.ask_key):
        raise Crowded
    predicate.look_ahead(ask.ask_key, (node.node_id for node in nodes), allocate)


def awaited(kernel: Kernel, ask: Ask) -> bool:
    """Whether some answer about the ask is on its way."""
    rm_id = ask.app.partition.rm.rm_id
    for far in (kernel.predicates.get(rm_id), kernel.preemption_predicates.get(rm_id)):
        awaits = getattr(far, "awaits", None)
        if awaits is not None and awaits(ask.ask_key):
            return True
    return False
