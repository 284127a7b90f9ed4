"""Storage objects for the shim, watched from the first pod with a claim and without a node (K9).

A cluster without claims pays nothing. When a claim changes, the pods that wait for it are checked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.problems import CLAIMS_UNREAD
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from quadriga.k8s.shim.inputs import Change
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.discovery import patiently, resources
from quadriga.k8s.transport.reflector import Reflector, Timing, Watching
from quadriga.k8s.writers.claims import Claims, claims_of, has_claims
from quadriga.k8s.writers.volume_binding import VolumeBinding

_log = logging.getLogger("quadriga.kubernetes")

_STORAGE: Final = "/apis/storage.k8s.io/v1"
_KINDS: Final[tuple[tuple[str, Any], ...]] = (
    ("/api/v1/persistentvolumeclaims", PersistentVolumeClaim),
    ("/api/v1/persistentvolumes", PersistentVolume),
    (f"{_STORAGE}/storageclasses", StorageClass),
    (f"{_STORAGE}/csinodes", CSINode),
    (f"{_STORAGE}/csidrivers", CSIDriver),
    (f"{_STORAGE}/volumeattachments", VolumeAttachment),
)
#: filters that know where a bound volume can be used
_PLACES: Final = ("VolumeBinding", "VolumeZone")
#: available since 1.24
_CAPACITIES: Final = "csistoragecapacities"

Key = tuple[str, str]


class Volumes:
    """Watches storage objects, on the shim's loop. ``again(pod)`` is called when the pod must be checked again,
    and ``changed`` when predicates may answer differently."""

    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        settings: Settings,
        timing: Timing,
        again: Callable[[Pod], None],
        changed: Callable[[], None],
        watching: type[Watching] | Watching = Watching,
    ) -> None:
        self._client = client
        self._cache = cache
        self._timing = timing
        self._again = again
        self._changed = changed
        self._watching = watching
        self._claims = Claims(self._claim_changed)
        self._binding = VolumeBinding(
            client,
            self._claims,
            misplaced=self._misplaced,
            chosen=cache.chosen_volumes,
            timeout=settings.volume_bind_timeout,
            write_timeout=settings.bind_timeout,
        )
        #: pods with claims and without a node, and which of them use a claim; as ordered sets
        self._pods: dict[str, Pod] = {}
        self._users: dict[Key, dict[str, None]] = {}
        self._needed = asyncio.Event()
        self._synced = asyncio.Event()
        self._unsynced = 0

    @property
    def awaited(self) -> bool:
        """Whether a pod needs something that is not known yet."""
        return self._needed.is_set() and not self._synced.is_set()

    async def synced(self) -> None:
        """Wait until everything is listed."""
        await self._synced.wait()

    def pod_changed(self, change: Change, pod: Pod) -> None:
        """Note the claims of a pod that a reflector announces, before the shim handles it."""
        known = pod.uid in self._pods
        if not known and not pod.spec.volumes:
            return
        waits = change != "DELETED" and not pod.ended and not pod.spec.node_name
        if not (waits and has_claims(pod)):
            if known:
                self._forget(self._pods.pop(pod.uid))
            return
        self._pods[pod.uid] = pod
        for name in claims_of(pod):
            self._users.setdefault((pod.metadata.namespace, name), {})[pod.uid] = None
        self._needed.set()

    def _forget(self, pod: Pod) -> None:
        for name in claims_of(pod):
            key = (pod.metadata.namespace, name)
            users = self._users.get(key)
            if users is not None:
                users.pop(pod.uid, None)
                if not users:
                    del self._users[key]

    def _claim_changed(self, key: Key) -> None:
        self._binding.changed(key)
        if self._claims.synced:
            for uid in list(self._users.get(key, ())):
                self._again(self._pods[uid])

    def announce(self, change: Change, found: Any) -> None:
        """Apply a change of a storage object that a reflector announces."""
        if change == "DELETED":
            self._cache.remove_volume_object(found)
        else:
            self._cache.set_volume_object(found)
        if self._synced.is_set():
            self._changed()
        self._claims.announce(change, found)

    def blocked_reason(self, pod: Pod) -> str:
        """Return why the pod must not be asked for yet; "" if it may (K88)."""
        if not has_claims(pod):
            return ""
        if not self._claims.synced:
            return CLAIMS_UNREAD
        return "; ".join(self._cache.claim_problems(pod.uid))

    def _misplaced(self, uid: str, node: str) -> str | None:
        refusals = self._cache.refusals(uid, node)
        return next((each for each in refusals if each.startswith(_PLACES)), None)

    def bind(self, pod: Pod | None, node: str) -> Awaitable[str | None] | None:
        """Bind the pod's claims, if it has any (K102)."""
        if pod is None or not has_claims(pod):
            return None
        return self._binding.bind_volumes(pod, node)

    # -- watching ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch from the first need until cancelled."""
        await self._needed.wait()
        kinds = list(_KINDS)
        if _CAPACITIES in await patiently(
            lambda: resources(self._client, _STORAGE), self._timing.sleep
        ):
            kinds.append((f"{_STORAGE}/{_CAPACITIES}", CSIStorageCapacity))
        self._unsynced = len(kinds)
        _log.info("a pod has a claim: volumes are watched from now on")
        async with asyncio.TaskGroup() as tasks:
            for path, kind in kinds:
                reflector: Reflector[Any] = Reflector(
                    self._client,
                    path,
                    kind,
                    self.announce,
                    self._timing,
                    synced=self._one_synced,
                    watching=self._watching,
                )
                tasks.create_task(reflector.run())

    def _one_synced(self) -> None:
        self._unsynced -= 1
        if self._unsynced == 0:
            self._claims.synced = True
            self._synced.set()
            for pod in list(self._pods.values()):
                self._again(pod)
