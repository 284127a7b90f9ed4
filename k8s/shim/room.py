"""The resources of all nodes, and the gangs that the nodes could not hold even if they were empty (Q16).

Only what is certain counts: the allocatable amounts of every node of the cluster, cordoned or not, and the node
selectors of task groups. Taints, affinities and running pods are left to the core, so a gang that passes here
may have to wait there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from quadriga.k8s.conversion.problems import shown
from quadriga.k8s.conversion.quantities import VCORE
from quadriga.k8s.conversion.resources import PODS, Amounts, of_node
from quadriga.k8s.conversion.task_groups import TaskGroup, placeholder_ask
from quadriga.k8s.objects import Node
from quadriga.k8s.tuning import TUNING

_BYTES: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class Room:
    """The nodes of the cluster. Columns of amounts are computed when needed after a change."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Amounts, Mapping[str, str]]] = {}
        #: increases with every change
        self.version = 0
        self._columns: dict[str, np.ndarray[Any, Any]] = {}
        self._masks: dict[tuple[tuple[str, str], ...], np.ndarray[Any, Any]] = {}

    def set(self, node: Node) -> None:
        """Add a node, or update its amounts and labels."""
        self._nodes[node.metadata.name] = of_node(node), node.metadata.labels
        self._changed()

    def remove(self, name: str) -> None:
        """Remove a node."""
        if self._nodes.pop(name, None) is not None:
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._columns.clear()
        self._masks.clear()

    def offers(self, kind: str) -> bool:
        """Return whether any node has some of it."""
        return any(amounts.get(kind, 0) > 0 for amounts, _ in self._nodes.values())

    def shortage(self, groups: Sequence[TaskGroup]) -> str:
        """Return why the nodes cannot hold the gang, "" if they may be able to."""
        for group in groups:
            count = self._members(group)
            if count < group.min_member:
                where = (
                    "the nodes with its nodeSelector have"
                    if group.node_selector
                    else "all nodes have"
                )
                what = f"{group.min_member} members of task group {shown(group.name)}"
                return f"{where} room for {count} of the {what}"
        if len(groups) > 1:
            for kind, needed in sorted(placeholder_ask(groups).items()):
                offered = sum(amounts.get(kind, 0) for amounts, _ in self._nodes.values())
                if needed > offered:
                    have = f"all nodes have {_amount(kind, offered)}"
                    return f"all task groups together need {_amount(kind, needed)}, {have}"
        return ""

    def _members(self, group: TaskGroup) -> int:
        """Return how many members of the group the nodes could hold, at most the number that it needs."""
        room = np.full(len(self._nodes), group.min_member, dtype=np.int64)
        for kind, value in (*group.resources.items(), (PODS, 1)):
            if value > 0:
                np.minimum(room, self._column(kind) // value, out=room)
        if group.node_selector:
            mask = self._mask(group.node_selector)
            if mask is not None:
                room = room[mask]
        return min(int(room.sum()), group.min_member)

    def _column(self, kind: str) -> np.ndarray[Any, Any]:
        column = self._columns.get(kind)
        if column is None:
            amounts = [amounts.get(kind, 0) for amounts, _ in self._nodes.values()]
            column = np.maximum(np.array(amounts, dtype=np.int64), 0)
            self._columns[kind] = column
        return column

    def _mask(self, selector: Mapping[str, str]) -> np.ndarray[Any, Any] | None:
        key = tuple(sorted(selector.items()))
        mask = self._masks.get(key)
        if mask is None and len(self._masks) < TUNING.selectors_cached:
            wanted = selector.items()
            has = [wanted <= labels.items() for _, labels in self._nodes.values()]
            mask = np.array(has, dtype=bool)
            self._masks[key] = mask
        return mask


def _amount(kind: str, value: int) -> str:
    """Return the amount with its unit, as in a manifest."""
    if kind == PODS:
        return f"{value} pods"
    if kind == VCORE:
        return f"{value / 1000:g} cpu"
    for unit, size in _BYTES:
        if kind == "memory" and value >= size:
            return f"{value / size:.4g}{unit} memory"
    return f"{value} {kind}"
