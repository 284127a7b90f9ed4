"""What the slow model is made of: nodes, queues, applications, and sums of resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quadriga.core.config import QueueConfig

Resources = dict[str, int]

LOWEST = -(2**31)


def plus(left: Resources, right: Resources, sign: int = 1) -> Resources:
    return {k: left.get(k, 0) + sign * right.get(k, 0) for k in sorted(left.keys() | right.keys())}


def fits(big: Resources, small: Resources) -> bool:
    return all(value <= max(0, big.get(name, 0)) for name, value in small.items())


def within(room: Resources | None, small: Resources) -> bool:
    """Types that are not limited do not count (FitInMaxUndef)."""
    return room is None or all(small[k] <= max(0, v) for k, v in room.items() if k in small)


def narrower(one: Resources | None, other: Resources | None) -> Resources | None:
    if one is None or other is None:
        return one if other is None else other
    return {k: min(d[k] for d in (one, other) if k in d) for k in one.keys() | other.keys()}


@dataclass(eq=False)
class Node:
    node_id: str
    total: Resources
    occupied: Resources
    schedulable: bool = True
    allocated: Resources = field(default_factory=dict)
    reserved_by: Ask | None = None

    @property
    def available(self) -> Resources:
        return plus(plus(self.total, self.allocated, -1), self.occupied, -1)


@dataclass(eq=False)
class Ask:
    app: App
    key: str
    resources: Resources
    priority: int
    seq: int
    created: int
    required_node: str
    placeholder: bool = False
    task_group: str = ""
    originator: bool = False
    allow_self: bool = True
    allow_other: bool = False
    #: it has preempted, and when it last tried to (ms)
    preempted: bool = False
    checked: int | None = None
    pending: bool = True
    reserved: Node | None = None
    #: how many plans for it fell through: each has used up a UUID (X12)
    fallen: int = 0


@dataclass(eq=False)
class Held:
    """An allocation; ``released`` says why it is asked back, ``taken_by`` who waits for its place."""

    ask: Ask
    node: Node
    released: str = ""
    taken_by: Ask | None = None
    #: where that one is to land, and what it needs beyond this one's size
    target: Node | None = None
    growth: Resources = field(default_factory=dict)


@dataclass
class Group:
    count: int = 0
    replaced: int = 0
    timed_out: int = 0


@dataclass(eq=False)
class App:
    app_id: str
    queue: Queue
    seq: int
    placeholder_ask: Resources
    timeout: int
    hard: bool
    #: it did not opt out of Starting (X15)
    aware: bool
    user: str = ""
    groups: tuple[str, ...] = ()
    #: the group that it counts for, for life from its first allocation on; and whether it counts as
    #: running for its user and group
    group: str = ""
    bound: bool = False
    counted: bool = False
    state: str = "New"
    #: instants (ms) at which its state, and its placeholders, time out
    deadline: int | None = None
    placeholder_deadline: int | None = None
    #: the instant at which a gang in Accepted is looked at, whether anything can still come of it (V7)
    idle_deadline: int | None = None
    #: placeholders that nobody took over; a Soft gang does without them (S5)
    lost: Resources = field(default_factory=dict)
    #: a placeholder has landed, and the gang has not been given up
    started: bool = False
    #: it was given up softly: it is an ordinary application now
    over: bool = False
    #: it is letting go of its last placeholders to complete
    completing: bool = False
    #: it counts under maxapplications while its placeholders are being allocated
    admitted: bool = False
    asks: dict[str, Ask] = field(default_factory=dict)
    allocations: dict[str, Held] = field(default_factory=dict)
    placeholders: dict[str, Held] = field(default_factory=dict)
    task_groups: dict[str, Group] = field(default_factory=dict)
    #: asks whose placeholder is gone and whose node drains (X39)
    stranded: list[Ask] = field(default_factory=list)

    @property
    def starts_aware(self) -> bool:
        return self.aware and self.queue.config.properties.sort_policy == "stateaware"

    @property
    def waiting(self) -> list[Ask]:
        asks = [ask for ask in self.asks.values() if ask.pending]
        return sorted(asks, key=lambda ask: (-ask.priority, ask.seq))

    @property
    def allocated(self) -> Resources:
        return sum_of(held.ask.resources for held in self.allocations.values())

    @property
    def holds(self) -> Resources:
        held = (*self.allocations.values(), *self.placeholders.values())
        more = [each.growth for each in self.placeholders.values()]
        more += [ask.resources for ask in self.stranded]
        return sum_of((*(each.ask.resources for each in held), *more))

    @property
    def pending(self) -> Resources:
        return sum_of(ask.resources for ask in self.waiting)

    @property
    def priority(self) -> int:
        return max((ask.priority for ask in self.waiting), default=LOWEST)

    @property
    def gang_is_complete(self) -> bool:
        have = sum_of(held.ask.resources for held in self.placeholders.values())
        if not self.hard:
            have = plus(have, self.lost)
        return bool(self.placeholder_ask) and fits(have, self.placeholder_ask)

    def replaces(self, ask: Ask) -> bool:
        """Whether the ask has a placeholder of its group to wait for (5.6, X36)."""
        if ask.placeholder or ask.task_group not in self.task_groups:
            return False
        held = (h for h in self.placeholders.values() if not h.released)
        coming = (a for a in self.waiting if a.placeholder)
        asks = (*(h.ask for h in held), *coming)
        return any(each.task_group == ask.task_group for each in asks)


def sum_of(each: Iterable[Resources]) -> Resources:
    whole: Resources = {}
    for one in each:
        whole = plus(whole, one)
    return whole


@dataclass(eq=False)
class Queue:
    config: QueueConfig
    parent: Queue | None
    children: dict[str, Queue] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)

    @property
    def lineage(self) -> list[Queue]:
        return [self, *(self.parent.lineage if self.parent else ())]

    @property
    def all_apps(self) -> list[App]:
        below = [app for child in self.children.values() for app in child.all_apps]
        return [*self.apps.values(), *below]

    @property
    def allocated(self) -> Resources:
        return sum_of(app.holds for app in self.all_apps)

    @property
    def pending(self) -> Resources:
        return sum_of(app.pending for app in self.all_apps)

    @property
    def priority(self) -> int:
        """As it is reported upwards (5.4)."""
        below = [child.priority for child in self.children.values()]
        own = max([*below, *(app.priority for app in self.apps.values())], default=LOWEST)
        if own == LOWEST:
            return own
        properties = self.config.properties
        if properties.priority_policy == "fence":
            return properties.priority_offset
        return max(LOWEST, min(2**31 - 1, own + properties.priority_offset))

    @property
    def counted(self) -> int:
        """How many applications count under maxapplications (2.9)."""
        return sum(app.admitted or app.state in ("Starting", "Running") for app in self.all_apps)

    def admits(self, app: App) -> bool:
        """Whether the application may be served, as far as maxapplications goes."""
        if app.state != "Accepted" or app.admitted:
            return True
        limits = ((queue, queue.config.max_applications) for queue in self.lineage)
        return all(not limit or queue.counted < limit for queue, limit in limits)
