"""Pods counted by topology domain, that is by the value of a label of their node (K136).

A count changes when a pod comes to a node or leaves it and when a node's labels change. A filter therefore
looks one number up and never iterates over pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from quadriga.k8s.cluster.static_filters import NodeAffinity, untolerated
from quadriga.k8s.objects import Node, Toleration

Numbers = npt.NDArray[np.int32]


class TopologyValues:
    """The values that nodes have for a label, as numbers, so that a filter can check all nodes at once (K137)."""

    __slots__ = ("key", "numbers", "of_node")

    def __init__(self, key: str) -> None:
        self.key = key
        #: a number for each value, from 1
        self.numbers: dict[str, int] = {}
        #: by the node's index the number of its value; 0 without the label or the node
        self.of_node: Numbers = np.zeros(0, np.int32)

    def set(self, index: int, node: Node | None) -> None:
        """Set the value of the node with this index; ``None`` if the node is gone."""
        if index >= len(self.of_node):
            self.of_node = _longer(self.of_node, 2 * index + 64)
        value = None if node is None else node.metadata.labels.get(self.key)
        numbers = self.numbers
        number = 0 if value is None else numbers.setdefault(value, len(numbers) + 1)
        self.of_node[index] = number

    def of(self, length: int) -> Numbers:
        """Return ``of_node`` with this length, which is larger than any node's index."""
        if len(self.of_node) < length:
            self.of_node = _longer(self.of_node, length)
        return self.of_node[:length]


def _longer(numbers: Numbers, length: int) -> Numbers:
    found: Numbers = np.zeros(length, np.int32)
    found[: len(numbers)] = numbers
    return found


class Domains:
    """Counts of some pods in each domain of a topology key. Domains without pods are left out."""

    __slots__ = ("_amounts", "_topology", "counts", "key", "users")

    def __init__(self, key: str) -> None:
        self.key = key
        self.counts: dict[str, int] = {}
        #: number of signatures that use it
        self.users = 0
        #: the same counts by the number of the value, once they are needed, and the values that they belong to
        self._amounts: Numbers | None = None
        self._topology: TopologyValues | None = None

    def clear(self) -> None:
        """Reset to no pods and no nodes."""
        self.counts.clear()
        self._amounts = None

    def amounts(self, topology: TopologyValues) -> Numbers:
        """Return the counts by the number of the value. Number 0 stands for nodes without the label."""
        amounts, numbers = self._amounts, topology.numbers
        if amounts is None or self._topology is not topology or len(amounts) <= len(numbers):
            amounts = np.zeros(2 * len(numbers) + 16, np.int32)
            for value, count in self.counts.items():
                amounts[numbers[value]] = count
            self._amounts, self._topology = amounts, topology
        return amounts

    def add(self, node: Node, number: int) -> None:
        """Add ``number`` pods on this node; negative to remove."""
        value = node.metadata.labels.get(self.key)
        if value is not None:
            self._count(value, number)

    def node_changed(self, old: Node | None, new: Node | None, pods: int) -> None:
        """Update the counts after a node with ``pods`` of the pods was added, removed or changed."""
        if not pods:
            return
        if old is not None:
            self.add(old, -pods)
        if new is not None:
            self.add(new, pods)

    def _count(self, value: str, number: int) -> None:
        now = self.counts.get(value, 0) + number
        if now:
            self.counts[value] = now
        else:
            del self.counts[value]
        if self._amounts is not None:
            self._note(value, now)

    def _note(self, value: str, now: int) -> None:
        """Update the array of counts, which exists."""
        amounts, topology = self._amounts, self._topology
        assert amounts is not None and topology is not None
        number = topology.numbers.get(value, len(amounts))
        if number < len(amounts):
            amounts[number] = now
        else:  # the value is new
            self._amounts = None


