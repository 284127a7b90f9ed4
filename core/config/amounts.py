"""Amounts of several resources: reading them, and whether some exceed others.

The rules are those of sections 5 and 5.1: a resource that a maximum does not
name is unlimited there.
"""

from __future__ import annotations

from quadriga.core.config.place import Place
from quadriga.core.config.quantities import QuantityError, parse_quantity

__all__ = ["Amounts", "excess", "read_amounts", "tighter", "unless_zero"]

Amounts = dict[str, int]


def read_amounts(place: Place) -> Amounts | None:
    """The amounts written at `place`, None where nothing is; bad ones are left out."""
    if not place.given:
        return None
    amounts = {}
    for resource, entry in place.entries().items():
        text = entry.text()
        if entry.textual:
            try:
                amounts[resource] = parse_quantity(resource, text)
            except QuantityError as error:
                entry.problem(str(error))
    return amounts


def unless_zero(amounts: Amounts | None) -> Amounts | None:
    """`amounts` if any of them is above zero; otherwise they count as not set (5.1)."""
    return amounts if amounts and any(amounts.values()) else None


def excess(wanted: Amounts | None, limit: Amounts | None) -> str:
    """Where `wanted` exceeds `limit`, such as ``memory 5 > 3``; empty if it fits."""
    if not wanted or not limit:
        return ""
    return ", ".join(
        f"{resource} {amount} > {limit[resource]}"
        for resource, amount in sorted(wanted.items())
        if resource in limit and amount > limit[resource]
    )


def tighter(one: Amounts | None, other: Amounts | None) -> Amounts | None:
    """The smaller amount of each resource, or the only one there is (MinPermissive)."""
    if not one or not other:
        return one or other
    shared = {resource: min(one[resource], other[resource]) for resource in one.keys() & other}
    return {**one, **other, **shared}
