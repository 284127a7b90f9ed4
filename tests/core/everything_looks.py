"""What is looked at after every step of a life, and what must be left at its end."""

from random import Random
from typing import Any

from everything_places import Place, Voice
from everything_waits import back_from_waiting, held_by_daemons, use_of

from quadriga.core import Scheduler
from quadriga.core.checks.health import check_in_steps
from quadriga.core.model.application import Application
from quadriga.core.model.partition import Partition
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.outbox import TERMINATION
from quadriga.core.runtime.stepwise import finish
from quadriga.core.views import Views, as_text
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import NodeInfo, TerminationType


class Watched:
    """The part of a life that looks; ``everything_life`` has the part that acts."""

    rng: Random
    now: int
    scheduler: Scheduler
    voices: list[Voice]
    places: list[Place]
    #: where the next step happens
    place: Place
    #: look at every view now and then, which must not change anything
    curious: bool
    #: so many looks there have been
    steps: int
    #: what had a planned start: on nodes or at quotas, and its application
    planned: set[tuple[str, Application]]

    def partitions(self) -> list[tuple[Place, Partition]]:
        return [(each, found) for each in self.places if (found := each.partition) is not None]

    def rm_of(self, voice: Voice) -> Any:
        return next(r for r in self.scheduler.resource_managers() if r.rm_id == voice.rm_id)

    # -- decisions ---------------------------------------------------------------------------------

    def _all_explained(self, place: Place, partition: Partition) -> None:
        """Who waits after a full round waits for something that can be said."""
        for app in partition.applications.values():
            for ask in app.asks.values():
                found = self.scheduler.explain(
                    app.app_id, ask.ask_key, place.name, place.voice.rm_id
                )
                assert found.reasons, f"{ask.key} of {app.queue.path} waits for no reason"

    def _decide(self, limit: int | None) -> None:
        """No decision exceeds a quota, a limit or a number of applications (V5)."""
        before = {}
        for place, partition in self.partitions():
            back = back_from_waiting(partition)
            before[place.key] = back, use_of(partition, back), held_by_daemons(partition)
        self.hear(self.scheduler.schedule(self.now, limit))
        for place, partition in self.partitions():
            back, uses, daemons = before[place.key]
            daemons_now = held_by_daemons(partition)
            for what, (used, most) in use_of(partition, back).items():
                had = uses.get(what, (0, 0))[0]
                more = max(0, daemons_now.get(what, 0) - daemons.get(what, 0))
                assert used <= max(most, had) + more, f"{what}: {used} of {most}, had {had}"

    # -- what holds --------------------------------------------------------------------------------

    def look(self) -> None:
        """After every step: everything that ``Scheduler.audit``, after every message, does not say."""
        self.steps += 1
        assert not (wrong := self.scheduler.check()), "\n".join(wrong)
        for place in self.places:
            if place.partition is not None:
                self._look_at(place, place.partition)
            elif self.rm_of(place.voice).state == resource_manager_fsm.STOPPED:
                place.forget()
            else:  # the configuration dropped it when it was empty
                assert not place.here
                place.nodes.clear()
        self._health()
        if self.curious and self.steps % 20 == 0:
            self.take_views()
        self.place = self.rng.choice(self.places)
        state = self.rm_of(self.place.voice).state
        if state == resource_manager_fsm.STOPPED:
            self._register(self.place.voice)
        elif state == resource_manager_fsm.PAUSED and self.rng.random() < 0.3:
            self.connection()

    def _look_at(self, place: Place, partition: Partition) -> None:
        held = {
            (app.app_id, each.uuid): each
            for app in partition.applications.values()
            for each in (*app.allocations.values(), *app.placeholders.values())
        }
        assert held.keys() == place.here.keys(), held.keys() ^ place.here.keys()
        going = {identity: TERMINATION[a.reason] for identity, a in held.items() if a.reason}
        assert going == place.owed, f"V9 {going} and {place.owed}"
        assert partition.nodes.keys() == set(place.nodes)
        for node in partition.nodes.values():
            if node.node_id not in place.shrunk:
                assert min(node.available) >= 0, f"V2: {node.node_id} is overcommitted"
        for queue in partition.queues():
            late = [shape for shape in queue.short_of if queue.has_room(shape)]
            assert not late, f"V7 {queue.path}: somebody waits for room that there is: {late}"
        nodes = partition.nodes.values()
        kept = {kept for node in nodes for kept in (node.reservation, *node.also_reserved)} - {None}
        assert kept == set(partition.reservations), "V3: nodes and reservations differ"
        assert kept >= {*partition.waiting.retries, *partition.waiting.short_of_quota}, (
            "V3: a reservation outlived itself"
        )
        for name, app in partition.applications.items():
            assert app.state not in application_fsm.ENDED, (
                f"V8: {name} is {app.state} and not forgotten"
            )
            if len(place.voice.partitions) == 1 and app.state != application_fsm.NEW:
                told = place.voice.states.get(name)
                assert told == Dialect(partition.rm.dialect).state(app.state), f"{name} told {told}"
        assert {app.state for app in partition.ended} <= application_fsm.ENDED
        plans = (
            ("nodes", [partition.node_index.planned]),
            ("quotas", partition.waiting.quota_plans.values()),
        )
        self.planned |= {(what, plan.app) for what, found in plans for plan in found if plan}

    def _health(self) -> None:
        """2.12: nothing is reported but nodes that were refused, or have less than what is on them."""
        partitions = [partition for _, partition in self.partitions()]
        nodes = [node for partition in partitions for node in partition.nodes.values()]
        expected = {1} if any(partition.failed_nodes for partition in partitions) else set()
        if any(min(node.available) < 0 for node in nodes):
            expected.add(3)
        if any(a > b for node in nodes for a, b in zip(node.allocated, node.total, strict=True)):
            expected.add(7)
        health = finish(check_in_steps(self.scheduler.partitions()))
        checks = enumerate(health["HealthChecks"])
        assert {at for at, each in checks if not each["Succeeded"]} == expected, health

    def take_views(self) -> None:
        """Everything that can be shown."""
        as_text(Views(self.scheduler).state_dump())
        for place, partition in self.partitions():
            for app in partition.applications.values():
                for key in app.asks:
                    self.scheduler.explain(app.app_id, key, place.name, place.voice.rm_id)

    # -- the end -----------------------------------------------------------------------------------

    def wind_down(self) -> None:
        """V7: everything is released and confirmed; all applications end by themselves."""
        for voice in self.voices:
            if self.rm_of(voice).state != resource_manager_fsm.RUNNING:
                self._register(voice)
        for _ in range(4):
            for place, partition in self.partitions():
                for app in list(partition.applications):
                    place.voice.release_ask(app, partition=place.name)
                    place.confirm(app, "", "", TerminationType.STOPPED_BY_RM)
                for identity, kind in list(place.owed.items()):
                    if identity in place.owed:
                        place.confirm(*identity, "", kind)
            self.look()
            self._advance(1000)
        for place, partition in self.partitions():
            assert not place.here
            for app in partition.applications.values():
                # what its resource manager has to ask for next is its own affair (X29)
                back = app.state == application_fsm.ACCEPTED and app.gang.over
                assert back or app.state == application_fsm.NEW, f"V7 {app.app_id} is {app.state}"

    def end(self) -> None:
        """All applications are removed: nothing is left of them, in any book."""
        for voice in self.voices:
            if self.rm_of(voice).state != resource_manager_fsm.RUNNING:
                self._register(voice)
        for place, partition in self.partitions():
            self.place = place
            for app in list(partition.applications):
                self._remove(app)
            assert not place.here
        self.look()
        for _, partition in self.partitions():
            self._nothing_held(partition)
        for place, partition in self.partitions():
            for name in place.nodes:
                place.voice.node(name, NodeInfo.DECOMISSION)
            assert not any(partition.capacity)
        self._advance(80 * 3600)
        for _, partition in self.partitions():
            assert not partition.ended
            assert partition.state == "Active"
            assert all(q.managed and q.state == "Active" for q in partition.queues())
        assert self.scheduler.next_deadline() is None, "V8: a timer outlived everything"

    def _nothing_held(self, partition: Partition) -> None:
        for queue in partition.queues():
            books = (queue.allocated, queue.pending, queue.reserved_headroom, queue.preempting)
            assert not any(map(any, books)), queue.path
            assert (queue.demand_below, queue.running, queue.priorities) == (0, 0, {}), queue.path
            kept = (queue.admitted, queue.gated, queue.reserving)
            assert not any(kept), queue.path
            if queue.leaf:
                assert not (queue.apps or queue.turn), queue.path  # type: ignore[attr-defined]
        for node in partition.nodes.values():
            assert not (node.allocations or node.reservation or node.also_reserved)
            assert not any(node.allocated)
        for book in (
            partition.applications,
            partition.users,
            partition.groups,
            partition.reservations,
            partition.waiting.retries,
            partition.waiting.short_of_quota,
            partition.waiting.deferred_reservations,
            partition.waiting.deferred_asks,
            partition.hints.asks,
            partition.waiting.short_ledgers,
        ):
            assert not book
