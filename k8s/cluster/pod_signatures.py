"""Pod signatures: the parts of pods that decide where they may go, shared by all pods with the same constraints
(K134)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np

from quadriga.k8s.cluster.domains import Domains, Numbers, SpreadDomains
from quadriga.k8s.cluster.ports import HostPort, host_ports
from quadriga.k8s.cluster.selections import Holders, Selection, Selections
from quadriga.k8s.cluster.static_filters import (
    NODE_AFFINITY,
    NODE_UNSCHEDULABLE,
    NodeAffinity,
    cordoned,
    needed_features,
    undeclared,
    untolerated,
)
from quadriga.k8s.cluster.terms import PodMatcher, Spread, affinity_terms, spreads
from quadriga.k8s.objects import Node, Pod, Toleration
from quadriga.k8s.tuning import TUNING

#: values of a node's byte in the answers
_UNKNOWN, _YES, _NO = range(3)


class NodeRecord(Protocol):
    """A node and its index."""

    @property
    def node(self) -> Node: ...
    @property
    def index(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class OwnAffinity:
    """The required pod affinity. It has one selection, because a pod counts only if all terms match it."""

    selection: Selection
    domains: tuple[Domains, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AntiAffinity:
    """A required term of pod anti-affinity: the pods that must be avoided, and the pods that have the term."""

    selection: Selection
    domains: Domains
    holders: Holders


@dataclass(frozen=True, slots=True, eq=False)
class SpreadCount:
    """A constraint of topology spread and its counters."""

    spread: Spread
    selection: Selection
    domains: SpreadDomains
    #: name of its domains within the selection
    name: tuple[object, ...]
    #: reason against a node whose domain has too many pods
    refusal: str


@dataclass(slots=True, eq=False)
class PodSignature:
    """The constraints of a pod, and the counters that they need."""

    key: bytes
    node_affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    #: features that the pod needs of a kubelet; and the same as long as any node declares features, else none
    features: tuple[str, ...] = ()
    asked_features: tuple[str, ...] = ()
    affinity: OwnAffinity | None = None
    anti_affinity: tuple[AntiAffinity, ...] = ()
    spread: tuple[SpreadCount, ...] = ()
    #: the selections of these three
    selections: tuple[Selection, ...] = ()
    #: number of pods with this signature
    pods: int = 0
    #: answers of the static filters by the node's index (K135)
    answers: bytearray = field(default_factory=bytearray)
    #: the first reason of each node that refuses, by the same index
    refusals: dict[int, str] = field(default_factory=dict)
    #: the same as numbers of reasons, until a node changes
    kept: tuple[Numbers, tuple[str, ...]] | None = None

    def refuses(self, index: int, node: Node) -> str | None:
        """Return the first reason of the static filters against the node. The node name in the pod's spec is
        not checked here."""
        answers = self.answers
        if index >= len(answers):
            answers.extend(bytes(index + 64 - len(answers)))
        answer = answers[index]
        if answer == _YES:
            return None
        if answer == _NO:
            return self.refusals[index]
        reason = self.cordoned(node) or self.taint(node) or self.unmatched(node)
        reason = reason or undeclared(self.asked_features, node)
        if reason is not None:
            self.refusals[index] = reason
        answers[index] = _YES if reason is None else _NO
        return reason

    def numbered(self, nodes: Iterable[NodeRecord], size: int) -> tuple[Numbers, tuple[str, ...]]:
        """Return the answers of the static filters for all nodes: by index the number of the reason, from 1, or
        0 if the node is feasible. ``size`` is larger than any index."""
        if self.kept is None:
            for each in nodes:
                self.refuses(each.index, each.node)
            reasons = tuple(sorted(set(self.refusals.values())))
            number = {reason: at for at, reason in enumerate(reasons, 1)}
            numbers = np.zeros(size, np.int32)
            if reasons:
                indexes = np.fromiter(self.refusals, np.intp, len(self.refusals))
                numbers[indexes] = [number[reason] for reason in self.refusals.values()]
            self.kept = numbers, reasons
        return self.kept

    def reasons(self, node: Node, other: str | None) -> list[str]:
        """Return all reasons of the static filters in their order, with ``other`` at the place of the filter
        NodeName."""
        return [
            reason
            for reason in (
                *(self.cordoned(node), other, self.taint(node), self.unmatched(node)),
                undeclared(self.asked_features, node),
            )
            if reason is not None
        ]

    def forget(self, index: int) -> None:
        """Forget the answer for the node of this index, because the node has changed."""
        self.kept = None
        if index < len(self.answers):
            self.answers[index] = _UNKNOWN
            self.refusals.pop(index, None)

    def ask_features(self, declared: bool) -> None:
        """Note whether any node declares features (K210)."""
        self.asked_features = self.features if declared else ()
        self.kept = None
        self.answers, self.refusals = bytearray(), {}

    def cordoned(self, node: Node) -> str | None:
        """Return the reason if the node is cordoned."""
        return NODE_UNSCHEDULABLE if cordoned(node, self.tolerations) else None

    def taint(self, node: Node) -> str | None:
        """Return the reason if the pod does not tolerate a taint of the node."""
        taint = untolerated(self.tolerations, node.spec.taints)
        if taint is None:
            return None
        value = f"={taint.value}" if taint.value else ""
        return f"TaintToleration: the pod does not tolerate the taint {taint.key}{value}:{taint.effect}"

    def unmatched(self, node: Node) -> str | None:
        """Return the reason if the node does not match the pod's node affinity."""
        matches = self.node_affinity.matches(node.name, node.metadata.labels)
        return None if matches else NODE_AFFINITY


