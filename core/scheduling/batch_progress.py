"""How far a batch has got in one group of asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model import accounting
from quadriga.core.steps import gang

if TYPE_CHECKING:
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.resources.demand import Key

#: no gang lacks this many placeholders: it stands for "any number"
_UNLIMITED: Final = 1 << 62


class GroupProgress:
    """The next ask of a group, and what has been placed of the group but not carried out yet.

    Every placement reads the totals of ``queues``, so they are charged at once. All other totals
    are charged when the batch is carried out, except those of the application and its user where
    ``charges_app`` is set.
    """

    __slots__ = (
        "_asks",
        "app",
        "ask",
        "asks_behind",
        "bounds",
        "charges_app",
        "gang_lacks",
        "group",
        "next_rank",
        "placed",
        "queues",
        "repeats",
        "shape",
        "task_group",
    )

    def __init__(self, group: AskGroup, *, charges_root: bool) -> None:
        app = self.app = group.app
        placeholder = group.kind.placeholder
        self.group = group
        self.shape = group.shape
        lineage = app.queue.lineage
        #: the queues above the application that every placement charges; root only if told so
        self.queues = lineage if charges_root else lineage[:-1]
        #: the application's share decides the order in its queue, or a limit applies to it
        self.charges_app = app.queue.fair or bool(app.limiting)
        #: the rank of the group that comes after this one in the application, if there is one
        self.next_rank: Key | None = None
        #: placements that are not carried out yet
        self.placed = 0
        self.task_group = app.gang.task_groups[group.kind.task_group] if placeholder else None
        #: so many more placeholders certainly leave the gang incomplete
        self.gang_lacks = gang.missing(app, self.shape.need) - 1 if placeholder else _UNLIMITED
        needs = dict(self.shape.need)
        bounding = self.queues
        # Root's max does not bound it, see ``has_room``.
        if charges_root and self.shape.required_node:
            bounding = lineage[:-1]
        used = [(queue.limits, queue.allocated) for queue in bounding if queue.limits]
        used += [(ledger.resources, ledger.usage) for ledger in app.limiting]
        #: the quotas and limits that apply: a total, a resource type, and the most of it that may be
        #: in use for one more placement to have room
        self.bounds = [
            (total, at, limit - needs[at])
            for limits, total in used
            for at, limit in limits
            if at in needs
        ]
        self.restart()

    def restart(self) -> None:
        """Go to the first ask of the group."""
        self._asks = iter(self.group.asks.values())
        #: asks that wait behind the next one
        self.asks_behind = len(self.group.asks)
        self.step()

    def step(self) -> None:
        """Go on to the next ask; there must be one."""
        self.ask = next(self._asks)
        #: allocations that are still to be made of this ask
        self.repeats = self.ask.pending
        self.asks_behind -= 1
        if self.next_rank is not None:
            self.group.rank = (-self.group.kind.priority, self.ask.seq)

    @property
    def is_overtaken(self) -> bool:
        """Whether the next group of the application may come first now."""
        after = self.next_rank
        return after is not None and after < (-self.group.kind.priority, self.ask.seq)

    @property
    def has_room(self) -> bool:
        """Whether every quota and limit has room for one more placement."""
        for total, at, most in self.bounds:
            if total[at] > most:
                return False
        return True

    def settle(self) -> None:
        """Charge the totals that were left out, and let go of the asks that have been served."""
        group, placed = self.group, self.placed
        self.placed = 0
        self.gang_lacks -= placed
        root = self.app.partition.root
        if root not in self.queues:
            accounting.charge_queue(root, self.shape, placed)
        if not self.charges_app:
            accounting.charge_application(group, placed)
        if group.kind.placeholder:
            accounting.reserve_headroom(self.app)
        if group.asks:
            group.shift()
            self.restart()
