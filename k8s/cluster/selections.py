"""The pods that terms of other pods select, counted for all terms in the cluster at once.

Pods that no term can distinguish share a profile: their namespace, the labels that some term looks at, and
whether they are terminating. When a pod comes to a node or leaves it, that is noted once for its profile. A
selection counts the noted changes only when it is needed (`Selections.settle`), and finds then which new
profiles belong to it. The pods with terms about other pods therefore pay for them (Q16). See D309.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar, cast

from quadriga.k8s.cluster.domains import CountedPods, Domains
from quadriga.k8s.cluster.terms import AffinityTerm, PodMatcher
from quadriga.k8s.objects import Node, Pod
from quadriga.k8s.tuning import TUNING

_D = TypeVar("_D", bound=Domains)

_NO_LABELS: Mapping[str, str] = {}
_NO_KEYS: Mapping[str, int] = {}
#: stands for the label of a selection whose pods have none in common
_ANY = ("", "")


class Profile:
    """Pods that no term in the cluster distinguishes."""

    __slots__ = (
        "against", "by_node", "identity", "known_to", "labels", "namespace", "pods", "terminating",
    )  # fmt: skip

    def __init__(self, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.identity = (namespace, tuple(sorted(labels.items())), terminating)
        #: number of pods with this profile, in total and by node
        self.pods = 0
        self.by_node: dict[str, int] = {}
        #: the selections that have cached whether it belongs to them
        self.known_to: dict[Selection, None] = {}
        #: those that it belongs to and that pods on nodes have, or had, anti-affinity against
        self.against: dict[Selection, None] = {}


class Selection(CountedPods):
    """The pods that match all of these matchers."""

    __slots__ = (
        "_labels", "counted", "held", "holding", "matchers", "namespace", "profiles", "users",
    )  # fmt: skip

    def __init__(
        self, matchers: tuple[PodMatcher, ...], labels: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Create an empty selection. ``labels`` are those of the namespaces."""
        super().__init__()
        self._labels = labels
        self.matchers = matchers
        self.namespace = _namespace_of(matchers)
        #: number of changes that it has counted; below 0 if everything must be counted again
        self.counted = -1
        #: whether each profile belongs to it
        self.profiles: dict[Profile, bool] = {}
        #: anti-affinity of other pods against these, by topology key; and those terms that pods on nodes have
        #: or had
        self.held: dict[str, Holders] = {}
        self.holding: dict[str, Holders] = {}
        #: number of signatures that use it
        self.users = 0

    def has(self, profile: Profile) -> bool:
        """Return whether the pods of the profile belong to the selection."""
        known = self.profiles.get(profile)
        if known is not None:
            return known
        if self.namespace and self.namespace != profile.namespace:
            return False
        found = self._matches(profile)
        if profile.pods:  # a profile without pods is gone: only its noted changes are counted
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
        """Forget a profile that is gone."""
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
#: profile a new version of a node
_Change = tuple[Profile | None, str, Node | None, Node | None, int]


