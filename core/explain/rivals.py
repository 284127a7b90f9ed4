"""Rivals of an ask: the other asks that may be served before it, as far as an explanation has to know.

A change that makes room for an ask makes it start only if no rival takes the room. A rival is one only if
the change lets it start as well: what else is in its way stays there. Which asks come first is certain
within an application, and between the applications of one leaf that is not in fair order. Elsewhere shares
decide, which every allocation changes, so all asks count that may start.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.core.model.gang import LIMIT, QUOTA
from quadriga.core.model.gang import NODES as LACKS_NODES
from quadriga.core.model.queue import LeafQueue
from quadriga.core.resources.shapes import Shape, shape_of
from quadriga.core.runtime.stepwise import STEP, Steps, chunks
from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.queue import Queue

#: at most this many applications with pending asks are looked at, so that an explanation stays short
_MOST: Final = 2_000


#: what a change can change: ``NODES``, or the quota of a queue, the slots under its maxapplications, or
#: either of a limit
Key = tuple[str, object]

NODES: Final[Key] = ("nodes", "")


def quota_key(queue: Queue) -> Key:
    """The max of a queue; that of root is what all nodes have."""
    return ("quota", queue.path) if queue.parent is not None else NODES


def slots_key(queue: Queue) -> Key:
    return "slots", queue.path


def limit_key(ledger: Ledger, what: str = "limit") -> Key:
    """The limit of a ledger, which other ledgers may have as well; ``what`` is "limit" or "slots"."""
    return what, id(ledger.limit)


class Rival(NamedTuple):
    """Asks of one shape, and the number of allocations that they wait for.

    They belong to ``apps`` that are alike in all that counts here; ``app`` is one of these. ``fits``: some
    node may have room for them now. Each of ``obstacles`` keeps them from starting until one of the things in
    it is changed.
    """

    app: Application
    shape: Shape
    number: int
    fits: bool
    obstacles: tuple[frozenset[Key], ...] = ()
    apps: Collection[Application] = ()


class Rivals(NamedTuple):
    """The rivals of an ask; ``complete`` is false if there are too many applications to look at."""

    all: Sequence[Rival]
    complete: bool = True

    @property
    def text(self) -> str:
        number = sum(each.number for each in self.all)
        return f"{number} other {'ask' if number == 1 else 'asks'} that may be served before it"

    def if_changed(self, changed: set[Key]) -> Rivals:
        """Those that may start after a change of all this."""
        able = [r for r in self.all if all(not each.isdisjoint(changed) for each in r.obstacles)]
        return Rivals(able, self.complete)

    def below(self, queue: Queue, types: int) -> list[int]:
        """What the rivals in this queue ask for, by type. A gang whose quota is reserved when it starts
        counts as a whole (X16)."""
        mine = [each for each in self.all if queue in each.app.queue.lineage]
        total = amounts(mine, types)
        for app in {each.app: None for each in mine}:
            if _reserves_quota(app):
                pending = amounts([each for each in mine if each.app is app], types)
                for at, value in enumerate(app.gang.size or ()):
                    total[at] += max(0, value - pending[at])
        return total

    def charging(self, ledger: Ledger, types: int) -> list[int]:
        """What the rivals ask for that are charged to the ledger, by type."""
        return amounts([each for each in self.all if ledger in each.app.limiting], types)

    def entering(self, queue: Queue) -> int:
        """The number of applications that need a slot under maxapplications of this queue."""
        able = [r for r in self.all if queue in r.app.queue.lineage and needs_a_slot(r.app)]
        return len({app for each in able for app in each.apps})

    def starting(self, ledger: Ledger) -> int:
        """The number of applications that begin to count for the limit."""
        able = [r for r in self.all if not r.app.counted and ledger in r.app.limiting]
        return len({app for each in able for app in each.apps})


def amounts(rivals: Iterable[Rival], types: int) -> list[int]:
    """What these rivals ask for together, by type."""
    total = [0] * types
    for each in rivals:
        for at, value in each.shape.need:
            total[at] += value * each.number
    return total


def needs_a_slot(app: Application) -> bool:
    """Whether the application needs a slot under maxapplications before it is served."""
    return (
        APPLICATION.allows(app.state, application_fsm.RUN)
        and app.state not in application_fsm.COUNTED
        and app not in app.queue.admitted
    )


def rivals_in_steps(ask: Ask, members: Sequence[AskGroup] = ()) -> Steps[Rivals]:
    """The rivals of an ask, or of the ``members`` of its gang, which are placed together."""
    own, partition = ask.app, ask.app.partition
    priority = max((group.priority for group in members), default=ask.priority)
    #: the numbers and the applications of asks that are alike
    found: dict[tuple[Any, ...], tuple[list[int], dict[Application, None]]] = {}
    looked_at = 0
    for at, app in enumerate(list(partition.applications.values())):
        if not at % STEP:
            yield
        if not app.asks:
            continue
        yield
        looked_at += 1
        if looked_at > _MOST:
            return Rivals((), False)
        if app.state not in application_fsm.SERVED or app.backoff_until:
            continue
        alike = _likeness(app)
        for group in app.groups.values():
            if group in members or not _is_served(app, group):
                continue
            if app is own:
                number = _in_own_application(group, ask, priority, bool(members))
            else:
                number = _in_other_application(group, own, priority)
            if number:
                numbers, apps = found.setdefault((*alike, group.shape), ([], {}))
                numbers.append(number)
                apps[app] = None
    rivals = []
    for (*_, shape), (numbers, apps) in found.items():
        app, fits = next(iter(apps)), bool(shape.allocate & partition.node_index.feasible)
        obstacles = tuple(_obstacles(app, shape, fits))
        rivals.append(Rival(app, shape, sum(numbers), fits, obstacles, apps))
        yield
    waiting = partition.waiting
    others = Counter((each.ask.app, each.ask.kind.requires) for each in waiting.stranded)
    for deferred in chunks(waiting.deferred_asks):
        for other in deferred:
            if other is not ask:
                others[other.app, other.kind.requires] += other.pending
        yield
    for (app, requires), number in others.items():
        rivals.append(Rival(app, shape_of(0, requires), number, True, (), (app,)))
    return Rivals(rivals)


def _likeness(app: Application) -> tuple[Any, ...]:
    """What the rivals and obstacles of an ask depend on in another application."""
    alone = app if _reserves_quota(app) else None
    return app.queue, app.limiting, app.counted, needs_a_slot(app), app.gang.lacks, alone


def _reserves_quota(app: Application) -> bool:
    """Whether the application is a gang whose quota is reserved when it starts (X16)."""
    own = app.gang
    return own.announced and not own.started and own.admission == "whole"


def _in_own_application(group: AskGroup, ask: Ask, priority: int, whole: bool) -> int:
    """The asks of the group that come before the ask: by priority, then by arrival (5.6)."""
    if whole or group.priority > priority:
        return group.pending
    reserved = min(group.reserved, group.pending)
    if group.priority < priority:
        return reserved
    earlier = sum(each.pending for seq, each in group.asks.items() if seq < ask.seq)
    return max(earlier, reserved - sum(each is ask for each in group.asks.values()))


def _in_other_application(group: AskGroup, own: Application, priority: int) -> int:
    """The asks of the group that may come before those of the application ``own``."""
    app, leaf = group.app, own.queue
    if app.queue is leaf and isinstance(leaf, LeafQueue) and leaf.properties.sort_policy == "fifo":
        # an application keeps the rank of its first ask while that one finds no place
        theirs, ours = (-(app.priority or 0), app.seq), (-priority, own.seq)
        if not leaf.sorts_priority:
            theirs, ours = theirs[::-1], ours[::-1]
        if theirs > ours:  # only a node that is reserved for them comes first
            return min(group.reserved, group.pending)
    return group.pending


def _is_served(app: Application, group: AskGroup) -> bool:
    """Whether asks of the group are tried, and need room."""
    gang = app.gang
    if group.kind.placeholder or gang.over:
        return gang.has_all_asks or not gang.starts_whole(group)
    if app.holding:
        return False
    task_group = gang.task_groups.get(group.kind.task_group)
    # else it takes the room of a placeholder
    return task_group is None or not task_group.can_replace or group.too_large_to_replace


def _obstacles(app: Application, shape: Shape, fits: bool) -> Iterator[frozenset[Key]]:
    """Yield what is in the way of the asks, each as the changes of which one may remove it."""
    gang, queues = app.gang, app.queue.lineage
    if gang.lacks == QUOTA:
        yield frozenset([quota_key(queue) for queue in queues[:-1]])
    elif gang.lacks == LIMIT:
        yield frozenset([limit_key(ledger) for ledger in app.limiting])
    elif gang.lacks == LACKS_NODES or not fits:
        yield frozenset([NODES])
    slot = needs_a_slot(app)
    for queue in queues:
        if queue.limits and not queue.has_room(shape):
            yield frozenset([quota_key(queue)])
        if slot and not queue.admits():
            yield frozenset([slots_key(queue)])
    for ledger in app.limiting:
        if ledger.is_short(shape):
            yield frozenset([limit_key(ledger)])
        if not (app.counted or ledger.admits()):
            yield frozenset([limit_key(ledger, "slots")])
