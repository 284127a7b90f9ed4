"""The filters that look at other pods, from counters: a check is a few look-ups for each term (K123, K125
to K128, K136)."""

from __future__ import annotations

from quadriga.k8s.cluster.ports import HostPorts
from quadriga.k8s.cluster.selections import Profile
from quadriga.k8s.cluster.templates import Template
from quadriga.k8s.objects import Node

__all__ = ["affinity_refuses", "anti_affinity_refuses", "others_refuse", "ports_refuse"]
__all__ += ["spread_refuses"]


def ports_refuse(template: Template, node: str, ports: HostPorts) -> str | None:
    """Whether a host port of the pod is in use on the node (K123)."""
    if not template.ports:
        return None
    conflict = ports.conflict(node, template.ports)
    if conflict is None:
        return None
    protocol, port, _ = conflict
    return f"NodePorts: the host port {port}/{protocol} is in use on the node"


def spread_refuses(template: Template, profile: Profile, node: Node) -> str | None:
    """Whether the pod would make a constraint's domains differ by too much (K125)."""
    labels = node.metadata.labels
    for count in template.spread:
        spread, domains = count.spread, count.domains
        value = labels.get(spread.key)
        if value is None:
            return f"PodTopologySpread: the node has no label {spread.key}"
        own = count.selection in profile.selections or (
            profile.terminating and spread.matcher.selector.matches(profile.labels)
        )
        minimum = domains.minimum if domains.number >= spread.min_domains else 0
        if domains.counts.get(value, 0) + own - minimum > spread.max_skew:
            return count.refusal
    return None


def affinity_refuses(template: Template, profile: Profile, node: Node) -> str | None:
    """Whether the pods that it wants to be with are elsewhere (K126)."""
    own = template.affinity
    if own is None:
        return None
    labels = node.metadata.labels
    together = True
    for domains in own.domains:
        value = labels.get(domains.key)
        if value is None:
            return f"InterPodAffinity: the node has no label {domains.key}"
        if value not in domains.counts:
            together = False
    if together:
        return None
    if own.selection in profile.selections and not any(each.counts for each in own.domains):
        return None  # the first of its kind
    return "InterPodAffinity: no pod that the pod's affinity asks for is in the node's domain"


def anti_affinity_refuses(template: Template, node: Node) -> str | None:
    """Whether pods that it wants to be away from are there (K127)."""
    labels = node.metadata.labels
    for anti in template.anti_affinity:
        if labels.get(anti.domains.key) in anti.domains.counts:
            return "InterPodAffinity: a pod that the pod's anti-affinity is against is in the node's domain"
    return None


def others_refuse(profile: Profile, node: Node) -> str | None:
    """Whether pods that want to be away from it are there (K128)."""
    labels = node.metadata.labels
    for selection in profile.selections:
        for key, holders in selection.held.items():
            if labels.get(key) in holders.counts:
                return "InterPodAffinity: the anti-affinity of a pod in the node's domain is against it"
    return None
