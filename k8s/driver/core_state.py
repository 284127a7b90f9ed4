"""The state of a core in this process, read part by part on its own thread (K176)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from quadriga.core.driver.service import SchedulerService
from quadriga.core.model.partition import Partition
from quadriga.core.resources.vectors import Registry, Vector
from quadriga.core.scheduler import Scheduler
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.k8s.conversion.keys import PARTITION
from quadriga.k8s.shim.inputs import CoreAllocation, CoreNode

T = TypeVar("T")


class Names(NamedTuple):
    """The names of all nodes and the ids of all applications."""

    nodes: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()


class CoreState:
    """Reads the state of the core. Each call is one piece of work for the core between two of its rounds.
    Raises ``RuntimeError`` when the core has ended."""

    def __init__(self, service: SchedulerService, rm_id: str) -> None:
        self._service = service
        self._rm_id = rm_id

    async def names(self) -> Names:
        """Return the names of all nodes and the ids of all applications that have not ended."""
        return await self._read(names_in)

    async def nodes(self, names: Sequence[str]) -> dict[str, CoreNode]:
        """Return these nodes with what the core counts there."""
        return await self._read(lambda scheduler, rm_id: nodes_in(scheduler, rm_id, names))

    async def applications(self, ids: Sequence[str]) -> dict[str, Mapping[str, Mapping[str, int]]]:
        """Return these applications with their asks."""
        return await self._read(lambda scheduler, rm_id: applications_in(scheduler, rm_id, ids))

    async def _read(self, reader: Callable[[Scheduler, str], T]) -> T:
        rm_id = self._rm_id
        found = self._service.read_later(lambda scheduler: reader(scheduler, rm_id))
        return await asyncio.wrap_future(found)


def names_in(scheduler: Scheduler, rm_id: str) -> Names:
    """Return the names of all nodes and the ids of all applications that have not ended."""
    partition = _partition(scheduler, rm_id)
    if partition is None:
        return Names()
    return Names(tuple(partition.nodes), tuple(partition.applications))


def nodes_in(scheduler: Scheduler, rm_id: str, names: Sequence[str]) -> dict[str, CoreNode]:
    """Return those of these nodes that the core has, with what it counts there. A pod that waits for the end of
    its placeholder is not counted yet."""
    partition = _partition(scheduler, rm_id)
    found: dict[str, CoreNode] = {}
    if partition is None:
        return found
    amounts = _Amounts(partition.registry)
    for name in names:
        node = partition.nodes.get(name)
        if node is None or node.gone:
            continue
        pods: dict[str, CoreAllocation] = {}
        for allocation in node.allocations:
            if allocation.state in allocation_fsm.AHEAD:
                continue
            ask = allocation.ask
            pods[ask.ask_key] = CoreAllocation(ask.app.app_id, amounts.of(allocation.vector))
        for key, foreign in node.foreign.items():
            pods[key] = CoreAllocation("", amounts.of(foreign.vector))
        found[name] = CoreNode(node.open, amounts.of(tuple(node.total)), pods)
    return found


def applications_in(
    scheduler: Scheduler, rm_id: str, ids: Sequence[str]
) -> dict[str, Mapping[str, Mapping[str, int]]]:
    """Return those of these applications that have not ended, with their asks."""
    partition = _partition(scheduler, rm_id)
    found: dict[str, Mapping[str, Mapping[str, int]]] = {}
    if partition is None:
        return found
    amounts = _Amounts(partition.registry)
    for app_id in ids:
        app = partition.applications.get(app_id)
        if app is not None:
            found[app_id] = {key: amounts.of(ask.vector) for key, ask in app.asks.items()}
    return found


def _partition(scheduler: Scheduler, rm_id: str) -> Partition | None:
    try:
        return scheduler.partition(PARTITION, rm_id)
    except KeyError:
        return None


class _Amounts:
    """Converts vectors to amounts; many pods share a few sizes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[Vector, dict[str, int]] = {}

    def of(self, vector: Vector) -> dict[str, int]:
        """Return the amounts of the vector."""
        found = self._known.get(vector)
        if found is None:
            found = self._known[vector] = self._registry.mapping(vector)
        return found
