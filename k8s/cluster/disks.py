"""Inline disks of the in-tree plugins that two pods on a node cannot both use (K131)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quadriga.k8s.objects import PodSpec


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that a pod's spec names directly."""

    kind: str
    name: tuple[str, ...]
    read_only: bool
    #: Ceph only: the monitors. Two disks with a common monitor are the same.
    monitors: frozenset[str] = frozenset()


def disks(spec: PodSpec) -> tuple[Disk, ...]:
    """Return all inline disks of a pod."""
    found = []
    for volume in spec.volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            found.append(Disk("gcePersistentDisk", _texts(gce, "pdName"), _read_only(gce)))
        if (aws := volume.aws_elastic_block_store) is not None:
            # It cannot be attached twice, not even read-only.
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
    """Return the first of our disks that the other pod's disks prevent us from using."""
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
