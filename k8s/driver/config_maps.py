"""The two ConfigMaps with the settings: their state at the start, and every change (K47, K49, K152)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from quadriga.k8s.conversion import settings as conversion
from quadriga.k8s.objects import ConfigMap
from quadriga.k8s.shim.inputs import Change, ConfigurationChanged
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.reflector import Timing
from quadriga.k8s.transport.requester import NoAnswer, is_again, refusal_of
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.settings")

_decode = msgspec.json.Decoder(ConfigMap).decode
_NAMES: Final = (conversion.DEFAULTS_NAME, conversion.CONFIGS_NAME)


def config_maps_path(namespace: str) -> str:
    """Return the path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"


def only_ours(config_map: ConfigMap) -> ConfigMap:
    """Return the ConfigMap, without its contents unless it is one of ours: a namespace may have thousands of a
    megabyte each."""
    if config_map.metadata.name not in _NAMES:
        config_map.data, config_map.binary_data = {}, {}
    return config_map


class ConfigMaps:
    """The two ConfigMaps. ``deliver`` is called with the texts of both whenever they have changed."""

    def __init__(self, namespace: str, deliver: Callable[[ConfigurationChanged], None]) -> None:
        self._path = config_maps_path(namespace)
        self._deliver = deliver
        self._maps: dict[str, ConfigMap] = {}
        self._announced: conversion.Merged | None = None

    async def read(self, client: Client, timing: Timing) -> conversion.Reading:
        """Read both, retrying until the server answers. Raises `PermissionError`."""
        for name in _NAMES:
            while (found := await self._get(client, name)) is None:
                await timing.sleep(TUNING.settings_retry_s)
            if found.metadata.name:
                self._maps[name] = found
        self._announced = self._merged()
        return conversion.from_maps(*map(self._maps.get, _NAMES))

    async def _get(self, client: Client, name: str) -> ConfigMap | None:
        """Return the ConfigMap, one without a name if it does not exist, ``None`` if the server does not say."""
        try:
            status, body = await client.request("GET", f"{self._path}/{name}")
        except NoAnswer as error:
            _log.warning("ConfigMap %s: %s", name, error)
            return None
        if status == HTTPStatus.NOT_FOUND:
            return ConfigMap()
        if status == HTTPStatus.OK:
            return _decode(body)
        refusal = refusal_of(status, body)
        if is_again(status):
            _log.warning("ConfigMap %s: %s", name, refusal)
            return None
        raise PermissionError(f"ConfigMap {name} cannot be read: {refusal}")

    def announce(self, change: Change, config_map: ConfigMap) -> None:
        """Apply a change that a reflector announces."""
        name = config_map.metadata.name
        if name not in _NAMES:
            return
        if change == "DELETED":
            self._maps.pop(name, None)
        else:
            self._maps[name] = config_map
        merged = self._merged()
        if merged != self._announced:
            self._announced = merged
            self._deliver(ConfigurationChanged(merged.values, merged.errors))

    def _merged(self) -> conversion.Merged:
        return conversion.merge(*map(self._maps.get, _NAMES))
