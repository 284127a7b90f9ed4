"""Quantities by type name, and percentages of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.views.objects import Resources


def amounts(
    partition: Partition, vector: Iterable[int], always: Mapping[str, int] | None = None
) -> Resources:
    """A vector by type name, in order of names; zeros only for the types of ``always``."""
    shown = always or {}
    named = zip(partition.registry.names, vector, strict=False)
    hidden = partition.registry.hidden
    found = {
        name: value
        for at, (name, value) in enumerate(named)
        if (value or name in shown) and at not in hidden
    }
    return sorted_amounts(found)


def provided(partition: Partition) -> Resources:
    """The capacity of the partition's nodes; types that no node has are absent."""
    return amounts(partition, partition.capacity)


def sorted_amounts(quantities: Mapping[str, int] | None) -> Resources:
    """A copy in order of names; nothing for ``None`` (not set)."""
    return dict(sorted(quantities.items())) if quantities else {}


def percent(used: int, whole: int) -> int:
    """``100 * used / whole``, rounded down; 0 if nothing is used, 100 if there is nothing (2.14)."""
    if used <= 0:
        return 0
    return 100 * used // whole if whole > 0 else 100


def percentages(used: Mapping[str, int], whole: Mapping[str, int]) -> Resources:
    """The percentage of each type that both have."""
    return {name: percent(used[name], whole[name]) for name in sorted(whole) if name in used}
