"""What admission knows of the cluster: namespaces, priority classes, and the scheduler's ConfigMaps.

Changes come from reflectors. An object that was created a moment ago may not have been announced yet, so an
unknown one is requested.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Literal, TypeVar
from urllib.parse import quote

import msgspec

from quadriga.k8s.conversion import settings
from quadriga.k8s.conversion.settings import CONFIGS_NAME, DEFAULTS_NAME, Reading, Settings
from quadriga.k8s.objects import ConfigMap, Namespace, PriorityClass
from quadriga.k8s.transport.requester import NoAnswer, Requester
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.admission")


Change = Literal["ADDED", "MODIFIED", "DELETED"]
Kind = TypeVar("Kind", Namespace, PriorityClass)
T = TypeVar("T")


class Known:
    """The known objects, owned by one event loop. ``own_namespace`` is the scheduler's, with its ConfigMaps."""

    def __init__(self, requester: Requester, own_namespace: str) -> None:
        self.own_namespace = own_namespace
        self.settings = Settings()
        self._requester = requester
        self._namespaces: dict[str, Namespace] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._maps: dict[str, ConfigMap] = {}

    def announce(self, change: Change, found: object) -> None:
        """Apply a change that a reflector announces. Kinds that are not needed here are ignored."""
        if isinstance(found, Namespace):
            _keep(self._namespaces, change, found.metadata.name, found)
        elif isinstance(found, PriorityClass):
            _keep(self._classes, change, found.metadata.name, found)
        elif isinstance(found, ConfigMap) and self.is_own(found):
            _keep(self._maps, change, found.metadata.name, found)
            self._read_settings()

    async def namespace(self, name: str) -> Namespace | None:
        """Return the namespace; ``None`` if it does not exist or the API server does not answer in time."""
        if name not in self._namespaces:
            path = f"/api/v1/namespaces/{quote(name)}"
            return await self._ask(path, Namespace) if name else None
        return self._namespaces[name]

    async def priority_class(self, name: str) -> PriorityClass | None:
        """Return the priority class like `namespace`."""
        if name not in self._classes:
            path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{quote(name)}"
            return await self._ask(path, PriorityClass) if name else None
        return self._classes[name]

    async def _ask(self, path: str, kind: type[Kind]) -> Kind | None:
        try:
            async with asyncio.timeout(TUNING.known_timeout_s):
                status, body = await self._requester.request("GET", path)
            return msgspec.json.decode(body, type=kind) if status == 200 else None
        except (NoAnswer, TimeoutError, msgspec.MsgspecError) as error:
            _log.warning(
                "%s cannot be read, and counts as one without annotations: %s", path, error
            )
            return None

    # -- ConfigMaps --------------------------------------------------------------------------------

    def is_own(self, found: ConfigMap) -> bool:
        """Return whether it is one of the scheduler's two ConfigMaps."""
        meta = found.metadata
        return meta.namespace == self.own_namespace and meta.name in (DEFAULTS_NAME, CONFIGS_NAME)

    def with_change(self, found: ConfigMap) -> Reading:
        """Return the settings of both ConfigMaps with this one as given."""
        maps = {**self._maps, found.metadata.name: found}
        return settings.from_maps(maps.get(DEFAULTS_NAME), maps.get(CONFIGS_NAME))

    def _read_settings(self) -> None:
        """Read the settings, all of which take effect at once in admission. Invalid ones leave the old ones."""
        reading = settings.from_maps(self._maps.get(DEFAULTS_NAME), self._maps.get(CONFIGS_NAME))
        if reading.settings is not None:
            self.settings = reading.settings
            return
        for error in reading.errors:
            _log.warning("admission keeps its settings: %s", error)


def _keep(found: dict[str, T], change: Change, name: str, each: T) -> None:
    if change == "DELETED":
        found.pop(name, None)
    else:
        found[name] = each
