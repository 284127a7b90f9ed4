"""Claims, and the classes and volumes that they name, as the binding of claims needs them.

The predicates have their own view of storage, in the cluster cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from quadriga.k8s.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

#: annotation of a claim: the controller has bound claim and volume to each other
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
#: annotation of a claim: the node for which the provisioner creates the volume
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
#: annotation with the class of old claims and volumes, which preceded the field
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
#: binding mode of a class whose claims are bound once a pod has a node
WAITS: Final = "WaitForFirstConsumer"
#: the provisioner of classes whose volumes are created manually
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]


def has_claims(pod: Pod) -> bool:
    """Return whether the pod has volumes with claims."""
    return any(
        each.persistent_volume_claim is not None or each.ephemeral is not None
        for each in pod.spec.volumes
    )


def claims_of(pod: Pod) -> Iterator[str]:
    """Yield the names of the pod's claims; the claim of an ephemeral volume is named after pod and volume
    (K88)."""
    for each in pod.spec.volumes:
        if each.persistent_volume_claim is not None:
            yield each.persistent_volume_claim.claim_name
        elif each.ephemeral is not None:
            yield f"{pod.metadata.name}-{each.name}"


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether claim and volume are bound to each other."""
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


class Claims:
    """Claims, volumes and classes as watched. ``changed`` is called after each change of a claim with its
    namespace and name, and of a volume with an empty namespace."""

    def __init__(self, changed: Callable[[Key], None] = lambda key: None) -> None:
        self._changed = changed
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        #: whether everything was listed; before that, unknown objects may exist
        self.synced = False

    def announce(self, change: Change, found: Any) -> None:
        """Apply a change that a reflector announces. Other kinds of objects are ignored."""
        name = found.metadata.name
        gone = change == "DELETED"
        if isinstance(found, PersistentVolumeClaim):
            key = (found.metadata.namespace, name)
            if gone:
                self._claims.pop(key, None)
            else:
                self._claims[key] = found
            self._changed(key)
        elif isinstance(found, PersistentVolume):
            if gone:
                self._volumes.pop(name, None)
            else:
                self._volumes[name] = found
            self._changed(("", name))
        elif isinstance(found, StorageClass):
            if gone:
                self._classes.pop(name, None)
            else:
                self._classes[name] = found

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return the claim, ``None`` if it is unknown."""
        return self._claims.get((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return the volume, ``None`` if it is unknown."""
        return self._volumes.get(name)

    def storage_class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the class of the claim, ``None`` if it names none or one that does not exist."""
        name = claim.metadata.annotations.get(_OLD_CLASS, claim.spec.storage_class_name)
        return self._classes.get(name or "")
