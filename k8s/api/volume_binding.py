"""Binds the claims of a pod before the pod itself (K102, K103, K150).

A claim that waits for its first consumer is told the node, by an annotation; its provisioner makes a volume
there, and the controller of volumes binds both. When the provisioner cannot, it takes the annotation away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from quadriga.k8s.api.claims import (
    NO_PROVISIONER,
    SELECTED_NODE,
    WAITS,
    Claims,
    claims_of,
    is_bound,
)
from quadriga.k8s.api.refusals import refusal_of
from quadriga.k8s.api.requester import MERGE_PATCH, NoAnswer, Requester
from quadriga.k8s.api.retries import bind_waits, is_again
from quadriga.k8s.conversion.problems import CLAIMS_UNREAD
from quadriga.k8s.objects import Pod
from quadriga.k8s.objects_volumes import PersistentVolumeClaim

__all__ = ["VolumeBinding"]

_log = logging.getLogger("quadriga.kubernetes.writes")

SECOND: Final = 1_000_000_000
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

Key = tuple[str, str]


class _Failed(Exception):
    """The claims cannot be bound, and why."""


class VolumeBinding:
    """On one event loop. ``claims`` are kept up to date by reflectors, and `changed` hears of each change.

    ``misplaced(uid, node)`` says why bound volumes cannot be used on the node: a provisioner may have made one
    for another node meanwhile. ``timeout`` (ns) is for all claims of a pod, ``write_timeout`` (ns) for the
    tries of one write.
    """

    def __init__(
        self,
        requester: Requester,
        claims: Claims,
        *,
        misplaced: Callable[[str, str], str | None],
        timeout: int,
        write_timeout: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requester = requester
        self._claims = claims
        self._misplaced = misplaced
        self._timeout = timeout
        self._write_timeout = write_timeout
        self._sleep = sleep
        self._waiting: dict[Key, set[asyncio.Event]] = {}

    def changed(self, key: Key) -> None:
        """A claim has changed, or a volume, which has no namespace."""
        waiting = [self._waiting.get(key, set())] if key[0] else list(self._waiting.values())
        for events in waiting:
            for each in events:
                each.set()

    async def bind_volumes(self, pod: Pod, node: str) -> str | None:
        """Bind all claims of the pod for the node. Returns why that is not possible, else None.

        It may be cancelled: what is written stays, and the next try for the pod goes on from there.
        """
        names = list(claims_of(pod))
        if not names:
            return None
        if not self._claims.synced:
            return CLAIMS_UNREAD
        deadline = asyncio.ensure_future(self._sleep(self._timeout / SECOND))
        binding = asyncio.ensure_future(self._bind(pod.metadata.namespace, names, node))
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

    async def _bind(self, namespace: str, names: Sequence[str], node: str) -> None:
        # All of them are looked at before one is written.
        claims = [self._claim(namespace, name) for name in names]
        chosen = [self._needs_node(claim) for claim in claims]
        waited = []
        for claim, needs_node in zip(claims, chosen, strict=True):
            version = claim.metadata.resource_version
            if needs_node and claim.metadata.annotations.get(SELECTED_NODE) != node:
                version = await self._select(claim, node)
            waited.append((claim, version, node if needs_node else ""))
        for each in waited:
            await self._bound(*each)

    def _claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        claim = self._claims.claim(namespace, name)
        if claim is None:
            raise _Failed(f"persistentvolumeclaim {name} not found")
        if claim.metadata.deletion_timestamp:
            raise _Failed(f"persistentvolumeclaim {name} is being deleted")
        return claim

    def _needs_node(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a provisioner waits for the node. Raises `_Failed` if nobody will bind the claim."""
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
                f"persistentvolumeclaim {name} needs a volume that is made by hand, which is not"
                " supported yet"
            )
        return True

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Tell the provisioner the node, in place of an earlier one (K150). Returns the version that was
        written."""
        meta = claim.metadata
        path = (
            f"/api/v1/namespaces/{quote(meta.namespace)}/persistentvolumeclaims/{quote(meta.name)}"
        )
        change = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node}}}
        body = msgspec.json.encode(change)
        waits = bind_waits(self._write_timeout)
        while True:
            try:
                status, reply = await self._requester.request("PATCH", path, body, MERGE_PATCH)
            except NoAnswer as error:
                status, reply, reason = 0, b"", str(error)
            else:
                if 200 <= status < 300:
                    return _version_of(reply)
                reason = str(refusal_of(status, reply))
            if status in (_NOT_FOUND, _CONFLICT):
                raise _Failed(f"persistentvolumeclaim {meta.name} is not there any more")
            wait = next(waits, None) if is_again(status) else None
            if wait is None:
                raise _Failed(f"persistentvolumeclaim {meta.name} cannot be written: {reason}")
            await self._sleep(wait)

    async def _bound(self, before: PersistentVolumeClaim, version: str, node: str) -> None:
        """Wait until the claim is bound. ``node``: it was told this one, in this version."""
        meta = before.metadata
        key = (meta.namespace, meta.name)
        event = asyncio.Event()
        self._waiting.setdefault(key, set()).add(event)
        try:
            while True:
                event.clear()
                claim = self._claim(*key)
                if claim.metadata.uid != meta.uid:
                    raise _Failed(f"persistentvolumeclaim {meta.name} is another one now")
                if is_bound(claim) and self._claims.has_volume(claim.spec.volume_name):
                    return
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
        finally:
            waiting = self._waiting[key]
            waiting.discard(event)
            if not waiting:
                del self._waiting[key]

    def _unfinished(self, namespace: str, names: Sequence[str], node: str) -> str:
        claims = [(name, self._claims.claim(namespace, name)) for name in names]
        left = [name for name, claim in claims if claim is None or not is_bound(claim)]
        return (
            f"no volume for node {node} within {self._timeout / SECOND:g} s:"
            f" persistentvolumeclaim {', '.join(left)}"
        )


def _version_of(reply: bytes) -> str:
    """The version in the reply to a write; empty, if it cannot be read."""
    try:
        return msgspec.json.decode(reply, type=PersistentVolumeClaim).metadata.resource_version
    except msgspec.MsgspecError as error:
        _log.warning("a claim that was written cannot be read: %s", error)
        return ""


def _is_older(claim: PersistentVolumeClaim, version: str) -> bool:
    """Whether the watch has not shown this version yet. Versions of one server are numbers that grow."""
    known = claim.metadata.resource_version
    return known.isdecimal() and version.isdecimal() and int(known) < int(version)
