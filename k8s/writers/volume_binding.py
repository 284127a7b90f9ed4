"""Binding of a pod's claims before the pod itself (K102, K103, K150).

A claim that waits for its first consumer gets an existing volume if one was chosen for it: the volume's
claimRef is set. Otherwise an annotation of the claim names the node, and its provisioner creates a volume
there. The volume controller then binds both. If the provisioner cannot create one, it removes the annotation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import msgspec

from quadriga.base.times import SECOND
from quadriga.k8s.conversion.problems import CLAIMS_UNREAD
from quadriga.k8s.objects import PersistentVolume, PersistentVolumeClaim, Pod
from quadriga.k8s.transport.requester import (
    MERGE_PATCH,
    NoAnswer,
    Requester,
    bind_waits,
    is_again,
    refusal_of,
)
from quadriga.k8s.writers.claims import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAITS,
    Claims,
    claims_of,
    is_bound,
)

_log = logging.getLogger("quadriga.kubernetes.writes")

#: annotation of a volume: its claim was chosen by the scheduler or the controller, not by a user
_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"

Key = tuple[str, str]


class _Failed(Exception):
    """The claims cannot be bound, for this reason."""


class VolumeBinding:
    """Binds claims, on one event loop. ``claims`` are kept up to date by reflectors, and `changed` is called
    for each change.

    ``misplaced(uid, node)`` returns why bound volumes cannot be used on the node: a provisioner may have
    created one for another node meanwhile. ``chosen(uid)`` returns the volumes that are held for the claims of
    a pod. ``timeout`` (ns) is for all claims of a pod, ``write_timeout`` (ns) for the attempts of one write.
    """

    def __init__(
        self,
        requester: Requester,
        claims: Claims,
        *,
        misplaced: Callable[[str, str], str | None],
        chosen: Callable[[str], Mapping[Key, str]] = lambda uid: MappingProxyType({}),
        timeout: int,
        write_timeout: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requester = requester
        self._claims = claims
        self._misplaced = misplaced
        self._chosen = chosen
        self._timeout = timeout
        self._write_timeout = write_timeout
        self._sleep = sleep
        self._waiting: dict[Key, set[asyncio.Event]] = {}

    def changed(self, key: Key) -> None:
        """Note that a claim has changed, or a volume, which has no namespace."""
        waiting = [self._waiting.get(key, set())] if key[0] else list(self._waiting.values())
        for events in waiting:
            for each in events:
                each.set()

    async def bind_volumes(self, pod: Pod, node: str) -> str | None:
        """Bind all claims of the pod for the node. Return why that is impossible, else ``None``.

        It may be cancelled: what is written stays, and the next attempt for the pod continues from there.
        """
        names = list(claims_of(pod))
        if not names:
            return None
        if not self._claims.synced:
            return CLAIMS_UNREAD
        deadline = asyncio.ensure_future(self._sleep(self._timeout / SECOND))
        binding = asyncio.ensure_future(self._bind(pod, names, node))
        try:
            await asyncio.wait((binding, deadline), return_when=asyncio.FIRST_COMPLETED)
            if not binding.done():
                return self._unfinished(pod.metadata.namespace, names, node)
            binding.result()
        except _Failed as failed:
            return str(failed)
        finally:
            for each in (binding, deadline):
                each.cancel()
            await asyncio.gather(binding, deadline, return_exceptions=True)
        return self._misplaced(pod.uid, node)

    async def _bind(self, pod: Pod, names: Sequence[str], node: str) -> None:
        namespace = pod.metadata.namespace
        held = self._chosen(pod.metadata.uid)
        # All claims are checked before one is written.
        claims = [self._claim(namespace, name) for name in names]
        volumes = [self._volume_for(claim, held) for claim in claims]
        provisioned = [
            not volume and self._needs_node(claim)
            for claim, volume in zip(claims, volumes, strict=True)
        ]
        waited = []
        for claim, volume, needs_node in zip(claims, volumes, provisioned, strict=True):
            version = claim.metadata.resource_version
            if volume:
                await self._give(claim, volume)
            elif needs_node and claim.metadata.annotations.get(SELECTED_NODE) != node:
                version = await self._select(claim, node)
            waited.append((claim, version, node if needs_node else "", volume))
        for each in waited:
            await self._bound(*each)

    def _claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        claim = self._claims.claim(namespace, name)
        if claim is None:
            raise _Failed(f"persistentvolumeclaim {name} not found")
        if claim.metadata.deletion_timestamp:
            raise _Failed(f"persistentvolumeclaim {name} is being deleted")
        return claim

    def _volume_for(self, claim: PersistentVolumeClaim, held: Mapping[Key, str]) -> str:
        """Return the volume that the claim will be given; "" for none. Raises `_Failed` if it cannot have it."""
        if is_bound(claim) or claim.spec.volume_name:
            return ""
        volume = held.get((claim.metadata.namespace, claim.metadata.name), "")
        if volume:
            self._volume(volume, claim)
        return volume

    def _volume(self, name: str, claim: PersistentVolumeClaim) -> PersistentVolume:
        volume = self._claims.volume(name)
        if volume is None:
            raise _Failed(f"persistentvolume {name} not found")
        if volume.metadata.deletion_timestamp:
            raise _Failed(f"persistentvolume {name} is being deleted")
        reference = volume.spec.claim_ref
        if reference is not None:
            meta = claim.metadata
            same = (reference.namespace, reference.name) == (meta.namespace, meta.name)
            if not same or reference.uid not in ("", meta.uid):
                raise _Failed(
                    f"persistentvolume {name} belongs to the claim {reference.name} of namespace"
                    f" {reference.namespace} now"
                )
        return volume

    def _needs_node(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether a provisioner waits for the node. Raises `_Failed` if nothing will bind the claim."""
        if is_bound(claim) or claim.spec.volume_name:
            return False
        name = claim.metadata.name
        storage_class = self._claims.storage_class(claim)
        if storage_class is None:
            raise _Failed(f"persistentvolumeclaim {name} has no storage class")
        if storage_class.volume_binding_mode != WAITS:
            raise _Failed(f"persistentvolumeclaim {name} is not bound yet")
        if storage_class.provisioner in ("", NO_PROVISIONER):
            raise _Failed(
                f"persistentvolumeclaim {name} needs a volume that is made by hand, and none was chosen"
            )
        return True

    async def _give(self, claim: PersistentVolumeClaim, name: str) -> None:
        """Set the claimRef of the volume. The write is conditional on the version that was read: if the volume
        has changed meanwhile it is checked again, because it may have been given to another claim."""
        meta = claim.metadata
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        while True:
            volume = self._volume(name, claim)
            known = volume.spec.claim_ref
            if known is not None and known.uid:
                return
            version = volume.metadata.resource_version
            metadata: dict[str, Any] = {"uid": volume.metadata.uid, "resourceVersion": version}
            if known is None:
                metadata["annotations"] = {_BY_CONTROLLER: "yes"}
            change = {"metadata": metadata, "spec": {"claimRef": reference}}
            path = f"/api/v1/persistentvolumes/{quote(name)}"
            if await self._patch(path, change, f"persistentvolume {name}") is not None:
                return
            with self._changes_of((meta.namespace, meta.name)) as event:
                while self._volume(name, claim).metadata.resource_version == version:
                    await event.wait()
                    event.clear()

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Name the node to the provisioner, replacing an earlier one (K150). Return the version that was
        written."""
        meta = claim.metadata
        path = (
            f"/api/v1/namespaces/{quote(meta.namespace)}/persistentvolumeclaims/{quote(meta.name)}"
        )
        change = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node}}}
        reply = await self._patch(path, change, f"persistentvolumeclaim {meta.name}")
        if reply is None:
            raise _Failed(f"persistentvolumeclaim {meta.name} is not there any more")
        return _version_of(reply)

    async def _patch(self, path: str, change: dict[str, Any], what: str) -> bytes | None:
        """Send the patch and return the response; ``None`` if the object is gone or has another version now.
        Raises `_Failed`."""
        body = msgspec.json.encode(change)
        waits = bind_waits(self._write_timeout)
        while True:
            try:
                status, reply = await self._requester.request("PATCH", path, body, MERGE_PATCH)
            except NoAnswer as error:
                status, reply, reason = 0, b"", str(error)
            else:
                if 200 <= status < 300:
                    return reply
                reason = str(refusal_of(status, reply))
            if status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                return None
            wait = next(waits, None) if is_again(status) else None
            if wait is None:
                raise _Failed(f"{what} cannot be written: {reason}")
            await self._sleep(wait)

    @contextmanager
    def _changes_of(self, key: Key) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change of the claim or of a volume."""
        event = asyncio.Event()
        self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            waiting = self._waiting[key]
            waiting.discard(event)
            if not waiting:
                del self._waiting[key]

    async def _bound(
        self, before: PersistentVolumeClaim, version: str, node: str, volume: str
    ) -> None:
        """Wait until the claim is bound. ``node`` was named to the provisioner in this version; ``volume`` was
        given to the claim."""
        meta = before.metadata
        key = (meta.namespace, meta.name)
        with self._changes_of(key) as event:
            while True:
                event.clear()
                claim = self._claim(*key)
                if claim.metadata.uid != meta.uid:
                    raise _Failed(f"persistentvolumeclaim {meta.name} is another one now")
                if is_bound(claim) and self._claims.volume(claim.spec.volume_name) is not None:
                    return
                if volume and not claim.spec.volume_name:
                    self._volume(volume, claim)
                if node and not claim.spec.volume_name and not _is_older(claim, version):
                    chosen = claim.metadata.annotations.get(SELECTED_NODE)
                    if chosen is None:
                        raise _Failed(
                            f"persistentvolumeclaim {meta.name}: the provisioner cannot make a"
                            f" volume for node {node}"
                        )
                    if chosen != node:
                        raise _Failed(
                            f"persistentvolumeclaim {meta.name} waits for node {chosen} now"
                        )
                await event.wait()

    def _unfinished(self, namespace: str, names: Sequence[str], node: str) -> str:
        claims = [(name, self._claims.claim(namespace, name)) for name in names]
        left = [name for name, claim in claims if claim is None or not is_bound(claim)]
        return (
            f"no volume for node {node} within {self._timeout / SECOND:g} s:"
            f" persistentvolumeclaim {', '.join(left)}"
        )


def _version_of(reply: bytes) -> str:
    """Return the version in the response to a write; "" if it cannot be read."""
    try:
        return msgspec.json.decode(reply, type=PersistentVolumeClaim).metadata.resource_version
    except msgspec.MsgspecError as error:
        _log.warning("a claim that was written cannot be read: %s", error)
        return ""


def _is_older(claim: PersistentVolumeClaim, version: str) -> bool:
    """Return whether the watch has not shown this version yet. Versions of one server are increasing numbers."""
    known = claim.metadata.resource_version
    return known.isdecimal() and version.isdecimal() and int(known) < int(version)
