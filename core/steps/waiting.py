"""Pending asks: they enter and leave the heaps of their queues, and are retried after changes.

Asks wait in groups. A group announces its demand (bits, see ``model.demand``) to its application, which
passes it up the tree unless the application may not be served at present.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING

from quadriga.core.model.ask import Ask, AskGroup
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.model.waiting import Refusal, Waiting
from quadriga.core.ordering import by_run_time
from quadriga.core.ordering.lanes import LimitLane, lane_for
from quadriga.core.resources.demand import EVERY_BIT
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.partition import Partition


class WaitingAsks(Waiting):
    """The asks and reservations that wait in one partition."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        self._partition = partition

    # -- asks ------------------------------------------------------------------------------------

    def add(self, ask: Ask) -> None:
        """Put the ask in its group; a new group becomes known to the application."""
        app, partition = ask.app, self._partition
        kind = ask.kind.in_group
        self.demand_epoch += 1
        group = app.groups.get(kind)
        if group is None:
            shapes = partition.shapes
            shape, _ = shapes.intern(kind.requires)
            group = app.groups[kind] = AskGroup(app, kind, shape)
            if kind.task_group and not kind.placeholder:
                app.gang.real_groups.setdefault(kind.task_group, {})[group] = None
            if not shape.asks:  # new, or idle until now: assume that it has a node
                partition.node_index.watch(shape)
            shapes.used(shape)
            group.add(ask)
            if app.queue.expected:
                by_run_time.begin(app)
            _priority_changed(app, group)
        else:
            group.add(ask)
        self._refresh_turn(app)
        self.refresh_group(group)
        if partition.quota_changes is not None:
            partition.quota_changes.groups[group] = None
        if ask.reservations:  # the ask was parked or deferred before
            own = [each for each in app.reservations if each.ask is ask]
            self.retries.update(own)
            for each in own:
                partition.node_index.gained(each.node)  # it may be lent again (Q7)

    def remove(self, ask: Ask) -> None:
        """Remove the ask from its group, and an empty group from its application."""
        group = ask.group
        if group is None:
            if self.deferred_asks.pop(ask, ask) is not ask:
                self._refresh_turn(ask.app)
            return
        group.remove(ask)
        # The ask keeps its nodes while it is away; the next one may be the originator of the gang (Q5).
        if ask.reservations or ask.app.gang.over:
            self.refresh_group(group)
        if not group.asks:
            self._forget(group)

    def _forget(self, group: AskGroup) -> None:
        app, partition = group.app, self._partition
        self.refresh_group(group)
        if group.reserve_timer is not None:
            group.reserve_timer.cancel()
        if group.preemption_queue is not None:
            group.preemption_queue.cancel_timer()
        if partition.quota_changes is not None:
            partition.rm.observer.group_emptied(group)
        del app.groups[group.kind]
        app.gang.forget(group)
        self.too_large_to_replace.pop(group, None)
        _priority_changed(app, group)
        self._refresh_turn(app)
        forgotten = partition.shapes.unused(group.shape)
        if forgotten is not None:
            partition.node_index.forget(forgotten)
            partition.failed_preemptions.remove_shape(forgotten)
            for quota in self.short_quotas:  # it has all that are short of a shape
                if isinstance(quota, Queue):
                    quota.forget_short(forgotten)
            for ledger in list(self.short_ledgers.get(forgotten, ())):
                ledger.forget(forgotten)

    def defer(self, ask: Ask, refusal: Refusal | None = None) -> None:
        self.deferred_asks[ask] = refusal  # first: a deferred ask keeps its application's turn
        self.await_change(refusal)
        self.remove(ask)

    # -- groups and applications -----------------------------------------------------------------

    def refresh_group(self, group: AskGroup) -> None:
        """Announce what the group demands now and withdraw what it no longer demands."""
        wants, bits = group.demand_now(), group.demand
        if wants != bits:
            group.demand = wants
            if fresh := wants & ~bits:
                self.demand_epoch += 1
                group.app.announce(group, fresh)
                if fresh & group.shape.allocate and group.app.reservations:
                    # its reserved nodes may have gained room in the meantime
                    mine = (r for r in group.app.reservations if r.ask.group is group)
                    self.retries.update(mine)
            if gone := bits & ~wants:
                group.app.withdraw(group, gone)

    def refresh(self, app: Application) -> None:
        leaf = app.queue
        assert isinstance(leaf, LeafQueue)
        self.demand_epoch += 1
        counted = app.state in application_fsm.COUNTED or app in leaf.admitted
        lane = lane_for(leaf, app, counted)
        if lane is not app.above:
            app.block(EVERY_BIT)
            if isinstance(lane, LimitLane):
                lane.members += 1
            if isinstance(app.above, LimitLane):
                app.above.leave()
            app.above = lane
        self._refresh_turn(app)
        served = (
            app.state in application_fsm.SERVED
            and not app.backoff_until
            and (
                not leaf.stateaware or app.state in application_fsm.RUNS_FREELY or leaf.turn is app
            )
        )
        if served:
            if app.blocked:
                app.unblock(EVERY_BIT)
            if app.reservations and not app.gang.lacks:
                self.retries.update(app.reservations)
        elif app.blocked != EVERY_BIT:
            app.block(EVERY_BIT)
            for each in app.reservations:
                self._partition.node_index.gained(each.node)  # they may be lent now (Q7)
        for group in app.groups.values():
            self.refresh_group(group)
        if (changes := self._partition.quota_changes) is not None:
            changes.groups.update(dict.fromkeys(app.groups.values()))

    def _refresh_turn(self, app: Application) -> None:
        """Give the turn of a stateaware leaf to one application that is not running yet (2.9).

        It is the Starting application, or else the oldest Accepted one with pending asks.
        """
        leaf = app.queue
        if not isinstance(leaf, LeafQueue) or not leaf.stateaware:
            return
        turn = self._next_turn(leaf, app)
        if turn is not leaf.turn:
            before, leaf.turn = leaf.turn, turn
            if before is not None and before.state not in application_fsm.RUNS_FREELY:
                before.block(EVERY_BIT)
            if turn is not None and not turn.backoff_until:
                turn.unblock(EVERY_BIT)
                self.retries.update(turn.reservations)

    def _next_turn(self, leaf: LeafQueue, changed: Application) -> Application | None:
        """The application that has the turn now that this one has changed; the others are not looked at (D360)."""
        order, entered = leaf.turn_order, leaf.entered
        candidates: Iterable[Application] = (changed,)
        if order is None:
            order = leaf.turn_order = []
            candidates = leaf.apps.values()
        for app in candidates:
            place = app.state not in application_fsm.KEEPS_TURN, app.seq
            if place not in entered and self._may_have_turn(app):
                entered[place] = app
                heappush(order, place)
        while order:
            app = entered[order[0]]
            keeps = app.state in application_fsm.KEEPS_TURN
            if keeps is not order[0][0] and self._may_have_turn(app):
                return app
            del entered[heappop(order)]
        return None

    def _may_have_turn(self, app: Application) -> bool:
        """Whether it is Starting, or is Accepted and has pending asks, be they deferred."""
        if app.state not in application_fsm.STATEAWARE_TURN:
            return False
        if app.groups or app.state in application_fsm.KEEPS_TURN:
            return True
        return any(ask in self.deferred_asks for ask in app.asks.values())

    # -- retries ---------------------------------------------------------------------------------

    def offer_replacements(self, app: Application, task_group: str = "") -> None:
        own = app.gang.real_groups
        groups: Iterable[Iterable[AskGroup]] = (
            [own.get(task_group, ()), app.gang.too_large] if task_group else own.values()
        )
        for group in chain.from_iterable(groups):
            group.retries = group.too_large_to_replace
            self.refresh_group(group)

    def retry_short_of_quota(self) -> None:
        if self.short_of_quota:
            self.retries.update(self.short_of_quota)
            self.short_of_quota.clear()


def _priority_changed(app: Application, group: AskGroup) -> None:
    """The group is new, or gone."""
    highest = app.priority
    if highest is not None and group.priority <= highest:
        if any(each.priority == highest for each in app.groups.values()):
            return
    now = max((each.priority for each in app.groups.values()), default=None)
    if now != app.priority:
        before, app.priority = app.priority, now
        app.touch()
        app.queue.report_priority(before, now)
