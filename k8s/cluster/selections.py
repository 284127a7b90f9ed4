"""Which pods the terms of other pods are about, kept for all terms in the cluster at once.

Pods that no term can tell apart share a profile: their namespace, the labels that some term looks at, and
whether they are being deleted. A profile knows the selections that it belongs to, so a pod that comes or
goes changes their counts without a look at any term, and a new selection is counted over the profiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast

from quadriga.k8s.cluster.domains import CountedPods, Domains
from quadriga.k8s.cluster.terms import AffinityTerm, PodMatcher
from quadriga.k8s.objects import Node, Pod

__all__ = ["SLICE", "Holders", "Profile", "Selection", "Selections"]

_D = TypeVar("_D", bound=Domains)

_NO_LABELS: Mapping[str, str] = {}
_NO_KEYS: Mapping[str, int] = {}
#: how many profiles and nodes, or how many pods, are looked at before others have their turn
SLICE = 1_000
#: in place of a label that all pods of a selection have
_ANY = ("", "")


class Profile:
    """Pods that no term in the cluster tells apart."""

    __slots__ = ("by_node", "identity", "labels", "namespace", "pods", "selections", "terminating")

    def __init__(self, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.identity = (namespace, tuple(sorted(labels.items())), terminating)
        #: how many pods have it, and how many of them are on each node
        self.pods = 0
        self.by_node: dict[str, int] = {}
        self.selections: dict[Selection, None] = {}


class Selection(CountedPods):
    """The pods that all of these matchers match."""

    __slots__ = ("held", "matchers", "profiles", "users")

    def __init__(self, matchers: tuple[PodMatcher, ...]) -> None:
        super().__init__()
        self.matchers = matchers
        self.profiles: dict[Profile, None] = {}
        #: anti-affinity of other pods against these, by topology key
        self.held: dict[str, Holders] = {}
        #: how many templates use it
        self.users = 0

    def matches(self, profile: Profile, namespace_labels: Mapping[str, str]) -> bool:
        for matcher in self.matchers:
            if not matcher.matches(
                profile.namespace, profile.labels, profile.terminating, namespace_labels
            ):
                return False
        return True


class Holders(CountedPods):
    """The pods that have a certain term of anti-affinity."""

    __slots__ = ("counts", "of_key", "term", "users")

    def __init__(self, term: AffinityTerm) -> None:
        super().__init__()
        self.term = term
        self.users = 0
        self.of_key = self.domains[term.key,] = Domains(term.key)
        #: by the value of the term's topology key
        self.counts = self.of_key.counts


class Selections:
    """All profiles of pods and all selections of the cluster."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._profiles: dict[tuple[object, ...], Profile] = {}
        #: the same by their namespace
        self._profiles_in: dict[str, dict[Profile, None]] = {}
        self._selections: dict[tuple[PodMatcher, ...], Selection] = {}
        #: selections by the namespace of their pods and a label that these must have; "" is any namespace,
        #: and without such a label the label is ``_ANY``
        self._by_label: dict[tuple[str, tuple[str, str]], dict[Selection, None]] = {}
        self._by_namespace: dict[Selection, None] = {}
        self._holders: dict[AffinityTerm, Holders] = {}
        #: those that nobody uses yet
        self._made: list[Selection] = []
        #: how many selections look at each key of labels, by the namespace of their pods; "" is any
        self._keys: dict[str, Counter[str]] = {}

    # ---- profiles

    def profile(self, pod: Pod, before: Profile | None = None) -> Profile:
        """The profile of the pod, with one pod more. ``before`` is one of fewer labels: no selection tells the two
        apart."""
        meta = pod.metadata
        here, everywhere = self._keys_in(meta.namespace), self._keys_in("")
        labels = {
            key: value for key, value in meta.labels.items() if key in here or key in everywhere
        }
        profile = Profile(meta.namespace, labels, pod.terminating)
        known = self._profiles.get(profile.identity)
        if known is None:
            known = self._profiles[profile.identity] = profile
            self._profiles_in.setdefault(profile.namespace, {})[profile] = None
            namespace_labels = self._namespaces.get(profile.namespace, _NO_LABELS)
            for selection in self._candidates(profile) if before is None else before.selections:
                if before is not None or selection.matches(profile, namespace_labels):
                    profile.selections[selection] = None
                    selection.profiles[profile] = None
        known.pods += 1
        return known

    def drop_profile(self, profile: Profile) -> None:
        """A pod has the profile no more."""
        profile.pods -= 1
        if not profile.pods:
            del self._profiles[profile.identity]
            others = self._profiles_in[profile.namespace]
            del others[profile]
            if not others:
                del self._profiles_in[profile.namespace]
            for selection in profile.selections:
                del selection.profiles[profile]

    def count(self, profile: Profile, name: str, number: int) -> None:
        """So many more pods with the profile are on the node of this name."""
        self.count_profile(profile, name, number)
        if profile.selections:
            node = self._nodes.get(name)
            for selection in profile.selections:
                selection.add(name, node, number)

    def count_profile(self, profile: Profile, name: str, number: int) -> None:
        """The same where a pod changes from one profile to another of the same selections."""
        now = profile.by_node.get(name, 0) + number
        if now:
            profile.by_node[name] = now
        else:
            del profile.by_node[name]

    def _candidates(self, profile: Profile) -> Iterator[Selection]:
        for namespace in (profile.namespace, ""):
            for pair in (*profile.labels.items(), _ANY):
                yield from self._by_label.get((namespace, pair), ())

    # ---- selections

    def new_keys(self, matchers: tuple[PodMatcher, ...]) -> set[tuple[str, str]]:
        """The keys of labels that only these matchers look at, each after the namespace of the pods; "" is
        any. Before the selection is used, each pod with such a label needs a new profile: see
        ``look_at``."""
        if matchers in self._selections:
            return set()
        namespace = _namespace_of(matchers)
        known = self._keys_in(namespace)
        return {
            (namespace, key)
            for matcher in matchers
            for key in matcher.selector.keys
            if key not in known
        }

    def look_at(self, keys: set[tuple[str, str]]) -> None:
        """Profiles made from now on tell pods with these labels apart."""
        for namespace, key in keys:
            self._keys.setdefault(namespace, Counter())[key] += 0

    def _keys_in(self, namespace: str) -> Mapping[str, int]:
        return self._keys.get(namespace, _NO_KEYS)

    def make(self, matchers: tuple[PodMatcher, ...]) -> Iterator[None]:
        """Count the pods that all of these match, in slices, between which pods may come to nodes and leave
        them. The selection stays until `let_go`."""
        if matchers in self._selections:
            return
        selection = self._selections[matchers] = Selection(matchers)
        selection.users = 1
        self._made.append(selection)
        self._index(selection)[selection] = None
        if any(matcher.namespace_selector is not None for matcher in matchers):
            self._by_namespace[selection] = None
        namespace = _namespace_of(matchers)
        self._keys.setdefault(namespace, Counter()).update(_keys_of(matchers))
        profiles: Iterable[Profile] = self._profiles.values()
        if namespace:
            profiles = self._profiles_in.get(namespace, ())
        work = 0
        for profile in tuple(profiles):
            labels = self._namespaces.get(profile.namespace, _NO_LABELS)
            if selection.matches(profile, labels):
                self._join(profile, selection)
                work += len(profile.by_node)
            work += 1
            if work >= SLICE:
                work = 0
                yield

    def let_go(self) -> None:
        """What was made and has no user is not needed."""
        while self._made:
            self.leave(self._made.pop())

    def use(self, matchers: tuple[PodMatcher, ...]) -> Selection:
        """The pods that all of these match, counted, for one user more."""
        for _ in self.make(matchers):
            pass
        selection = self._selections[matchers]
        selection.users += 1
        return selection

    def leave(self, selection: Selection) -> None:
        """A user less."""
        selection.users -= 1
        if selection.users:
            return
        del self._selections[selection.matchers]
        index = self._index(selection)
        del index[selection]
        if not index:
            del self._by_label[_anchor(selection)]
        self._by_namespace.pop(selection, None)
        namespace = _namespace_of(selection.matchers)
        keys = self._keys[namespace]
        for key in _keys_of(selection.matchers):
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
        if not keys:
            del self._keys[namespace]
        for profile in selection.profiles:
            del profile.selections[selection]

    def _index(self, selection: Selection) -> dict[Selection, None]:
        return self._by_label.setdefault(_anchor(selection), {})

    def _join(self, profile: Profile, selection: Selection) -> None:
        profile.selections[selection] = None
        selection.profiles[profile] = None
        for name, number in profile.by_node.items():
            selection.add(name, self._nodes.get(name), number)

    def _part(self, profile: Profile, selection: Selection) -> None:
        del profile.selections[selection]
        del selection.profiles[profile]
        for name, number in profile.by_node.items():
            selection.add(name, self._nodes.get(name), -number)

    def domains(self, selection: Selection, key: tuple[object, ...], make: Callable[[], _D]) -> _D:
        """The selection's domains that ``key`` names, made if they are new, for one user more."""
        domains = selection.domains.get(key)
        if domains is None:
            domains = selection.domains[key] = make()
            for name, node in self._nodes.items():
                domains.node_changed(None, node, selection.by_node.get(name, 0))
        domains.users += 1
        return cast("_D", domains)

    def leave_domains(self, selection: Selection, key: tuple[object, ...]) -> None:
        """A user less."""
        domains = selection.domains[key]
        domains.users -= 1
        if not domains.users:
            del selection.domains[key]

    def hold(self, term: AffinityTerm) -> Holders:
        """Those that have this term of anti-affinity, for one template more."""
        holders = self._holders.get(term)
        if holders is None:
            holders = self._holders[term] = Holders(term)
            self.use((term.matcher,)).held[term.key] = holders
        holders.users += 1
        return holders

    def release(self, holders: Holders) -> None:
        """A template less."""
        holders.users -= 1
        if not holders.users:
            term = holders.term
            del self._holders[term]
            selection = self._selections[term.matcher,]
            del selection.held[term.key]
            self.leave(selection)

    # ---- what changes

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """The labels of a namespace; ``None`` if it is gone."""
        if labels == self._namespaces.get(name):
            return
        if labels is None:
            del self._namespaces[name]
            labels = _NO_LABELS
        else:
            self._namespaces[name] = labels
        if not self._by_namespace:
            return
        for profile in self._profiles_in.get(name, ()):
            for selection in self._by_namespace:
                matches = selection.matches(profile, labels)
                if matches != (selection in profile.selections):
                    (self._join if matches else self._part)(profile, selection)

    def node_changed(self, name: str, old: Node | None, new: Node | None) -> None:
        """A node came, went, or has another version. ``nodes`` may have either."""
        for selection in self._selections.values():
            selection.node_changed(name, old, new)
        for holders in self._holders.values():
            holders.node_changed(name, old, new)


def _namespace_of(matchers: tuple[PodMatcher, ...]) -> str:
    """The only namespace of the pods that these match, as of nearly all terms; else ""."""
    for matcher in matchers:
        if matcher.namespace_selector is None and len(matcher.namespaces) == 1:
            return next(iter(matcher.namespaces))
    return ""


def _keys_of(matchers: tuple[PodMatcher, ...]) -> Iterator[str]:
    return (key for matcher in matchers for key in matcher.selector.keys)


def _anchor(selection: Selection) -> tuple[str, tuple[str, str]]:
    """The namespace and a label of the pods, by which the selection is found."""
    pairs = (pair for matcher in selection.matchers for pair in matcher.selector.equal)
    return _namespace_of(selection.matchers), next(pairs, _ANY)
