"""A small cluster with finite jobs, as data (Q6). Times are whole seconds; a size is cores and memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

#: cores and memory
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """A task group of equal members."""

    count: int
    cores: int
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """``late`` placeholder asks are sent ``late_by`` seconds after the others (G24).

    A ``timeout`` below zero means never, 0 the default of the scheduler (X17). A gang that is not
    ``announced`` has no placeholderAsk (X35). An ``elastic`` gang whose timeout was Soft runs with as
    many members as it has.
    """

    name: str
    groups: tuple[Group, ...] = (Group(1, 1),)
    queue: str = "root.default"
    arrives: int = 0
    runs: int = 10
    gang: bool = False
    announced: bool = True
    style: str = "Soft"
    timeout: int = -1
    late: int = 0
    late_by: int = 0
    elastic: bool = False
    priority: int = 0

    @property
    def members(self) -> tuple[Size, ...]:
        """The size of each member."""
        return tuple((g.cores, g.memory) for g in self.groups for _ in range(g.count))

    @property
    def total(self) -> Size:
        return sum(size[0] for size in self.members), sum(size[1] for size in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """``most`` is the quota in cores, ``running`` the limit of running applications; 0: none."""

    name: str
    sort: str = "fifo"
    most: int = 0
    running: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    name: str
    leaves: tuple[Leaf, ...]
    most: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """The node is removed at a time and comes back later."""

    node: int
    at: int
    back: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """``properties`` are root's. ``confirms_in`` seconds pass until a release is confirmed."""

    nodes: tuple[Size, ...]
    jobs: tuple[Job, ...]
    queues: tuple[Leaf | Parent, ...] = (Leaf(name="default"),)
    losses: tuple[Loss, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    node_sort: str = "fair"
    confirms_in: int = 0
    message_order: str = "design"
    reservations: bool = True
    give_up: int = 3600

    def config(self) -> str:
        """The queue configuration."""
        lines = [
            "partitions:",
            "  - name: default",
            f"    nodesortpolicy: {{type: {self.node_sort}}}",
            "    queues:",
            "      - name: root",
            "        submitacl: '*'",
            "        properties:",
            *(f"          {key}: '{value}'" for key, value in self.properties),
            "          q6: finite",  # never empty
            "        queues:",
        ]
        for queue in self.queues:
            lines += _queue_lines(queue, 10)
        return "\n".join(lines) + "\n"

    def leaves(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Path, sort policy and the quotas of each leaf, its own first."""
        for queue in self.queues:
            if isinstance(queue, Leaf):
                yield f"root.{queue.name}", queue.sort, (queue.most,)
            else:
                for leaf in queue.leaves:
                    path = f"root.{queue.name}.{leaf.name}"
                    yield path, leaf.sort, (leaf.most, queue.most)


def _queue_lines(queue: Leaf | Parent, indent: int) -> list[str]:
    head, rest = " " * indent + "- ", " " * (indent + 2)
    lines = [f"{head}name: {queue.name}"]
    if queue.most:
        lines.append(f"{rest}resources: {{max: {{vcore: {queue.most}}}}}")
    if isinstance(queue, Leaf):
        if queue.running:
            lines.append(f"{rest}maxapplications: {queue.running}")
        lines.append(f"{rest}properties:")
        lines.append(f"{rest}  application.sort.policy: {queue.sort}")
        if queue.priority:
            lines.append(f"{rest}  priority.offset: '{queue.priority}'")
        return lines
    lines.append(f"{rest}queues:")
    for leaf in queue.leaves:
        lines += _queue_lines(leaf, indent + 4)
    return lines


# -- whether a job fits alone ----------------------------------------------------------------------


def fits_alone(setting: Setting, job: Job) -> bool:
    """Whether the job fits the empty cluster and its quotas, by an exact search."""
    quotas = {path: most for path, _, most in setting.leaves()}[job.queue]
    if any(most and job.total[0] > most for most in quotas):
        return False
    return _packs(tuple(sorted(job.members, reverse=True)), tuple(sorted(setting.nodes)))


@cache
def _packs(members: tuple[Size, ...], rooms: tuple[Size, ...]) -> bool:
    """Whether all members fit; the first one is tried in every different room."""
    if not members:
        return True
    cores, memory = members[0]
    for at, (free_cores, free_memory) in enumerate(rooms):
        if at and rooms[at - 1] == rooms[at]:
            continue
        if cores <= free_cores and memory <= free_memory:
            left = (*rooms[:at], (free_cores - cores, free_memory - memory), *rooms[at + 1 :])
            if _packs(members[1:], tuple(sorted(left))):
                return True
    return False