class PodSignatures:
    """All signatures in use, and some unused ones."""

    def __init__(self, selections: Selections) -> None:
        self._selections = selections
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        self._signatures: dict[bytes, PodSignature] = {}
        self._unused: OrderedDict[bytes, PodSignature] = OrderedDict()
        #: number of nodes that declare features
        self._declaring = 0

    def key(self, pod: Pod) -> bytes:
        """Return the key of the pod's signature, equal for pods with the same constraints."""
        spec, meta = pod.spec, pod.metadata
        of_nodes = (spec.node_selector, spec.tolerations, host_ports(spec), needed_features(spec))
        affinity, constraints = spec.affinity, spec.topology_spread_constraints
        if affinity is None and not constraints:
            return self._encoder.encode(of_nodes)
        own = [(key, meta.labels.get(key)) for each in constraints for key in each.match_label_keys]
        return self._encoder.encode((*of_nodes, affinity, constraints, meta.namespace, own))

    def known(self, key: bytes) -> bool:
        """Return whether there is a signature for the key."""
        return key in self._signatures

    def matchers(self, pod: Pod) -> list[tuple[PodMatcher, ...]]:
        """Return the matchers of the selections that the signature of this pod uses."""
        affinity, namespace = pod.spec.affinity, pod.metadata.namespace
        found: list[tuple[PodMatcher, ...]] = [(spread.matcher,) for spread in spreads(pod)]
        if affinity is not None:
            own = affinity_terms(affinity.pod_affinity, namespace)
            against = affinity_terms(affinity.pod_anti_affinity, namespace)
            found += [tuple(term.matcher for term in own)] if own else []
            found += [(term.matcher,) for term in against]
        return found

    def take(self, key: bytes, pod: Pod) -> PodSignature:
        """Return the signature for the key, used by one more pod."""
        signature = self._signatures.get(key)
        if signature is None:
            signature = self._signatures[key] = self._make(key, pod)
        elif not signature.pods:
            del self._unused[key]
        signature.pods += 1
        return signature

    def drop(self, signature: PodSignature) -> None:
        """Note that a pod does not use the signature any more."""
        signature.pods -= 1
        if signature.pods:
            return
        self._unused[signature.key] = signature
        if len(self._unused) > TUNING.unused_signatures:
            _, oldest = self._unused.popitem(last=False)
            del self._signatures[oldest.key]
            self._release(oldest)

    def node_changed(self, index: int, old: Node | None, new: Node | None) -> None:
        """Forget the answers for the node of this index, because the node has changed."""
        before = self._declaring > 0
        for node, number in ((old, -1), (new, 1)):
            if node is not None and node.status.declared_features:
                self._declaring += number
        declared = self._declaring > 0
        for signature in self._signatures.values():
            signature.forget(index)
            if signature.features and declared != before:
                signature.ask_features(declared)

    def _make(self, key: bytes, pod: Pod) -> PodSignature:
        spec, namespace = pod.spec, pod.metadata.namespace
        signature = PodSignature(key, NodeAffinity.of(spec), spec.tolerations, host_ports(spec))
        signature.features = needed_features(spec)
        signature.ask_features(self._declaring > 0)
        affinity = spec.affinity
        if affinity is not None:
            own = affinity_terms(affinity.pod_affinity, namespace)
            if own:
                selection = self._selections.use(tuple(term.matcher for term in own))
                signature.affinity = OwnAffinity(
                    selection, tuple(self._domains(selection, term.key) for term in own)
                )
            signature.anti_affinity = tuple(
                AntiAffinity(
                    selection := self._selections.use((term.matcher,)),
                    self._domains(selection, term.key),
                    self._selections.hold(term),
                )
                for term in affinity_terms(affinity.pod_anti_affinity, namespace)
            )
        constraints = spreads(pod)
        keys = tuple(spread.key for spread in constraints)
        signature.spread = tuple(
            self._spread(signature, spread, keys, number)
            for number, spread in enumerate(constraints)
        )
        users = (signature.affinity, *signature.anti_affinity, *signature.spread)
        signature.selections = tuple(each.selection for each in users if each is not None)
        return signature

    def _domains(self, selection: Selection, key: str) -> Domains:
        return self._selections.domains(selection, (key,), lambda: Domains(key))

    def _spread(
        self, signature: PodSignature, spread: Spread, keys: tuple[str, ...], number: int
    ) -> SpreadCount:
        selection = self._selections.use((spread.matcher,))
        name = (spread.key, signature.key, number)
        domains = self._selections.domains(
            selection,
            name,
            lambda: SpreadDomains(
                spread.key,
                keys,
                signature.node_affinity if spread.honor_affinity else None,
                signature.tolerations if spread.honor_taints else None,
            ),
        )
        refusal = (
            f"PodTopologySpread: the pods would be spread too unevenly over {spread.key}"
            f" (maxSkew {spread.max_skew})"
        )
        return SpreadCount(spread, selection, domains, name, refusal)

    def _release(self, signature: PodSignature) -> None:
        selections = self._selections
        if signature.affinity is not None:
            for domains in signature.affinity.domains:
                selections.leave_domains(signature.affinity.selection, (domains.key,))
            selections.leave(signature.affinity.selection)
        for anti in signature.anti_affinity:
            selections.release(anti.holders)
            selections.leave_domains(anti.selection, (anti.domains.key,))
            selections.leave(anti.selection)
        for count in signature.spread:
            selections.leave_domains(count.selection, count.name)
            selections.leave(count.selection)
