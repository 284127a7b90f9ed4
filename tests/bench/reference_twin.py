"""The references without shortcuts: every waiting job is tried on every node at every instant."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quadriga.sim.workload import VCORE, Job, Workload
from quadriga.sim.workload.model import Resources

SECOND = 1_000_000_000
START, GANG_START, CONFIRM = 1 * SECOND, 4 * SECOND, 1 * SECOND

#: (node number, resources of one pod)
Pod = tuple[int, Resources]


@dataclass
class Entry:
    number: int
    job: Job
    held: list[Pod] = field(default_factory=list)
    missing: list[Resources] = field(default_factory=list)
    expected_end: int = 0

    def __post_init__(self) -> None:
        self.missing = [m.resources for m in self.job.members for _ in range(m.count)]
        self.missing.sort(key=lambda r: (r.get(VCORE, 0), r.get("memory", 0)), reverse=True)


class Twin:
    """``run`` returns when each job started (ns; -1: never)."""

    def __init__(self, workload: Workload, name: str) -> None:
        self.workload = workload
        self.rule = name[0]
        self.fair = name.endswith("q")
        self.now = 0
        self.waiting: list[Entry] = []
        self.running: list[tuple[int, Entry]] = []
        self.gathering: Entry | None = None
        self.reserving: Entry | None = None
        self.reserved: list[int] = []
        self.started = [-1] * len(workload.jobs)

    def run(self) -> list[int]:
        entries = [Entry(n, job) for n, job in enumerate(self.workload.jobs)]
        coming = [entry for entry in entries if self.could_run(entry)]
        while coming or self.running:
            times = [entry.job.submit_s * SECOND for entry in coming]
            self.now = min(times + [end for end, _ in self.running])
            self.running = [(end, entry) for end, entry in self.running if end > self.now]
            self.waiting += [e for e in coming if e.job.submit_s * SECOND == self.now]
            coming = [e for e in coming if e.job.submit_s * SECOND > self.now]
            self.decide()
        return self.started

    # -- the cluster -----------------------------------------------------------------------------

    def could_run(self, entry: Entry) -> bool:
        empty = [dict(node.resources) for node in self.workload.nodes]
        return self.within_limit(entry) and self.places(entry.missing, empty) is not None

    def holders(self) -> Iterator[Entry]:
        yield from (entry for _, entry in self.running)
        if self.gathering:
            yield self.gathering

    def free(self) -> list[Resources]:
        room = [dict(node.resources) for node in self.workload.nodes]
        for entry in self.holders():
            remove(room, entry.held)
        return room

    def used(self, queue: str, *, promised: bool) -> Resources:
        used: Resources = {}
        for entry in self.holders():
            if entry.job.queue == queue:
                for size in [size for _, size in entry.held] + (entry.missing if promised else []):
                    for name, amount in size.items():
                        used[name] = used.get(name, 0) + amount
        return used

    def within_limit(self, entry: Entry) -> bool:
        queue = next(q for q in self.workload.queues if q.name == entry.job.queue)
        used, total = self.used(queue.name, promised=True), entry.job.total()
        return all(used.get(n, 0) + total.get(n, 0) <= m for n, m in (queue.max or {}).items())

    def share(self, entry: Entry) -> float:
        queue = next(q for q in self.workload.queues if q.name == entry.job.queue)
        deserved = {**self.workload.capacity(), **(queue.guaranteed or {})}
        used = self.used(queue.name, promised=False)
        return max((used.get(name, 0) / of for name, of in deserved.items() if of), default=0.0)

    def places(self, sizes: Iterable[Resources], room: list[Resources]) -> list[Pod] | None:
        """One pod after the other, each to the fullest node where it fits."""
        pods = self.some_places(sizes, room)
        return pods if len(pods) == len(list(sizes)) else None

    def some_places(self, sizes: Iterable[Resources], room: list[Resources]) -> list[Pod]:
        room, pods = [dict(each) for each in room], []
        for size in sizes:
            fitting = [n for n, free in enumerate(room) if fits(size, free)]
            if fitting:
                node = min(fitting, key=lambda n: (room[n].get(VCORE, 0), n))
                pods.append((node, size))
                remove(room, pods[-1:])
        return pods

    # -- the rules -------------------------------------------------------------------------------

    def next(self, entries: list[Entry]) -> Entry:
        """Who is first: by the queue's share, or in one line."""
        names = [queue.name for queue in self.workload.queues]

        def turn(entry: Entry) -> tuple[float, int, int]:
            if self.fair:
                return self.share(entry), names.index(entry.job.queue), entry.number
            return 0.0, 0, entry.number

        return min(entries, key=turn)

    def decide(self) -> None:
        while self.walk():
            pass
        if self.rule == "d":
            while self.gathering is None:
                gangs = [e for e in self.waiting if e.job.gang and self.within_limit(e)]
                if not gangs:
                    break
                self.gathering = self.next(gangs)
                self.waiting.remove(self.gathering)
                self.gather()

    def walk(self) -> bool:
        """Everyone's turn, once. Whether it has to be repeated: other nodes are reserved now."""
        untried = [*self.waiting, *([self.gathering] if self.gathering else [])]
        stuck: set[str] = set()
        head: Entry | None = None
        spare: list[Resources] = []
        start = 0
        while untried := [e for e in untried if not self.fair or e.job.queue not in stuck]:
            entry = self.next(untried)
            untried.remove(entry)
            if entry is self.gathering:
                self.gather()
                continue
            if not self.within_limit(entry):
                if self.rule == "a":
                    if not self.fair:
                        break
                    stuck.add(entry.job.queue)
                continue
            room = self.free()
            if self.reserved and entry is not self.reserving:
                room = [{} if n in self.reserved else free for n, free in enumerate(room)]
            end = self.now + self.delay(entry) + self.estimate(entry) + CONFIRM
            long = head is not None and end > start
            if long:
                room = [
                    {name: min(amount, other[name]) for name, amount in free.items()}
                    for free, other in zip(room, spare, strict=True)
                ]
            pods = self.places(entry.missing, room)
            if pods is not None:
                if long:
                    remove(spare, pods)
                entry.held, entry.missing, entry.expected_end = pods, [], end
                self.waiting.remove(entry)
                self.start(entry)
            elif self.rule == "a":
                if not self.fair:
                    break
                stuck.add(entry.job.queue)
            elif self.rule == "c" and head is None:
                head = entry
                start, spare = self.plan(entry)
        return self.rule == "e" and self.reserve()

    def delay(self, entry: Entry) -> int:
        return GANG_START if entry.job.gang else START

    def estimate(self, entry: Entry) -> int:
        job = entry.job
        return (job.runtime_s if job.walltime_s is None else job.walltime_s) * SECOND

    def start(self, entry: Entry) -> None:
        begin = self.now + self.delay(entry)
        self.started[entry.number] = begin
        self.running.append((begin + entry.job.runtime_s * SECOND + CONFIRM, entry))

    def gather(self) -> None:
        entry = self.gathering
        assert entry is not None
        pods = self.some_places(entry.missing, self.free())
        entry.held += pods
        for _, size in pods:
            entry.missing.remove(size)
        if not entry.missing:
            self.gathering = None
            self.start(entry)

    def plan(self, head: Entry) -> tuple[int, list[Resources]]:
        """The head's start, if all ends as expected, and what is free then beside it."""
        for end in sorted({max(entry.expected_end, self.now) for _, entry in self.running}):
            room = self.free()
            for _, entry in self.running:
                if max(entry.expected_end, self.now) <= end:
                    remove(room, entry.held, -1)
            if (pods := self.places(head.missing, room)) is not None:
                remove(room, pods)
                return end, room
        raise AssertionError("it fits the empty cluster")

    def reserve(self) -> bool:
        allowed = [entry for entry in self.waiting if self.within_limit(entry)]
        oldest = min(allowed, key=lambda entry: entry.number, default=None)
        if oldest is self.reserving:
            return False
        self.reserving = None
        if self.reserved:
            self.reserved = []
            return True
        self.reserving = oldest
        room = self.free()
        for size in oldest.missing if oldest else ():
            could = [
                n
                for n, node in enumerate(self.workload.nodes)
                if fits(size, node.resources) and n not in self.reserved
            ]
            if could:
                self.reserved.append(min(could, key=lambda n: (-room[n].get(VCORE, 0), n)))
        return False


def fits(size: Resources, free: Resources) -> bool:
    return all(amount <= free.get(name, -1) for name, amount in size.items())


def remove(room: list[Resources], pods: Iterable[Pod], sign: int = 1) -> None:
    for node, size in pods:
        for name, amount in size.items():
            room[node][name] -= sign * amount
