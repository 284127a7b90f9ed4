"""Inline disks of the old kinds, which two pods on a node cannot both use (K131)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quadriga.k8s.objects import PodSpec

__all__ = ["Disk", "conflict", "disks"]


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that a pod names itself."""

    kind: str
    name: tuple[str, ...]
    read_only: bool
    #: of Ceph only: the servers, of which one in common makes it the same disk
    monitors: frozenset[str] = frozenset()


def disks(spec: PodSpec) -> tuple[Disk, ...]:
    """All inline disks of a pod."""
    found = []
    for volume in spec.volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            found.append(Disk("gcePersistentDisk", _texts(gce, "pdName"), _read_only(gce)))
        if (aws := volume.aws_elastic_block_store) is not None:
            # Nobody can attach it twice, not even to read.
            found.append(Disk("awsElasticBlockStore", _texts(aws, "volumeID"), False))
        if (iscsi := volume.iscsi) is not None:
            found.append(Disk("iscsi", _texts(iscsi, "iqn"), _read_only(iscsi)))
        if (rbd := volume.rbd) is not None:
            monitors = rbd.get("monitors")
            known = frozenset(map(str, monitors)) if isinstance(monitors, list) else frozenset()
            name = (str(rbd.get("pool") or "rbd"), *_texts(rbd, "image"))
            found.append(Disk("rbd", name, _read_only(rbd), known))
    return tuple(found)


def conflict(ours: tuple[Disk, ...], theirs: tuple[Disk, ...]) -> Disk | None:
    """The first of our disks that the other pod keeps us from."""
    for disk in ours:
        for other in theirs:
            if (disk.kind, disk.name) != (other.kind, other.name):
                continue
            if disk.read_only and other.read_only:
                continue
            if disk.kind != "rbd" or disk.monitors & other.monitors:
                return disk
    return None


def _texts(source: dict[str, Any], key: str) -> tuple[str, ...]:
    return (str(source.get(key, "")),)


def _read_only(source: dict[str, Any]) -> bool:
    return source.get("readOnly") is True
