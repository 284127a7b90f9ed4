"""Remote predicates: a resource manager that answers predicates later (`quadriga.si.predicates`).

An ask whose predicates are `ANSWER_PENDING` is set aside, like an ask that predicates refuse, but it stays
aside until the answer is there: trying it earlier would change nothing. See D111.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.runtime.kernel import Kernel


class TooManyPending(Exception):
    """The limit of pending questions is reached, so no further question is asked. The round ends for
    this resource manager, and the asks that are next keep their order."""


class AnswerPending(Exception):
    """The answer of the preemption predicates is pending: no node can be chosen yet."""


def for_explanation(kernel: Kernel, rm_id: str) -> Callable[[str, str, bool], str | None] | None:
    """The predicates as a read. A remote resource manager is not asked: what it has answered already is
    told, else `ANSWER_PENDING`."""
    predicate = kernel.predicates.get(rm_id)
    known = getattr(predicate, "known", predicate)
    return kernel.refusals.get(rm_id, known)


def first_allowed(predicate: Any, ask: Ask, nodes: Iterable[Node]) -> Node | None:
    """The first node that an answer allows already.

    The order of nodes has changed since the questions were asked. Asking again whenever the order
    changes might never finish.
    """
    allowed_of = getattr(predicate, "allowed", None)
    allowed = allowed_of(ask.ask_key) if allowed_of is not None else ()
    if not allowed:
        return None
    return next((node for node in nodes if node.node_id in allowed), None)


def look_ahead(predicate: Any, ask: Ask, nodes: Iterable[Node], *, allocate: bool = True) -> None:
    """Ask about these nodes as well while an answer about the ask is pending.

    Raises `TooManyPending` if no question about the ask could be asked.
    """
    if not predicate.awaits(ask.ask_key):
        raise TooManyPending
    predicate.look_ahead(ask.ask_key, (node.node_id for node in nodes), allocate)


def awaited(kernel: Kernel, ask: Ask) -> bool:
    """Whether an answer about the ask is pending."""
    rm_id = ask.app.partition.rm.rm_id
    for predicate in (kernel.predicates.get(rm_id), kernel.preemption_predicates.get(rm_id)):
        awaits = getattr(predicate, "awaits", None)
        if awaits is not None and awaits(ask.ask_key):
            return True
    return False
