"""Answers of the filters for all nodes at once (K137).

The core asks about its best node first. If that one is refused, it wants to know all refused nodes: most may
be, by a node selector, or because the pods that pod affinity requires are elsewhere. The answers of static
filters are kept as numbers of reasons; filters that look at other pods compare arrays, indexed by the number of
the node's value of a topology key. The answers hold for all pods of a signature and a profile until a counter
that they depend on changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from quadriga.base.pacing import doubled
from quadriga.k8s.cluster import pod_filters
from quadriga.k8s.cluster.domains import Numbers, TopologyValues
from quadriga.k8s.cluster.pod_signatures import PodSignature
from quadriga.k8s.cluster.ports import HostPorts
from quadriga.k8s.cluster.records import NodeRecord, PodRecord
from quadriga.k8s.cluster.selections import Profile
from quadriga.k8s.objects import Node
from quadriga.k8s.tuning import TUNING
from quadriga.si.predicates import KnownRefusals, Revision

_Nodes = npt.NDArray[np.bool_]
_Ask = tuple[PodSignature, Profile, bool, bool]


class RefusedNodes:
    """Answers for all nodes; ``nodes`` and ``ports`` are those of the cache."""

    def __init__(self, nodes: Mapping[str, NodeRecord], ports: HostPorts) -> None:
        self._nodes = nodes
        self._ports = ports
        self._topology: dict[str, TopologyValues] = {}
        #: larger than any node's index
        self._size = 1
        #: the nodes in the order of the core, and the index of each; an unknown one has the last index, which
        #: has no node
        self._order: tuple[str, ...] | None = None
        self._indexes: npt.NDArray[np.intp] = np.zeros(0, np.intp)
        self._kept: dict[_Ask, KnownRefusals] = {}
        #: what answers depend on: nodes and pods themselves, where pods are, and storage objects
        self._objects = Revision()
        self._counts = Revision()
        self._volumes = Revision()

    # ---- changes

    def node_changed(self, index: int, node: Node | None, *, known: bool) -> None:
        """Note that the node of this index has changed, is new (not ``known``), or is gone (``None``)."""
        self.object_changed()
        for values in self._topology.values():
            values.set(index, node)
        if node is None or not known:
            self._order = None
            self._size = max(self._size, index + 2)

    def object_changed(self) -> None:
        """Note that a node or pod has changed in a way that filters look at."""
        self._kept.clear()
        self._objects.outdated = True
        self._objects = Revision()

    def counts_changed(self) -> None:
        """Note that a counter that filters look at has changed."""
        if self._kept:
            self._kept.clear()
        self._counts.outdated = True
        self._counts = Revision()

    def volumes_changed(self) -> None:
        """Note that a storage object has changed, or that a pod has taken or released volumes."""
        self._volumes.outdated = True
        self._volumes = Revision()

    # ---- answers

    def of(
        self,
        record: PodRecord,
        names: tuple[str, ...],
        retry: Iterable[str],
        reason: str,
        last: str,
    ) -> KnownRefusals:
        """Return the nodes that refuse a pod without a node, which counts nowhere now, in the order of
        ``names``.

        ``retry`` are nodes that refuse this pod for ``reason``. ``last`` is the reason against every node that
        nothing else refuses; "" for none. For a pod with volumes only the filters before those of volumes are
        evaluated.
        """
        if names is not self._order:
            indexes = [each.index if (each := self._nodes.get(n)) else -1 for n in names]
            self._indexes = np.array(indexes, np.intp)
            self._order = names
            self._kept.clear()
        if retry:
            return self._in_order(record, retry, reason, last)
        ask = (record.signature, record.profile, record.volumes is None, last != "")
        found = self._kept.get(ask)
        if found is None or found.outdated:
            if len(self._kept) >= TUNING.refused_answers:
                self._kept.clear()
            found = self._kept[ask] = self._in_order(record, (), "", last)
        return found

    def _rests_on(self, record: PodRecord) -> tuple[Revision, ...]:
        signature = record.signature
        rests_on = [self._objects]
        if signature.ports or signature.selections or record.profile.against:
            rests_on.append(self._counts)
        if record.volumes is not None:
            rests_on.append(self._volumes)
        return tuple(rests_on)

    def _in_order(
        self, record: PodRecord, retry: Iterable[str], reason: str, last: str
    ) -> KnownRefusals:
        signature, profile = record.signature, record.profile
        answers = _Answers(*signature.numbered(self._nodes.values(), self._size))
        for name in retry:
            answers.refuse_one(self._nodes[name].index, reason)
        for port in signature.ports:
            text = pod_filters.port_in_use(port)
            for name in self._ports.nodes_with(port):
                if name in self._nodes:
                    answers.refuse_one(self._nodes[name].index, text)
        if record.volumes is None:
            if signature.spread:
                self._spread(signature, profile, answers)
            if signature.affinity:
                self._affinity(signature, profile, answers)
            for anti in signature.anti_affinity:
                if anti.domains.counts:
                    values = self._values(anti.domains.key)
                    counts = anti.domains.amounts(values)[values.of(self._size)]
                    answers.refuse(counts > 0, pod_filters.ANTI_AFFINITY)
            for selection in profile.against:
                if not answers.left.any():
                    break
                for holders in selection.holding.values():
                    if holders.counts:
                        values = self._values(holders.term.key)
                        counts = holders.of_key.amounts(values)[values.of(self._size)]
                        answers.refuse(counts > 0, pod_filters.OTHERS)
            if last:
                answers.refuse(np.ones(self._size, np.bool_), last)
        answers.numbers[-1] = 0
        # A refusal after a failed bind ends by time.
        revisions = None if retry else self._rests_on(record)
        return KnownRefusals(answers.numbers[self._indexes], answers.reasons, revisions)

    def _spread(self, signature: PodSignature, profile: Profile, answers: _Answers) -> None:
        for count in signature.spread:
            spread, domains = count.spread, count.domains
            values = self._values(spread.key)
            numbers = values.of(self._size)
            answers.refuse(numbers == 0, pod_filters.no_label("PodTopologySpread", spread.key))
            most = pod_filters.room_in_domain(count, profile)
            answers.refuse(domains.amounts(values)[numbers] > most, count.refusal)

    def _affinity(self, signature: PodSignature, profile: Profile, answers: _Answers) -> None:
        own = signature.affinity
        assert own is not None
        apart = np.zeros(self._size, np.bool_)
        for domains in own.domains:
            values = self._values(domains.key)
            numbers = values.of(self._size)
            answers.refuse(numbers == 0, pod_filters.no_label("InterPodAffinity", domains.key))
            apart |= domains.amounts(values)[numbers] == 0
        if not pod_filters.first_of_its_kind(own, profile):
            answers.refuse(apart, pod_filters.AFFINITY)

    def _values(self, key: str) -> TopologyValues:
        values = self._topology.get(key)
        if values is None or len(values.numbers) > 2 * len(self._nodes) + TUNING.refused_values:
            if len(self._topology) >= TUNING.refused_keys:
                self._topology.clear()
            values = self._topology[key] = TopologyValues(key)
            for record in self._nodes.values():
                values.set(record.index, record.node)
        return values


class _Answers:
    """For each node's index the number of the first reason against it, from 1."""

    __slots__ = ("left", "numbers", "reasons")

    def __init__(self, numbers: Numbers, reasons: tuple[str, ...]) -> None:
        self.numbers = numbers.copy()
        #: the nodes that are not refused so far; the last index has no node
        self.left: _Nodes = numbers == 0
        self.left[-1] = False
        self.reasons = list(reasons)

    def refuse(self, nodes: _Nodes, reason: str) -> None:
        """Refuse these nodes with the reason, except where an earlier reason was found."""
        self.left &= ~(refused := nodes & self.left)
        self.numbers[refused] = self._number(reason)

    def refuse_one(self, index: int, reason: str) -> None:
        """Refuse the node of one index with the reason, unless an earlier one was found."""
        if self.left[index]:
            self.left[index] = False
            self.numbers[index] = self._number(reason)

    def _number(self, reason: str) -> int:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


class RefusedPairs:
    """Pairs of a pod and a node that are refused for a while after a failed bind (K110).

    `pairs` has end and length (ns) of each refusal, by pod and node. The length outlives the refusal, so
    that the next one for the same pair is longer.
    """

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