class Selections:
    """All profiles of pods and all selections of the cluster."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._profiles: dict[tuple[object, ...], Profile] = {}
        #: the same profiles by namespace
        self._profiles_in: dict[str, dict[Profile, None]] = {}
        self._selections: dict[tuple[PodMatcher, ...], Selection] = {}
        #: number of selections with this namespace and this required label of their pods; "" is any namespace,
        #: and ``_ANY`` stands for no required label
        self._anchors: Counter[tuple[str, tuple[str, str]]] = Counter()
        self._by_namespace: dict[Selection, None] = {}
        self._holders: dict[AffinityTerm, Holders] = {}
        #: holders that have or had pods on nodes, and their selections by the namespace of the pods; "" is any
        self._holding: dict[Holders, None] = {}
        self._against: dict[str, dict[Selection, None]] = {}
        #: changes that some selections have not counted yet, and the number of changes before these
        self._changes: list[_Change] = []
        self._dropped = 0
        #: selections without users so far
        self._made: list[Selection] = []
        #: number of selections that look at each label key, by the namespace of their pods; "" is any
        self._keys: dict[str, Counter[str]] = {}

    # ---- profiles

    def profile(self, pod: Pod) -> Profile:
        """Return the profile of the pod, with one more pod."""
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
        """Note that a pod does not have the profile any more."""
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
        """Add ``number`` pods with the profile on the node of this name; negative to remove."""
        self.count_profile(profile, name, number)
        if self.may_belong(profile):
            self._note((profile, name, None, self._nodes.get(name), number))

    def may_belong(self, profile: Profile) -> bool:
        """Return whether the profile may belong to some selection."""
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
        """Change only the profile's own count, for a pod that changes to another profile of the same selections."""
        now = profile.by_node.get(name, 0) + number
        if now:
            profile.by_node[name] = now
        else:
            del profile.by_node[name]

    # ---- selections

    def new_keys(self, matchers: tuple[PodMatcher, ...]) -> set[tuple[str, str]]:
        """Return the label keys that only these matchers look at, each with the namespace of the pods ("" for
        any). Before the selection is used, each pod with such a label needs a new profile: see ``look_at``."""
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
        """Distinguish pods by these labels in profiles made from now on."""
        for namespace, key in keys:
            self._keys.setdefault(namespace, Counter())[key] += 0

    def _keys_in(self, namespace: str) -> Mapping[str, int]:
        return self._keys.get(namespace, _NO_KEYS)

    def make(self, matchers: tuple[PodMatcher, ...]) -> Iterator[None]:
        """Count the pods that match all of these in slices, between which pods may come to nodes and leave
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
            if work >= TUNING.cluster_slice:
                work = 0
                yield
                self._catch_up(selection, seen)
        for profile in self._profiles_of(selection):
            if profile not in seen:
                self._add_profile(selection, profile)

    def let_go(self) -> None:
        """Drop the prepared selections that no one uses."""
        while self._made:
            self.leave(self._made.pop())

    def use(self, matchers: tuple[PodMatcher, ...]) -> Selection:
        """Return the counted selection of these matchers, with one more user."""
        for _ in self.make(matchers):
            pass
        selection = self._selections[matchers]
        selection.users += 1
        return selection

    def leave(self, selection: Selection) -> None:
        """Note that the selection has one user less."""
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
        """Return all profiles that may belong to it."""
        if selection.namespace:
            return self._profiles_in.get(selection.namespace, ())
        return self._profiles.values()

    # ---- counts

    def _note(self, change: _Change) -> None:
        self._changes.append(change)
        if len(self._changes) >= 2 * TUNING.selection_changes:
            del self._changes[: TUNING.selection_changes]
            self._dropped += TUNING.selection_changes

    def settle(self, selections: Iterable[Selection]) -> None:
        """Count the changes that these have not counted yet. Call it before their counts are read."""
        now = self._dropped + len(self._changes)
        for selection in selections:
            if selection.counted != now:
                self._catch_up(selection)

    def _catch_up(self, selection: Selection, counted: set[Profile] | None = None) -> None:
        """Count what the selection lacks. ``counted`` are the profiles that a new one has counted so far."""
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
        """Count the pods of the profile by node if it belongs to the selection. Return the number of their
        nodes."""
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
        """Return the selection's domains with this key, created if needed, with one more user."""
        domains = selection.domains.get(key)
        if domains is None:
            self.settle((selection,))
            domains = selection.domains[key] = make()
            self._fill(domains, selection)
        domains.users += 1
        return cast("_D", domains)

    def leave_domains(self, selection: Selection, key: tuple[object, ...]) -> None:
        """Note that the domains have one user less."""
        domains = selection.domains[key]
        domains.users -= 1
        if not domains.users:
            del selection.domains[key]

    def hold(self, term: AffinityTerm) -> Holders:
        """Return the pods with this term of anti-affinity, for one more signature."""
        holders = self._holders.get(term)
        if holders is None:
            holders = self._holders[term] = Holders(term)
            self.use((term.matcher,)).held[term.key] = holders
        holders.users += 1
        return holders

    def release(self, holders: Holders) -> None:
        """Note that one signature less uses the holders."""
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
        """Add ``number`` pods with the term on the node of this name; negative to remove."""
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
        """Set the labels of a namespace; ``None`` if it is gone."""
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
        """Update all counts after a node was added, removed or changed. ``nodes`` may have either version."""
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
    """Return the only namespace of the pods that these match, as for nearly all terms; else ""."""
    for matcher in matchers:
        if matcher.namespace_selector is None and len(matcher.namespaces) == 1:
            return next(iter(matcher.namespaces))
    return ""


def _keys_of(matchers: tuple[PodMatcher, ...]) -> Iterator[str]:
    return (key for matcher in matchers for key in matcher.selector.keys)


def _anchor(selection: Selection) -> tuple[str, tuple[str, str]]:
    """Return the namespace and a required label of the pods, by one of which a pod may belong to the selection."""
    pairs = (pair for matcher in selection.matchers for pair in matcher.selector.equal)
    return selection.namespace, next(pairs, _ANY)
