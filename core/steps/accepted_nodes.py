"""The first node that predicates accept, where they know the nodes that they refuse.

Only the nodes that are left are asked about, so the choice costs little more than without predicates. The
node is the one that asking about each in order would find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.resources.shapes import Shape
    from quadriga.si.known_refusals import KnownRefusals


def known_refusals(predicate: Any, ask: Ask, node_index: NodeOrder) -> KnownRefusals | None:
    """The refused nodes, by position; ``None`` if the predicate does not know them."""
    find = getattr(predicate, "refused_nodes", None)
    found: KnownRefusals | None = find and find(ask.ask_key, node_index.node_ids())
    return found


def first_not_refused(
    predicate: Any, ask: Ask, shape: Shape, node_index: NodeOrder, known: KnownRefusals
) -> tuple[Node | None, dict[str, int]]:
    """The first node in order that has room and that the predicate accepts.

    Without one also the number of nodes by the reason of their refusal.
    """
    refused: dict[str, int] = {}
    for node in node_index.without(shape, known.numbers):
        reason = predicate(ask.ask_key, node.node_id, True)
        if reason is None:
            return node, {}
        refused[reason] = refused.get(reason, 0) + 1
    for number, count in enumerate(node_index.tally(shape, known.numbers)):
        if number and count:
            reason = known.reasons[number - 1]
            refused[reason] = refused.get(reason, 0) + count
    return None, refused
