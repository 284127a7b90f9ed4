"""The lists and watches behind the shim's decisions: nodes, namespaces, priority classes, pods, our ConfigMaps, and
PodGroups where the API server has them (K13)."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from quadriga.base.times import SECOND
from quadriga.k8s.conversion.bounds import Bounds
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.driver.config_maps import ConfigMaps, config_maps_path, only_ours
from quadriga.k8s.driver.inbox import Inbox
from quadriga.k8s.driver.volumes import Volumes
from quadriga.k8s.objects import ConfigMap, Namespace, Node, Pod, PodGroup, PriorityClass
from quadriga.k8s.shim.inputs import Change, Changed, PodGroupsServed, Synced
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.discovery import patiently, pod_groups_path, readable_pod_groups
from quadriga.k8s.transport.reflector import RealTiming, Reflector, Watching
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes")

_PODS: Final = "/api/v1/pods"
_KINDS: Final = (
    ("/api/v1/nodes", Node),
    ("/api/v1/namespaces", Namespace),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass),
    (_PODS, Pod),
)


class Watches:
    """The reflectors, on the shim's loop. With ``tune_gc`` the garbage collector is disabled while they list."""

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        settings: Settings,
        timing: RealTiming,
        *,
        watching: type[Watching] | Watching,
        tune_gc: bool,
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._bounds = Bounds(settings.bounds)
        self._timing = timing
        self._watching = watching
        self._tune_gc = tune_gc
        self._group_version = ""
        self._unsynced = 0
        self._all_synced = asyncio.Event()
        self.reflectors: list[Reflector[Any]] = []

    async def prepare(self, namespace: str, maps: ConfigMaps, volumes: Volumes) -> None:
        """Ask the server for PodGroups, and make the reflectors. Our ConfigMaps are in ``namespace``."""
        self._group_version = await self._served_groups()
        self._inbox.put(PodGroupsServed(self._group_version))
        self.reflectors = self._new_reflectors(namespace, maps, volumes)
        self._unsynced = len(self.reflectors)

    def begin_listing(self) -> None:
        """Disable the garbage collector for the first lists: it would take three quarters of their time (K190)."""
        if self._tune_gc:
            gc.disable()

    def end_listing(self) -> None:
        """Enable the garbage collector again, which then ignores what has been listed."""
        if self._tune_gc and not gc.isenabled():
            gc.collect()
            gc.freeze()
            gc.enable()

    def pods(self) -> Mapping[str, Pod]:
        """Return the pods that the reflector knows, by UID."""
        (found,) = (each for each in self.reflectors if each.key == _PODS)
        return found.objects

    async def announce_synced(self, volumes: Volumes) -> None:
        """Tell the shim that everything is synced that its pods need at the start."""
        await self._all_synced.wait()
        if volumes.awaited:
            try:
                async with asyncio.timeout(TUNING.volumes_patience_s):
                    await volumes.synced()
            except TimeoutError:
                _log.warning("volumes cannot be listed: pods with claims stay pending until then")
        self._inbox.put(Synced())

    async def look_for_groups(self, tasks: asyncio.TaskGroup) -> None:
        """Check from time to time whether the server has PodGroups, or has them in another version: an upgrade
        may bring them. A server that has lost them may get them again."""
        version = self._group_version
        watched = self.reflectors[-1] if version else None
        while True:
            await self._timing.sleep(TUNING.pod_groups_check_s)
            found = await self._served_groups()
            if found in ("", version):
                continue
            version = found
            self._inbox.put(PodGroupsServed(version))
            if watched is None:
                watched = self._group_reflector(version)
                self.reflectors.append(watched)
                tasks.create_task(watched.run())
            else:
                watched.key = pod_groups_path(version)  # for its next request

    def dump(self) -> list[dict[str, Any]]:
        """Return the state of each reflector as JSON."""
        now = self._timing.now()
        return [
            {
                "path": each.key,
                "state": each.state,
                "resourceVersion": each.version,
                "ageSeconds": (now - each.last_contact) // SECOND,
                "objects": each.known,
                "problem": each.problem,
            }
            for each in self.reflectors
        ]

    def _new_reflectors(
        self, namespace: str, maps: ConfigMaps, volumes: Volumes
    ) -> list[Reflector[Any]]:
        put, bounds = self._inbox.put, self._bounds
        within: dict[Any, Callable[[Any], Any]] = {
            Pod: bounds.pod,
            Node: bounds.node,
            Namespace: bounds.namespace,
        }

        def announce_pod(change: Change, changed: Any) -> None:
            volumes.pod_changed(change, changed)
            put(Changed(change, changed))

        found: list[Reflector[Any]] = [
            Reflector(
                self._client,
                path,
                kind,
                announce_pod if kind is Pod else self._announce,
                self._timing,
                synced=self._one_synced,
                wait_for_capacity=self._inbox.wait_for_capacity,
                watching=self._watching,
                within=within.get(kind),
            )
            for path, kind in _KINDS
        ]
        found.append(
            Reflector(
                self._client,
                config_maps_path(namespace),
                ConfigMap,
                maps.announce,
                self._timing,
                synced=self._one_synced,
                watching=self._watching,
                within=only_ours,
            )
        )
        if self._group_version:
            found.append(self._group_reflector(self._group_version, self._one_synced))
        return found

    def _group_reflector(
        self, version: str, synced: Callable[[], None] = lambda: None
    ) -> Reflector[PodGroup]:
        return Reflector(
            self._client,
            pod_groups_path(version),
            PodGroup,
            self._announce,
            self._timing,
            synced=synced,
            watching=self._watching,
            within=self._bounds.pod_group,
        )

    def _announce(self, change: Change, changed: Any) -> None:
        self._inbox.put(Changed(change, changed))

    async def _served_groups(self) -> str:
        return await patiently(lambda: readable_pod_groups(self._client), self._timing.sleep)

    def _one_synced(self) -> None:
        self._unsynced -= 1
        if self._unsynced == 0:
            self.end_listing()
            self._all_synced.set()
