"""Jobs that never started, and who holds what they needed (Q8).

When nothing moves any more, a job that waits is *unschedulable* if it could not run on the empty cluster.
Any other one is kept from it by what is held: pods of other jobs on nodes and in quotas, and nodes that
are reserved for other asks.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quadriga.si.explained import Explained
from quadriga.sim import lifecycles
from quadriga.sim.fitting import Quota, obstacle, rooms
from quadriga.sim.outcomes import FAILED, NEVER_STARTED, UNSCHEDULABLE, Fate, HeldBy, ReservedNode
from quadriga.sim.pods import Pod, Run
from quadriga.sim.workload.model import NodeSpec, Resources

_Size = tuple[tuple[str, int], ...]


class Holder(NamedTuple):
    """An application that holds room on nodes: ``pods`` of its ``members``, with the amounts ``holds``.
    It waits for the others, which need ``lacks``.

    ``gathers``: it is a gang, and the pods are placeholders.
    """

    application: str
    queue: str
    gathers: bool
    pods: int
    members: int
    holds: Resources
    lacks: Resources


class _Room(NamedTuple):
    """What the nodes offer to pods of one size: the number for which there is room without a
    reservation, the applications that take room away, and the nodes with room that are reserved."""

    free: int
    applications: dict[str, None]
    reserved: tuple[ReservedNode, ...]


class Unfinished:
    """The jobs of ``runs``, which have not ended and never will, on the nodes as they are at the end.

    ``explain`` asks the scheduler about a pod that waits. ``fates`` are in the order of the jobs,
    ``holders`` and ``reservations`` are all of the cluster.
    """

    def __init__(
        self,
        runs: Iterable[Run],
        nodes: Iterable[NodeSpec],
        quotas: Mapping[str, tuple[Quota, ...]],
        explain: Callable[[Run, Pod], Explained],
    ) -> None:
        self._runs = list(runs)
        self._nodes = {node.name: node.resources for node in nodes}
        self._quotas = quotas
        self._free = {name: dict(resources) for name, resources in self._nodes.items()}
        #: node -> applications with pods there
        self._on_node: dict[str, dict[str, None]] = {name: {} for name in self._nodes}
        #: application -> the scheduler's answer about the first pod that waits
        self._told: dict[str, Explained] = {}
        #: application -> its pods that wait, by size
        self._waiting: dict[str, Counter[_Size]] = {}
        self._held: dict[str, Resources] = {}
        for run in self._runs:
            self._read(run, explain)
        self.holders = [self._holder(run) for run in self._runs if self._held[run.key]]
        self.reservations = sorted(
            ReservedNode(node, key, ask)
            for key, told in self._told.items()
            for node, ask in told.reservations
        )
        self._reserved: dict[str, list[ReservedNode]] = {}
        for each in self.reservations:
            self._reserved.setdefault(each.node, []).append(each)
        #: no job waits for more pods of one size
        self._most = max(
            (n for waiting in self._waiting.values() for n in waiting.values()), default=0
        )
        self._used = self._usage()
        self._room: dict[_Size, _Room] = {}
        self.fates = [self._fate(run)._replace(waited_for=run.waited_for) for run in self._runs]

    # -- what there is ---------------------------------------------------------------------------

    def _read(self, run: Run, explain: Callable[[Run, Pod], Explained]) -> None:
        held: Counter[str] = Counter()
        waiting: Counter[_Size] = Counter()
        for pod in run.pods.values():
            if pod.state == lifecycles.SCHEDULING:
                if run.key not in self._told:
                    self._told[run.key] = explain(run, pod)
                waiting[tuple(sorted(pod.resources.items()))] += 1
            elif pod.holding is not None and pod.holding.node in self._nodes:
                held.update(pod.resources)
                node = pod.holding.node
                free = self._free[node]
                for name, amount in pod.resources.items():
                    free[name] = free.get(name, 0) - amount
                self._on_node[node][run.key] = None
        self._held[run.key] = dict(held)
        self._waiting[run.key] = waiting

    def _gathers(self, key: str) -> bool:
        return key in self._told and self._told[key].gathers

    def _lacks(self, key: str) -> Counter[str]:
        """The amounts of its pods that wait."""
        lacks: Counter[str] = Counter()
        for size, count in self._waiting[key].items():
            for name, amount in size:
                lacks[name] += amount * count
        return lacks

    def _holder(self, run: Run) -> Holder:
        gathers = self._gathers(run.key)
        members = run.placeholders if gathers else run.real
        return Holder(
            application=run.key,
            queue=run.queue or run.job.queue,
            gathers=gathers,
            pods=sum(pod.holding is not None for pod in members),
            members=len(members),
            holds=self._held[run.key],
            lacks=dict(self._lacks(run.key)),
        )

    def _usage(self) -> dict[str, Counter[str]]:
        """What is taken of each quota: the amounts held, and what gathering gangs lack, since a gang
        may not start while the rest of another one is reserved for it (X16)."""
        used: dict[str, Counter[str]] = {}
        for key, held in self._held.items():
            taken = Counter(held)
            if self._gathers(key):
                taken.update(self._lacks(key))
            for quota in self._quotas.get(key, ()):
                used.setdefault(quota.owner, Counter()).update(taken)
        return used

    # -- the jobs --------------------------------------------------------------------------------

    def _fate(self, run: Run) -> Fate:
        told = self._told.get(run.key)
        if told is None:
            reason = f"nothing moves: the application is {run.state} and has no pending ask"
            return Fate(run.job, FAILED, run.started, (reason,), run.queue)
        quotas = self._quotas.get(run.key, ())
        if why := obstacle(run.job.members, list(self._nodes.values()), quotas):
            reasons = (why, *told.reasons)
            return Fate(run.job, UNSCHEDULABLE, run.started, reasons, run.queue)
        held_by = self._held_by(run)
        return Fate(run.job, NEVER_STARTED, run.started, told.reasons, run.queue, held_by)

    def _held_by(self, run: Run) -> HeldBy:
        key = run.key
        applications: dict[str, None] = {}
        reserved: dict[ReservedNode, None] = {}
        quotas = tuple(
            quota.owner for quota in self._quotas.get(key, ()) if self._is_short(quota, key)
        )
        for owner in quotas:
            applications.update(self._users(owner))
        sizes = self._waiting[key]
        short = [size for size, count in sizes.items() if self._free_for(size, key) < count]
        # each size has room, and no quota is short: the sizes together have not
        for size in short or (() if quotas else sizes):
            applications.update(self._room_of(size).applications)
            reserved.update(dict.fromkeys(self._room_of(size).reserved))
        others = [each.application for each in self.holders if each.application in applications]
        others = [other for other in others if other != key]
        return HeldBy(
            tuple(other for other in others if self._gathers(other)),
            tuple(other for other in others if not self._gathers(other)),
            tuple(sorted(each for each in reserved if each.application != key)),
            quotas,
        )

    def _is_short(self, quota: Quota, key: str) -> bool:
        """Whether the quota has too little room for the pods of the application that wait."""
        used, lacks = self._used[quota.owner], self._lacks(key)
        if self._gathers(key):  # what it lacks is counted as used
            lacks = Counter(dict.fromkeys(lacks, 0))
        return any(
            used[name] + amount > quota.max[name]
            for name, amount in lacks.items()
            if name in quota.max
        )

    def _users(self, owner: str) -> dict[str, None]:
        """The applications under this quota that hold something."""
        return {
            each.application: None
            for each in self.holders
            if any(quota.owner == owner for quota in self._quotas.get(each.application, ()))
        }

    def _free_for(self, size: _Size, key: str) -> int:
        """The number of pods of this size for which nodes have room and no other ask a reservation."""
        room, resources = self._room_of(size), dict(size)
        own = {each.node for each in room.reserved if each.application == key}
        return room.free + sum(
            rooms(resources, self._free[name], enough=self._most) for name in own
        )

    def _room_of(self, size: _Size) -> _Room:
        """What the nodes offer to pods of this size, computed once."""
        room = self._room.get(size)
        if room is None:
            resources = dict(size)
            found, applications, reserved = 0, dict[str, None](), list[ReservedNode]()
            for name, whole in self._nodes.items():
                free = rooms(resources, self._free[name], enough=self._most)
                if free and name in self._reserved:
                    reserved += self._reserved[name]
                else:
                    found += free
                if free < rooms(resources, whole, enough=free + 1):
                    applications.update(self._on_node[name])
            room = self._room[size] = _Room(found, applications, tuple(reserved))
        return room
