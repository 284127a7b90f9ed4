"""Where the members of a gang run (Q13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node


def nodes_of_members(app: Application) -> dict[str, list[Node]]:
    """The node of each allocation of the application that stays, by task group. A placeholder that is being
    replaced counts where its member goes."""
    found: dict[str, list[Node]] = {}

    def add(each: Allocation) -> None:
        if not each.node.gone:
            found.setdefault(each.ask.kind.task_group, []).append(each.node)

    for each in app.allocations.values():
        if each.state not in allocation_fsm.ASKED_BACK:
            add(each)
    for each in app.placeholders.values():
        if each.partner is not None:
            add(each.partner)
        elif each.state not in allocation_fsm.ASKED_BACK:
            add(each)
    return found


def positions_of_members(app: Application) -> dict[str, list[int]]:
    """The same, by the positions of the nodes in the node order."""
    position = app.partition.node_index.position
    return {
        name: [position(node) for node in nodes] for name, nodes in nodes_of_members(app).items()
    }
