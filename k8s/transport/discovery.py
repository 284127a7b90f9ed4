"""Discovery: which resources the API server has, PodGroups in which version (K204), and what DeviceClasses
serve (K207). See D308."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from quadriga.k8s.conversion.pod_groups import CONDITIONS
from quadriga.k8s.conversion.resources import DEVICE_CLASS
from quadriga.k8s.objects import Metadata
from quadriga.k8s.transport.requester import NoAnswer, Requester
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes")

T = TypeVar("T")

#: version 1.34 is the first that says which extended resource a DeviceClass serves
_DEVICES: Final = "/apis/resource.k8s.io/v1"


class _Resource(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


async def resources(requester: Requester, path: str) -> frozenset[str]:
    """Return the names of the resources of an API version; none if it is not served. Raises `NoAnswer`."""
    status, body = await requester.request("GET", path)
    if status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
        return frozenset()
    if status != HTTPStatus.OK:
        raise NoAnswer(f"{path}: status {status}")
    try:
        found = msgspec.json.decode(body, type=_Resources)
    except msgspec.MsgspecError as error:
        raise NoAnswer(f"{path}: {error}") from None
    return frozenset(each.name for each in found.resources)


async def patiently(
    ask: Callable[[], Awaitable[T]], sleep: Callable[[float], Awaitable[None]]
) -> T:
    """Retry until the server answers."""
    while True:
        try:
            return await ask()
        except NoAnswer as error:
            _log.warning("%s", error)
            await sleep(TUNING.discovery_retry_s)


def pod_groups_path(version: str) -> str:
    """Return the path of PodGroups in this version."""
    return f"/apis/scheduling.k8s.io/{version}/podgroups"


async def pod_group_version(requester: Requester) -> str:
    """Return the newest version in which the server has PodGroups; "" if it has none. Up to 1.21 ``v1beta1``
    held other resources. Raises `NoAnswer`."""
    for version in CONDITIONS:
        if "podgroups" in await resources(requester, f"/apis/scheduling.k8s.io/{version}"):
            return version
    return ""


async def readable_pod_groups(requester: Requester) -> str:
    """Return the same, but "" if the account may not list PodGroups: an older role does not name them."""
    version = await pod_group_version(requester)
    if version:
        status, _ = await requester.request("GET", f"{pod_groups_path(version)}?limit=1")
        if status == HTTPStatus.FORBIDDEN:
            _log.warning("the account may not read PodGroups: pods that name one are not scheduled")
            return ""
    return version


# -- DeviceClasses (K207) --------------------------------------------------------------------------


class _DeviceClassSpec(msgspec.Struct, rename="camel"):
    extended_resource_name: str = ""


class _DeviceClass(msgspec.Struct):
    metadata: Metadata
    spec: _DeviceClassSpec


class _ListOfDeviceClasses(msgspec.Struct):
    items: list[_DeviceClass] = []


async def has_device_classes(requester: Requester) -> bool:
    """Return whether the server has DeviceClasses. Raises `NoAnswer`."""
    return "deviceclasses" in await resources(requester, _DEVICES)


class DeviceClasses:
    """DeviceClasses by the extended resource that they serve, which neither pods nor nodes say.

    They are listed on demand, at most once a minute. If the server has none, or the account may not list them,
    the result is empty.
    """

    def __init__(self, requester: Requester, clock: Callable[[], int]) -> None:
        self._requester = requester
        self._clock = clock
        self._until = 0
        self._names: dict[str, str] = {}

    async def serving(self, resource: str) -> str:
        """Return the name of the class that serves the resource; "" if there is none."""
        if resource.startswith(DEVICE_CLASS):
            return resource.removeprefix(DEVICE_CLASS)
        if self._clock() >= self._until:
            self._until = self._clock() + TUNING.device_classes_ns
            self._names = await self._read()
        return self._names.get(resource, "")

    async def _read(self) -> dict[str, str]:
        try:
            status, body = await self._requester.request("GET", f"{_DEVICES}/deviceclasses")
            found = (
                msgspec.json.decode(body, type=_ListOfDeviceClasses).items
                if status == HTTPStatus.OK
                else ()
            )
        except (NoAnswer, msgspec.MsgspecError) as error:
            _log.warning("DeviceClasses cannot be read: %s", error)
            return self._names
        return {each.spec.extended_resource_name: each.metadata.name for each in found}
