"""Existing volumes: which one a claim can have on a node, and which one it will get (K102, K103).

The choice is that of kube-scheduler: a volume that is reserved for the claim, else the smallest free one that
fits. A choice is held for the pods that wait for it, so that no second claim gets the same volume meanwhile.

Free volumes are sorted by size, separately for each storage class and, if local, for each node: the cost of
checking a node does not depend on the number of other nodes' volumes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from quadriga.k8s.cluster.selectors import NodeTerm, compile_selector
from quadriga.k8s.conversion.quantities import QuantityError, amount
from quadriga.k8s.objects import Node, PersistentVolume, PersistentVolumeClaim

#: namespace and name of a claim
ClaimName = tuple[str, str]

#: annotation with the class of old claims and volumes, which takes precedence over the field
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_HOST = "kubernetes.io/hostname"
_AVAILABLE = "Available"
_FILES = "Filesystem"

#: a storage class and the host name of local volumes; "" for volumes that several nodes can use
_Shelf = tuple[str, str]


def class_of(thing: PersistentVolume | PersistentVolumeClaim) -> str:
    """Return the storage class of a volume or claim; "" for none."""
    name = thing.metadata.annotations.get(_OLD_CLASS, thing.spec.storage_class_name)
    return name or ""


def size_of(quantity: object) -> int | None:
    """Return the size in bytes, ``None`` if there is none."""
    if not isinstance(quantity, str | int | float):
        return None
    try:
        return amount("storage", quantity)
    except QuantityError:
        return None


def requested(claim: PersistentVolumeClaim) -> int:
    """Return the size in bytes that the claim requests."""
    return size_of(claim.spec.resources.requests.get("storage", 0)) or 0


def name_of(claim: PersistentVolumeClaim) -> ClaimName:
    """Return namespace and name of the claim."""
    return claim.metadata.namespace, claim.metadata.name


@dataclass(slots=True)
class _Known:
    volume: PersistentVolume
    terms: tuple[NodeTerm, ...] | None
    size: int
    #: the shelves that list it while it is free
    shelves: tuple[_Shelf, ...] = ()
    #: the claim that it is reserved for or bound to
    claim: ClaimName | None = None


@dataclass(slots=True)
class _Choice:
    volume: str
    #: the pods that wait for it
    holders: set[str] = field(default_factory=set)


class FreeVolumes:
    """All volumes, and which of them are chosen for claims."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._shelves: dict[_Shelf, list[tuple[int, str]]] = {}
        #: volumes by the claim in their claimRef
        self._aside: dict[ClaimName, dict[str, None]] = {}
        self._choices: dict[ClaimName, _Choice] = {}
        #: the claim for which a volume is held
        self._held: dict[str, ClaimName] = {}
        #: the volumes that each pod waits for
        self._chosen: dict[str, dict[ClaimName, str]] = {}
        #: the volume of each bound claim, and the claim of each such volume
        self._bound: dict[ClaimName, str] = {}
        self._owner: dict[str, ClaimName] = {}

    # ---- what is there

    def set(self, volume: PersistentVolume, terms: tuple[NodeTerm, ...] | None) -> None:
        """Add or update a volume; ``terms`` are those of its node affinity."""
        name = volume.metadata.name
        self.remove(name)
        size = size_of(volume.spec.capacity.get("storage", 0)) or 0
        known = self._known[name] = _Known(volume, terms, size)
        reference = volume.spec.claim_ref
        if reference is not None:
            known.claim = (reference.namespace, reference.name)
            self._aside.setdefault(known.claim, {})[name] = None
        elif volume.status.phase == _AVAILABLE and not volume.metadata.deletion_timestamp:
            known.shelves = tuple((class_of(volume), host) for host in _hosts(terms))
            for shelf in known.shelves:
                insort(self._shelves.setdefault(shelf, []), (size, name))

    def remove(self, name: str) -> None:
        """Remove a volume; do nothing if it is unknown."""
        known = self._known.pop(name, None)
        if known is None:
            return
        if known.claim is not None:
            aside = self._aside[known.claim]
            del aside[name]
            if not aside:
                del self._aside[known.claim]
        for shelf in known.shelves:
            found = self._shelves[shelf]
            del found[bisect_left(found, (known.size, name))]
            if not found:
                del self._shelves[shelf]

    def bind(self, claim: ClaimName, volume: str) -> None:
        """Note that the claim is bound to this volume, or to none (""). The volume itself may say so later."""
        before = self._bound.pop(claim, "")
        if self._owner.get(before) == claim:
            del self._owner[before]
        if volume:
            self._bound[claim] = volume
            self._owner[volume] = claim

    # ---- choices

    def find(
        self, claim: PersistentVolumeClaim, node: Node, uid: str, taken: Set[str]
    ) -> tuple[str, bool]:
        """Return the volume that the claim can have on the node ("" for none), and whether the claim will get
        one that cannot be used there. A volume held only by the pod ``uid`` is free for it; ``taken`` are
        volumes that other claims of the pod get."""
        name = name_of(claim)
        choice = self._choices.get(name)
        if choice is not None and choice.holders != {uid}:
            known = self._known.get(choice.volume)
            fits = known is not None and _reaches(known, node)
            return (choice.volume, False) if fits else ("", True)
        for each in self._aside.get(name, ()):
            known = self._known[each]
            if each not in taken and self._is_for(known, claim) and self._may_hold(each, name, uid):
                return (each, False) if _reaches(known, node) else ("", True)
        return self._smallest(claim, node, uid, taken), False

    def _is_for(self, known: _Known, claim: PersistentVolumeClaim) -> bool:
        """Return whether a volume that names the claim can be bound to it."""
        reference, spec = known.volume.spec.claim_ref, known.volume.spec
        return (
            reference is not None
            and reference.uid in ("", claim.metadata.uid)
            and not known.volume.metadata.deletion_timestamp
            and class_of(known.volume) == class_of(claim)
            and known.size >= requested(claim)
            and _same_kind(claim, spec.volume_mode, spec.volume_attributes_class_name)
        )

    def _smallest(self, claim: PersistentVolumeClaim, node: Node, uid: str, taken: Set[str]) -> str:
        name, least, wanted = name_of(claim), (requested(claim), ""), class_of(claim)
        selector = claim.spec.selector
        compiled = None if selector is None else compile_selector(selector)
        best: tuple[int, str] | None = None
        for host in {"", node.metadata.labels.get(_HOST, "")}:
            for found in _from(self._shelves.get((wanted, host), ()), least):
                if best is not None and found > best:
                    break
                known = self._known[found[1]]
                spec = known.volume.spec
                if (
                    found[1] not in taken
                    and found[1] not in self._owner
                    and self._may_hold(found[1], name, uid)
                    and _same_kind(claim, spec.volume_mode, spec.volume_attributes_class_name)
                    and (compiled is None or compiled.matches(known.volume.metadata.labels))
                    and set(claim.spec.access_modes) <= set(spec.access_modes)
                    and _reaches(known, node)
                ):
                    best = found
                    break
        return "" if best is None else best[1]

    def _may_hold(self, volume: str, claim: ClaimName, uid: str) -> bool:
        """Return whether no other pod holds the volume for another claim."""
        holder = self._held.get(volume, claim)
        return holder == claim or self._choices[holder].holders == {uid}

    def hold(self, uid: str, chosen: Mapping[ClaimName, str]) -> None:
        """Let the pod wait for exactly these volumes."""
        self.drop(uid)
        if chosen:
            self._chosen[uid] = dict(chosen)
        for claim, volume in chosen.items():
            self._choices.setdefault(claim, _Choice(volume)).holders.add(uid)
            self._held[volume] = claim

    def drop(self, uid: str) -> None:
        """Release the volumes that the pod waits for."""
        for claim in self._chosen.pop(uid, ()):
            choice = self._choices[claim]
            choice.holders.discard(uid)
            if not choice.holders:
                del self._choices[claim]
                del self._held[choice.volume]

    def chosen(self, uid: str) -> dict[ClaimName, str]:
        """Return the volumes that the pod waits for."""
        return dict(self._chosen.get(uid, {}))


def _from(
    shelf: list[tuple[int, str]] | tuple[()], least: tuple[int, str]
) -> Iterator[tuple[int, str]]:
    for index in range(bisect_left(shelf, least), len(shelf)):
        yield shelf[index]


def _hosts(terms: tuple[NodeTerm, ...] | None) -> set[str]:
    """Return the host names of the nodes that can use a volume if its terms name them, else only ""."""
    hosts: set[str] = set()
    for term in terms or ():
        named = [
            values for key, operator, values, _ in term.clauses if (key, operator) == (_HOST, "In")
        ]
        if not named:
            return {""}
        hosts |= named[0]
    return {""} if terms is None else hosts


def _reaches(known: _Known, node: Node) -> bool:
    """Return whether the volume can be used on the node."""
    labels = node.metadata.labels
    return known.terms is None or any(term.matches(node.name, labels) for term in known.terms)


def _same_kind(claim: PersistentVolumeClaim, mode: str, attributes: str) -> bool:
    """Return whether both agree in the volume mode (file system or block device) and the class of attributes."""
    spec = claim.spec
    return (spec.volume_mode or _FILES) == (mode or _FILES) and (
        spec.volume_attributes_class_name == attributes
    )
