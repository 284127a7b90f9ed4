"""The filters that look at other pods. They read counters, so that a check is a few look-ups for each term
(K123, K125 to K128, K136)."""

from __future__ import annotations

from quadriga.k8s.cluster.pod_signatures import OwnAffinity, PodSignature, SpreadCount
from quadriga.k8s.cluster.ports import HostPort, HostPorts
from quadriga.k8s.cluster.selections import Profile
from quadriga.k8s.objects import Node

#: reasons that are the same for all nodes
AFFINITY = "InterPodAffinity: no pod in the node's topology domain matches the pod's affinity"
ANTI_AFFINITY = (
    "InterPodAffinity: the pod's anti-affinity excludes a pod in the node's topology domain"
)
OTHERS = (
    "InterPodAffinity: the anti-affinity of a pod in the node's topology domain excludes the pod"
)


def port_in_use(port: HostPort) -> str:
    """Return the reason against a node where the host port is in use."""
    protocol, number, _ = port
    return f"NodePorts: host port {number}/{protocol} is in use on the node"


def no_label(name: str, key: str) -> str:
    """Return the reason of a filter against a node without the label that its terms look at."""
    return f"{name}: the node has no label {key}"


def ports_refuse(signature: PodSignature, node: str, ports: HostPorts) -> str | None:
    """Return the reason if a host port of the pod is in use on the node (K123)."""
    if not signature.ports:
        return None
    conflict = ports.conflict(node, signature.ports)
    return None if conflict is None else port_in_use(conflict)


def spread_refuses(signature: PodSignature, profile: Profile, node: Node) -> str | None:
    """Return the reason if the pod would make the domains of a constraint differ by too much (K125)."""
    labels = node.metadata.labels
    for count in signature.spread:
        value = labels.get(count.spread.key)
        if value is None:
            return no_label("PodTopologySpread", count.spread.key)
        if count.domains.counts.get(value, 0) > room_in_domain(count, profile):
            return count.refusal
    return None


def room_in_domain(count: SpreadCount, profile: Profile) -> int:
    """Return the largest number of pods with which a domain can take another one."""
    spread, domains = count.spread, count.domains
    own = count.selection.has(profile) or (
        profile.terminating and spread.matcher.selector.matches(profile.labels)
    )
    minimum = domains.minimum if domains.number >= spread.min_domains else 0
    return spread.max_skew + minimum - own


def affinity_refuses(signature: PodSignature, profile: Profile, node: Node) -> str | None:
    """Return the reason if the pods that this one requires nearby are elsewhere (K126)."""
    own = signature.affinity
    if own is None:
        return None
    labels = node.metadata.labels
    together = True
    for domains in own.domains:
        value = labels.get(domains.key)
        if value is None:
            return no_label("InterPodAffinity", domains.key)
        if value not in domains.counts:
            together = False
    return None if together or first_of_its_kind(own, profile) else AFFINITY


def first_of_its_kind(own: OwnAffinity, profile: Profile) -> bool:
    """Return whether no pod matches all terms of the affinity yet, and the pod itself does."""
    return own.selection.has(profile) and not any(each.counts for each in own.domains)


def anti_affinity_refuses(signature: PodSignature, node: Node) -> str | None:
    """Return the reason if pods that this one must avoid are there (K127)."""
    labels = node.metadata.labels
    for anti in signature.anti_affinity:
        if labels.get(anti.domains.key) in anti.domains.counts:
            return ANTI_AFFINITY
    return None


def others_refuse(profile: Profile, node: Node) -> str | None:
    """Return the reason if pods that must avoid this one are there (K128)."""
    labels = node.metadata.labels
    for selection in profile.against:
        for key, holders in selection.holding.items():
            if labels.get(key) in holders.counts:
                return OTHERS
    return None