class SpreadDomains(Domains):
    """The domains of a spread constraint: those of all counted nodes, also without pods (K125)."""

    __slots__ = ("_affinity", "_at", "_keys", "_nodes", "_tolerations", "_values", "minimum")

    def __init__(
        self,
        key: str,
        keys: Iterable[str],
        affinity: NodeAffinity | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> None:
        """Create the domains. ``keys`` are the topology keys of all constraints of the pod; ``affinity`` or
        ``tolerations`` is ``None`` if the policy for it is Ignore."""
        super().__init__(key)
        self._keys = tuple(keys)
        self._affinity = affinity
        self._tolerations = tolerations
        #: the domain of each counted node, and how many nodes each domain has
        self._values: dict[str, str] = {}
        self._nodes: dict[str, int] = {}
        #: number of domains by their number of pods
        self._at: dict[int, int] = {}
        #: the smallest number of pods in a domain; 0 without a domain
        self.minimum = 0

    def clear(self) -> None:
        """Reset to no pods and no nodes."""
        super().clear()
        self._values.clear()
        self._nodes.clear()
        self._at.clear()
        self.minimum = 0

    @property
    def number(self) -> int:
        """The number of domains."""
        return len(self._nodes)

    def add(self, node: Node, number: int) -> None:
        """Add ``number`` pods on this node; negative to remove."""
        value = self._values.get(node.metadata.name)
        if value is not None:
            self._count(value, number)

    def node_changed(self, old: Node | None, new: Node | None, pods: int) -> None:
        """Update domains and counts after a node was added, removed or changed."""
        node = new or old
        assert node is not None
        name = node.metadata.name
        before = self._values.get(name)
        after = new.metadata.labels[self.key] if new is not None and self._counts(new) else None
        if before == after:
            return
        if before is not None:
            self._count(before, -pods)
            del self._values[name]
            self._nodes[before] -= 1
            if not self._nodes[before]:
                del self._nodes[before]
                self._move(self.counts.pop(before), None)
                self._amounts = None
        if after is not None:
            if after not in self._nodes:
                self._nodes[after] = 0
                self.counts[after] = 0
                self._move(None, 0)
            self._nodes[after] += 1
            self._values[name] = after
            self._count(after, pods)

    def _counts(self, node: Node) -> bool:
        """Return whether pods are spread over this node."""
        labels: Mapping[str, str] = node.metadata.labels
        for key in self._keys:
            if key not in labels:
                return False
        if self._affinity is not None and not self._affinity.matches(node.metadata.name, labels):
            return False
        tolerations = self._tolerations
        return tolerations is None or untolerated(tolerations, node.spec.taints) is None

    def _count(self, value: str, number: int) -> None:
        if number:
            before = self.counts[value]
            self.counts[value] = before + number
            self._move(before, before + number)
            if self._amounts is not None:
                self._note(value, before + number)

    def _move(self, before: int | None, after: int | None) -> None:
        """Note that a domain had ``before`` pods and has ``after``; ``None`` if it did not or does not exist."""
        at = self._at
        if after is not None:
            at[after] = at.get(after, 0) + 1
        if before is not None:
            at[before] -= 1
            if not at[before]:
                del at[before]
        if after is not None and (after < self.minimum or len(at) == 1):
            self.minimum = after
        elif self.minimum not in at:
            # The domain with the fewest pods has more now, or is gone. Where pods come one by one the next
            # count is a few steps away, and these are distinct counts, not domains.
            self.minimum = min(at, default=0)


class CountedPods:
    """Some pods, counted by node and by the domains that filters look at."""

    __slots__ = ("by_node", "domains")

    def __init__(self) -> None:
        self.by_node: dict[str, int] = {}
        #: by what distinguishes them: the topology key, or what belongs to one constraint
        self.domains: dict[tuple[object, ...], Domains] = {}

    def add(self, name: str, node: Node | None, number: int) -> None:
        """Add ``number`` pods on the node of this name, which may be unknown."""
        now = self.by_node.get(name, 0) + number
        if now:
            self.by_node[name] = now
        else:
            del self.by_node[name]
        if node is not None:
            for domains in self.domains.values():
                domains.add(node, number)

    def node_changed(self, name: str, old: Node | None, new: Node | None) -> None:
        """Update the counts of all domains after a node was added, removed or changed."""
        if self.domains:
            pods = self.by_node.get(name, 0)
            for domains in self.domains.values():
                domains.node_changed(old, new, pods)
