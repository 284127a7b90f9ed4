"""The terms of pods that look at other pods, as values that compare equal if they mean the same: pod
(anti-)affinity and topology spread. The signature of every pod is made from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quadriga.k8s.cluster.selectors import NOTHING, Selector, compile_selector
from quadriga.k8s.objects import Pod, PodAffinity, PodAffinityTerm, SpreadConstraint


@dataclass(frozen=True, slots=True)
class PodMatcher:
    """Which pods a term is about: those in its namespaces whose labels its selector selects."""

    namespaces: frozenset[str]
    #: selects further namespaces by their labels
    namespace_selector: Selector | None
    selector: Selector
    #: whether terminating pods count as well
    terminating: bool = True

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        terminating: bool,
        namespace_labels: Mapping[str, str],
    ) -> bool:
        """Return whether a pod with these properties matches."""
        if terminating and not self.terminating:
            return False
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels):
                return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required term of pod affinity or anti-affinity (K126 to K128)."""

    key: str
    matcher: PodMatcher


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint ``DoNotSchedule`` of topology spread (K125)."""

    key: str
    max_skew: int
    min_domains: int
    matcher: PodMatcher
    honor_affinity: bool
    honor_taints: bool


def affinity_terms(affinity: PodAffinity | None, namespace: str) -> tuple[AffinityTerm, ...]:
    """Return the distinct required terms of a pod in this namespace."""
    if affinity is None:
        return ()
    terms = affinity.required_during_scheduling_ignored_during_execution
    return tuple(dict.fromkeys(_affinity_term(term, namespace) for term in terms))


def _affinity_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    names = frozenset(term.namespaces)
    chosen = term.namespace_selector
    if not names and chosen is None:
        names = frozenset((namespace,))
    return AffinityTerm(
        term.topology_key,
        PodMatcher(
            names,
            None if chosen is None else compile_selector(chosen),
            compile_selector(term.label_selector),
        ),
    )


def spreads(pod: Pod) -> tuple[Spread, ...]:
    """Return the constraints of the pod that can refuse a node."""
    return tuple(
        _spread(constraint, pod)
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    )


def _spread(constraint: SpreadConstraint, pod: Pod) -> Spread:
    labels = pod.metadata.labels
    own = ((key, labels[key]) for key in constraint.match_label_keys if key in labels)
    selector = compile_selector(constraint.label_selector, own)
    return Spread(
        constraint.topology_key,
        constraint.max_skew,
        1 if constraint.min_domains is None else constraint.min_domains,
        PodMatcher(
            frozenset((pod.metadata.namespace,)),
            None,
            selector if selector.keys else NOTHING,  # an empty one counts no pods (K210)
            terminating=False,
        ),
        constraint.node_affinity_policy != "Ignore",
        constraint.node_taints_policy == "Honor",
    )
