"""Nodes: a list one page at a time, a strip with the utilisation of all, and one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.model.node import Node
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.core.views import BadRequest
from quadriga.core.views.quantities import amounts, percent, percentages, provided
from quadriga.fsm import NODE
from quadriga.si.constants import HOST_NAME, NODE_READY_ATTRIBUTE, RACK_NAME
from quadriga.web.pages.data.application import allocation_rows
from quadriga.web.pages.data.lookup import node_of, partition_of
from quadriga.web.pages.data.sorting import both_ways, page_in_order

CHOICES: Final = ("", "reserved", "unhealthy", *NODE.states)

#: The columns that the list can be sorted by, beside utilisation; equal ones are sorted by name.
_KEYS: Final[dict[str, Callable[[Node], Any]]] = {
    "state": lambda node: (node.state, is_unhealthy(node)),
    "since": lambda node: -node.since,
    "allocations": lambda node: len(node.allocations),
    "rack": lambda node: node.attributes.get(RACK_NAME, ""),
}
SORTS: Final = ("name", "-name", "fullest", "emptiest", *both_ways(_KEYS))

#: At most this many cells are in the strip; with more nodes, neighbours by name share a cell.
_CELLS: Final = 600
_ALLOCATIONS: Final = 500


def node_rows(
    scheduler: Scheduler,
    *,
    partition: str,
    state: str,
    text: str,
    type: str,
    sort: str,
    offset: int,
    limit: int,
) -> Steps[dict[str, Any]]:
    """One page of the nodes that match the filters, and ``cells``: the utilisation of all nodes.

    ``type`` is the resource of the cells and of the order by utilisation; by default the one with the
    largest share allocated. A cell has its first node and that node's index among all (by name), the
    number of its nodes, their utilisation together and the largest of them in percent, and how many are
    draining or reserved.
    """
    found = partition_of(scheduler, partition)
    capacity = provided(found)
    allocated = amounts(found, found.root.allocated, capacity)
    shares = percentages(allocated, capacity)
    about = type or max(sorted(capacity), key=lambda name: shares[name], default="")
    if about and about not in found.registry.index:
        raise BadRequest(f"type: no node has {about!r}")
    index = found.registry.index.get(about, 0)

    def fullness(node: Node) -> int:
        return percent(node.allocated[index], node.total[index]) if node.total[index] else 0

    found.node_index.sizes()  # its nodes are in order now
    every, chosen = found.node_index.nodes.copy(), []
    piece = text.casefold()
    for some in chunks(every):
        chosen += [
            node
            for node in some
            if _is(state, node)
            and (not piece or piece in node.node_id.casefold() or piece in _host(node).casefold())
        ]
        yield
    page = slice(offset, offset + limit)
    if sort in ("name", "-name"):
        shown = chosen[:: -1 if sort == "-name" else 1][page]
    elif sort in ("fullest", "emptiest"):
        way = "-" if sort == "fullest" else ""
        shown = yield from page_in_order(chosen, way, lambda _, node: fullness(node), page)
    else:
        shown = yield from page_in_order(chosen, sort, lambda key, node: _KEYS[key](node), page)
    cells = (yield from _cells(every, index, fullness)) if every else []
    return {
        "partition": found.key,
        "types": list(capacity),
        "type": about,
        "all": len(every),
        "total": len(chosen),
        "offset": offset,
        "limit": limit,
        "rows": [_row(node) for node in shown],
        "cells": cells,
    }


def _is(state: str, node: Node) -> bool:
    if state == "reserved":
        return node.reservation is not None
    if state == "unhealthy":
        return is_unhealthy(node)
    return not state or node.state == state


def _host(node: Node) -> str:
    return node.attributes.get(HOST_NAME, "")


def is_unhealthy(node: Node) -> bool:
    """Whether the node reports that it is not ready (X19)."""
    return node.attributes.get(NODE_READY_ATTRIBUTE, "").lower() == "false"


def _cells(
    every: list[Node], index: int, fullness: Callable[[Node], int]
) -> Steps[list[dict[str, Any]]]:
    width = -(-len(every) // _CELLS)
    found = []
    for start in range(0, len(every), width):
        nodes = every[start : start + width]
        used = sum(node.allocated[index] for node in nodes)
        cell: dict[str, Any] = {
            "node": nodes[0].node_id,
            "at": start,
            "nodes": len(nodes),
            "full": percent(used, sum(node.total[index] for node in nodes)) if used else 0,
            "most": max(map(fullness, nodes)),
        }
        if closed := sum(not node.open for node in nodes):
            cell["draining"] = closed
        if reserved := sum(node.reservation is not None for node in nodes):
            cell["reserved"] = reserved
        found.append(cell)
        yield
    return found


def _row(node: Node) -> dict[str, Any]:
    home = node.partition
    total = amounts(home, node.total)
    return {
        "id": node.node_id,
        "host": _host(node),
        "rack": node.attributes.get(RACK_NAME, ""),
        "state": node.state,
        "unhealthy": is_unhealthy(node),
        "since": node.since,
        "capacity": total,
        "allocated": amounts(home, node.allocated, total),
        "occupied": amounts(home, node.occupied),
        "available": amounts(home, node.available, total),
        "allocations": len(node.allocations),
        "foreign": len(node.foreign),
        "reservations": _reservations(node),
    }


def _reservations(node: Node) -> list[dict[str, Any]]:
    """The reservations of the node with their times; the first one is served first."""
    if node.reservation is None:
        return []
    return [
        {"application": kept.ask.app.app_id, "ask": kept.ask.ask_key, "since": kept.made}
        for kept in (node.reservation, *node.also_reserved)
    ][:10]


def node(scheduler: Scheduler, partition: str, node_id: str, sort: str = "") -> dict[str, Any]:
    """One node with its newest allocations, or the first of a ``sort``, and those of other schedulers."""
    one = node_of(scheduler, partition, node_id)
    foreign = sorted(one.foreign.items())[:_ALLOCATIONS]
    return {
        "partition": one.partition.key,
        "types": list(amounts(one.partition, one.total)),
        "row": _row(one),
        "attributes": dict(sorted(one.attributes.items())),
        "held": allocation_rows(one.partition, one.allocations, _ALLOCATIONS, sort),
        "foreign": [
            {
                "key": key,
                "since": each.created,
                "resource": amounts(one.partition, each.vector),
                "preemptable": each.preemptable,
            }
            for key, each in foreign
        ],
    }
