"""Amounts of several resources: read, and compared with each other.

A max does not limit a resource that it does not name (5, 5.1).
"""

from __future__ import annotations

from quadriga.core.config.location import Location
from quadriga.core.config.quantities import QuantityError, parse_quantity

Amounts = dict[str, int]


def read_amounts(location: Location) -> Amounts | None:
    """Return the amounts at `location`, None if there is no value. Invalid amounts are left out."""
    if not location.is_set:
        return None
    amounts = {}
    for resource, entry in location.entries().items():
        text = entry.text()
        if entry.is_text_or_absent:
            try:
                amounts[resource] = parse_quantity(resource, text)
            except QuantityError as error:
                entry.problem(str(error))
    return amounts


def unless_zero(amounts: Amounts | None) -> Amounts | None:
    """Return `amounts` if any of them is above zero; otherwise None, which means not set (5.1)."""
    return amounts if amounts and any(amounts.values()) else None


def excess(amounts: Amounts | None, limit: Amounts | None) -> str:
    """Return the amounts that exceed `limit`, such as ``memory 5 > 3``; empty if none does."""
    if not amounts or not limit:
        return ""
    return ", ".join(
        f"{resource} {amount} > {limit[resource]}"
        for resource, amount in sorted(amounts.items())
        if resource in limit and amount > limit[resource]
    )


def tighter(one: Amounts | None, other: Amounts | None) -> Amounts | None:
    """Return the smaller amount of each resource; a resource that only one of them names keeps its
    amount (MinPermissive)."""
    if not one or not other:
        return one or other
    shared = {resource: min(one[resource], other[resource]) for resource in one.keys() & other}
    return {**one, **other, **shared}
