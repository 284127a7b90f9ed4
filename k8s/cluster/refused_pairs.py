"""Pairs of a pod and a node that are refused for a while after a failed bind (K110)."""

from __future__ import annotations

from quadriga.base.pacing import doubled
from quadriga.k8s.tuning import TUNING


class RefusedPairs:
    """End and length (ns) of each refusal, by pod and node. The length outlives the refusal, so that the next
    one for the same pair is longer."""

    def __init__(self) -> None:
        self.pairs: dict[str, dict[str, tuple[int, int]]] = {}

    def add(self, uid: str, node: str, now: int) -> int:
        """Refuse the node to the pod; return for how long (ns)."""
        nodes = self.pairs.setdefault(uid, {})
        _, before = nodes.get(node, (0, 0))
        first, longest = TUNING.pair_pauses_ns
        length = doubled(before, longest) if before else first
        nodes[node] = now + length, length
        return length

    def refuses(self, uid: str, node: str, now: int) -> bool:
        """Return whether the node is refused to the pod now."""
        nodes = self.pairs.get(uid)
        return nodes is not None and node in nodes and now < nodes[node][0]

    def nodes(self, uid: str, now: int) -> list[str]:
        """Return the nodes that are refused to the pod."""
        nodes = self.pairs.get(uid, {})
        return [node for node, (until, _) in nodes.items() if now < until]

    def node_changed(self, node: str) -> bool:
        """End the refusals of the node, which has changed or is gone. Return whether there were any."""
        refused = [uid for uid, nodes in self.pairs.items() if node in nodes]
        for uid in refused:
            del self.pairs[uid][node]
            if not self.pairs[uid]:
                del self.pairs[uid]
        return bool(refused)

    def forget(self, uid: str) -> None:
        """Forget the refusals of a pod that is gone."""
        self.pairs.pop(uid, None)
