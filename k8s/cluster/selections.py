"""Which pods the terms of other pods are about, kept for all terms in the cluster at once.

Pods that no term can tell apart share a profile: their namespace, the labels that some term looks at, and
whether they are being deleted. When a pod comes to a node or leaves it, that is noted once for its profile. A
selection counts what was noted when somebody asks about it (`Selections.settle`), and learns then which of the new
profiles belong to it. So terms about the pods of others are at the cost of the pods that have them (Q16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
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
#: so many changes are kept for those who count them later
_CHANGES = 4_096
#: in place of a label that all pods of a selection have
_ANY = ("", "")


class Profile:
    """Pods that no term in the cluster tells apart."""

    __slots__ = (
        "against", "by_node", "identity", "known_to", "labels", "namespace", "pods", "terminating",
    )  # fmt: skip

    def __init__(self, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.identity = (namespace, tuple(sorted(labels.items())), terminating)
        #: how many pods have it, and how many of them are on each node
        self.pods = 0
        self.by_node: dict[str, int] = {}
        #: the selections that remember whether it belongs to them
        self.known_to: dict[Selection, None] = {}
        #: those that it belongs to and that pods on nodes want, or wanted, to be away from
        self.against: dict[Selection, None] = {}


class Selection(CountedPods):
    """The pods that all of these matchers match."""

    __slots__ = (
        "_labels", "counted", "held", "holding", "matchers", "namespace", "profiles", "users",
    )  # fmt: skip

    def __init__(
        self, matchers: tuple[PodMatcher, ...], labels: Mapping[str, Mapping[str, str]]
    ) -> None:
        """``labels`` are those of the namespaces."""
        super().__init__()
        self._labels = labels
        self.matchers = matchers
        self.namespace = _namespace_of(matchers)
        #: the number of changes that it has counted; below 0: all has to be counted again
        self.counted = -1
        #: whether a profile belongs to it
        self.profiles: dict[Profile, bool] = {}
        #: anti-affinity of other pods against these, by topology key; and what of it pods on nodes have or had
        self.held: dict[str, Holders] = {}
        self.holding: dict[str, Holders] = {}
        #: how many signatures use it
        self.users = 0

    def has(self, profile: Profile) -> bool:
        """Whether the pods of the profile belong to it."""
        known = self.profiles.get(profile)
        if known is not None:
            return known
        if self.namespace and self.namespace != profile.namespace:
            return False
        found = self._matches(profile)
        if profile.pods:  # else it is gone, and only what was noted of it is counted
            self.profiles[profile] = found
            profile.known_to[self] = None
        return found

    def _matches(self, profile: Profile) -> bool:
        labels = self._labels.get(profile.namespace, _NO_LABELS)
        for matcher in self.matchers:
            if not matcher.matches(profile.namespace, profile.labels, profile.terminating, labels):
                return False
        return True

    def forget(self, profile: Profile) -> None:
        del self.profiles[profile], profile.known_to[self]
        profile.against.pop(self, None)


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


#: pods of a profile that came to a node of this name (negative: left it), which may be unknown; or without a
#: profile another version of a node
_Change = tuple[Profile | None, str, Node | None, Node | None, int]


class Selections:
    """All profiles of pods and all selections of the cluster."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._profiles: dict[tuple[object, ...], Profile] = {}
        #: the same by their namespace
        self._profiles_in: dict[str, dict[Profile, None]] = {}
        self._selections: dict[tuple[PodMatcher, ...], Selection] = {}
        #: how many selections have this namespace of their pods and this label that these must have; "" is any
        #: namespace, and without such a label the label is ``_ANY``
        self._anchors: Counter[tuple[str, tuple[str, str]]] = Counter()
        self._by_namespace: dict[Selection, None] = {}
        self._holders: dict[AffinityTerm, Holders] = {}
        #: those that have or had pods on nodes, and their selections by the namespace of the pods; "" is any
        self._holding: dict[Holders, None] = {}
        self._against: dict[str, dict[Selection, None]] = {}
        #: what some selections have not counted yet, and the number of changes before these
        self._changes: list[_Change] = []
        self._dropped = 0
        #: those that nobody uses yet
        self._made: list[Selection] = []
        #: how many selections look at each key of labels, by the namespace of their pods; "" is any
        self._keys: dict[str, Counter[str]] = {}

    # ---- profiles

    def profile(self, pod: Pod) -> Profile:
        """The profile of the pod, with one pod more."""
        meta = pod.metadata
        here, everywhere = self._keys_in(meta.namespace), self._keys_in("")
        labels = {
            key: value for key, value in meta.labels.items() if key in here or key in everywhere
        }
        profile = Profile(meta.namespace, labels, pod.terminating)
        known = self._profiles.get(profile.identity)
        if known is None:
            known = self._profiles[profile.identity] = profile
            known.pods = 1
            self._profiles_in.setdefault(profile.namespace, {})[profile] = None
            for namespace in (profile.namespace, ""):
                for selection in self._against.get(namespace, ()):
                    if selection.has(profile):
                        profile.against[selection] = None
        else:
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
            for selection in tuple(profile.known_to):
                selection.forget(profile)

    def count(self, profile: Profile, name: str, number: int) -> None:
        """So many more pods with the profile are on the node of this name."""
        self.count_profile(profile, name, number)
        if self.may_belong(profile):
            self._note((profile, name, None, self._nodes.get(name), number))

    def may_belong(self, profile: Profile) -> bool:
        """Whether some selection may have the profile."""
        anchors = self._anchors
        if not anchors:
            return False
        for namespace in (profile.namespace, ""):
            if (namespace, _ANY) in anchors:
                return True
            for pair in profile.labels.items():
                if (namespace, pair) in anchors:
                    return True
        return False

    def count_profile(self, profile: Profile, name: str, number: int) -> None:
        """The same where a pod changes from one profile to another of the same selections."""
        now = profile.by_node.get(name, 0) + number
        if now:
            profile.by_node[name] = now
        else:
            del profile.by_node[name]

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
        selection = self._selections[matchers] = Selection(matchers, self._namespaces)
        selection.users = 1
        self._made.append(selection)
        self._anchors[_anchor(selection)] += 1
        if any(matcher.namespace_selector is not None for matcher in matchers):
            self._by_namespace[selection] = None
        self._keys.setdefault(selection.namespace, Counter()).update(_keys_of(matchers))
        selection.counted = self._dropped + len(self._changes)
        seen: set[Profile] = set()
        work = 0
        for profile in tuple(self._profiles_of(selection)):
            seen.add(profile)
            work += 1 + self._add_profile(selection, profile)
            if work >= SLICE:
                work = 0
                yield
                self._catch_up(selection, seen)
        for profile in self._profiles_of(selection):
            if profile not in seen:
                self._add_profile(selection, profile)

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
        anchor = _anchor(selection)
        self._anchors[anchor] -= 1
        if not self._anchors[anchor]:
            del self._anchors[anchor]
        self._by_namespace.pop(selection, None)
        namespace = selection.namespace
        keys = self._keys[namespace]
        for key in _keys_of(selection.matchers):
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
        if not keys:
            del self._keys[namespace]
        for profile in tuple(selection.profiles):
            selection.forget(profile)

    def _profiles_of(self, selection: Selection) -> Collection[Profile]:
        """All that may belong to it."""
        if selection.namespace:
            return self._profiles_in.get(selection.namespace, ())
        return self._profiles.values()

    # ---- counts

    def _note(self, change: _Change) -> None:
        self._changes.append(change)
        if len(self._changes) >= 2 * _CHANGES:
            del self._changes[:_CHANGES]
            self._dropped += _CHANGES

    def settle(self, selections: Iterable[Selection]) -> None:
        """Count what these have not counted yet: before anybody looks at their counts."""
        now = self._dropped + len(self._changes)
        for selection in selections:
            if selection.counted != now:
                self._catch_up(selection)

    def _catch_up(self, selection: Selection, counted: set[Profile] | None = None) -> None:
        """``counted``: the profiles that a new one has counted so far."""
        now = self._dropped + len(self._changes)
        profiles = self._profiles_of(selection) if counted is None else counted
        all_of_it = len(profiles) + len(self._nodes)
        if selection.counted < self._dropped or now - selection.counted > all_of_it:
            selection.by_node.clear()
            for profile in profiles:
                self._add_profile(selection, profile)
            for domains in selection.domains.values():
                domains.clear()
                self._fill(domains, selection)
        else:
            for change in islice(self._changes, selection.counted - self._dropped, None):
                _count(selection, change, counted)
        selection.counted = now

    def _add_profile(self, selection: Selection, profile: Profile) -> int:
        """Count its pods by node, if it belongs to the selection. Returns on how many nodes they are."""
        if not selection.has(profile):
            return 0
        by_node = selection.by_node
        for name, number in profile.by_node.items():
            by_node[name] = by_node.get(name, 0) + number
        return len(profile.by_node)

    def _fill(self, domains: Domains, selection: Selection) -> None:
        for name, node in self._nodes.items():
            domains.node_changed(None, node, selection.by_node.get(name, 0))

    def domains(self, selection: Selection, key: tuple[object, ...], make: Callable[[], _D]) -> _D:
        """The selection's domains that ``key`` names, made if they are new, for one user more."""
        domains = selection.domains.get(key)
        if domains is None:
            self.settle((selection,))
            domains = selection.domains[key] = make()
            self._fill(domains, selection)
        domains.users += 1
        return cast("_D", domains)

    def leave_domains(self, selection: Selection, key: tuple[object, ...]) -> None:
        """A user less."""
        domains = selection.domains[key]
        domains.users -= 1
        if not domains.users:
            del selection.domains[key]

    def hold(self, term: AffinityTerm) -> Holders:
        """Those that have this term of anti-affinity, for one signature more."""
        holders = self._holders.get(term)
        if holders is None:
            holders = self._holders[term] = Holders(term)
            self.use((term.matcher,)).held[term.key] = holders
        holders.users += 1
        return holders

    def release(self, holders: Holders) -> None:
        """A signature less."""
        holders.users -= 1
        if not holders.users:
            term = holders.term
            del self._holders[term]
            selection = self._selections[term.matcher,]
            del selection.held[term.key]
            if holders in self._holding:
                del self._holding[holders], selection.holding[term.key]
                if not selection.holding:
                    del self._against[selection.namespace][selection]
                    for profile in selection.profiles:
                        profile.against.pop(selection, None)
            self.leave(selection)

    def count_holder(self, holders: Holders, name: str, number: int) -> None:
        """So many more pods with the term are on the node of this name."""
        holders.add(name, self._nodes.get(name), number)
        if holders in self._holding:
            return
        self._holding[holders] = None
        selection = self._selections[holders.term.matcher,]
        selection.holding[holders.term.key] = holders
        self._against.setdefault(selection.namespace, {})[selection] = None
        for profile in self._profiles_of(selection):
            if selection.has(profile):
                profile.against[selection] = None

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
        for selection in self._by_namespace:
            selection.counted = -1
            for profile in self._profiles_in.get(name, ()):
                if profile in selection.profiles:
                    selection.forget(profile)
                if selection.holding and selection.has(profile):
                    profile.against[selection] = None

    def node_changed(self, name: str, old: Node | None, new: Node | None) -> None:
        """A node came, went, or has another version. ``nodes`` may have either."""
        if self._selections:
            self._note((None, name, old, new, 0))
        for holders in self._holding:
            holders.node_changed(name, old, new)


def _count(selection: Selection, change: _Change, counted: set[Profile] | None) -> None:
    profile, name, old, new, number = change
    if profile is None:
        selection.node_changed(name, old, new)
    elif (counted is None or profile in counted) and selection.has(profile):
        selection.add(name, new, number)


def _namespace_of(matchers: tuple[PodMatcher, ...]) -> str:
    """The only namespace of the pods that these match, as of nearly all terms; else ""."""
    for matcher in matchers:
        if matcher.namespace_selector is None and len(matcher.namespaces) == 1:
            return next(iter(matcher.namespaces))
    return ""


def _keys_of(matchers: tuple[PodMatcher, ...]) -> Iterator[str]:
    return (key for matcher in matchers for key in matcher.selector.keys)


def _anchor(selection: Selection) -> tuple[str, tuple[str, str]]:
    """The namespace and a label of the pods, by one of which a pod may belong to it."""
    pairs = (pair for matcher in selection.matchers for pair in matcher.selector.equal)
    return selection.namespace, next(pairs, _ANY)
