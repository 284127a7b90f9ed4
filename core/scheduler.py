"""The scheduler: one object with one owner.

Messages, the time and the resource managers' answers come in, messages go out. There is no clock,
thread, socket or random number inside; the same input gives the same output, byte for byte. Drivers
around it (``core.service``, the simulator) own the clock and the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final, SupportsIndex

from quadriga.core.checks import invariants
from quadriga.core.checks.audit import Audit, AuditedKernel
from quadriga.core.config import Configuration
from quadriga.core.events import Events, observers
from quadriga.core.intake import registration
from quadriga.core.intake.dispatcher import Request, check, dispatch
from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.model.ended import EndedApplication
from quadriga.core.model.partition import Partition
from quadriga.core.model.resource_manager import ResourceManager
from quadriga.core.model.usage import ApplicationSummary
from quadriga.core.preemption import failed_preemptions
from quadriga.core.runtime.journal import Journal, Record
from quadriga.core.runtime.kernel import Kernel, Measure, Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.runtime.remote_predicates import awaited
from quadriga.core.runtime.tally import Tally
from quadriga.core.scheduling import (
    deadlines,
    effects,
    explain,
    queue_tree,
    replacement,
    reservation,
    scale_up,
    skipped,
)
from quadriga.core.scheduling.batch import decide_all
from quadriga.core.scheduling.cycle import decide
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm import resource_manager as life
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RequestError,
    UpdateConfigurationRequest,
)

__all__ = ["Predicate", "PreemptionPredicate", "Scheduler", "check_time"]

Predicate = Callable[[str, str, bool], str | None]
PreemptionPredicate = Callable[[str, str, list[str], int], int | None]


#: an int; where it were declared as one, a compiled wheel would refuse others with ``TypeError``
Time = SupportsIndex

#: no time is later (ns): the sum of a time and a duration is still within 63 bits
_LATEST: Final = 1 << 62
#: with a budget, a resource manager may have at least so many decisions made before the next one
_TURN: Final = 64


def check_time(now: Time, latest: int) -> int:
    """The time, if it is one and not before the latest. Raises ``RequestError``."""
    if type(now) is not int:  # nor a bool
        kind = type(now).__name__
        raise RequestError("time", "now", f"has to be an integer (ns), and is of type {kind}")
    if not -_LATEST <= now <= _LATEST:  # not spelled: it may have any number of digits
        raise RequestError("time", "now", "is beyond 2^62 ns")
    if now < latest:
        raise RequestError("time", "now", f"went back from {latest} to {now} ns")
    return now


class Scheduler:
    """All times are integer ns of any one clock that does not go back, up to 2^62."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self._kernel = Kernel(options)
        self._audit: Audit | None = None
        if options.audit_every:
            self._kernel = kernel = AuditedKernel(options)
            self._audit = Audit(kernel, options.audit_every)
        self._events = Events(self._kernel)
        observers.install(self._kernel)  # first: a record precedes those of what follows
        effects.install(self._kernel)
        self._rms: dict[str, ResourceManager] = {}
        #: the last call of ``schedule`` ended because of its limit: there may be more to decide
        self.unfinished = False
        #: the resource manager whose turn it is, or would be
        self._next = ""

    # -- input -----------------------------------------------------------------------------------

    def apply(
        self,
        message: RegisterResourceManagerRequest | UpdateConfigurationRequest | Request,
        now: Time,
    ) -> list[Output]:
        """Apply one message and return what it made the scheduler say.

        Raises ``RequestError`` for a request that is refused whole; then it has changed nothing.
        Timers that were due before ``now`` fire first. Nothing is scheduled here: call ``schedule``.
        """
        kernel = self._advance_to(now)
        kernel.cause = type(message).__name__
        if isinstance(message, RegisterResourceManagerRequest):
            self._register(message)
        elif isinstance(message, UpdateConfigurationRequest):
            self._reconfigure(message)
        elif isinstance(message, ApplicationRequest | AllocationRequest | NodeRequest):
            dispatch(kernel, self._rm(message), message)
        else:
            raise RequestError(kernel.cause, "", "is not a message for the scheduler")
        kernel.settle()
        return kernel.outbox.take()

    def check_request(self, message: Request) -> None:
        """Raise what ``apply`` would raise for this request now; nothing changes."""
        check(self._rm(message), message)

    def schedule(
        self, now: Time, limit: int | None = None, budget: int | None = None
    ) -> list[Output]:
        """Make decisions, one at a time, until there are none to make.

        ``limit`` is the most rounds; a round makes at most one decision in each partition (5.2).
        Resource managers do not wait for one another: each has its rounds at one go. With a
        ``budget``, which is the most decisions in all, they take turns, and the next call goes on
        where this one has ended.
        """
        kernel = self._advance_to(now)
        kernel.cause = "schedule"
        most = 0
        whole = budget or 0
        unfinished = False
        owners = self._in_turn()
        turn = max(_TURN, (budget or 0) // max(1, len(owners)))
        for own in owners:
            allowed = -1 if limit is None else limit
            if budget is not None:
                if budget <= 0:
                    self._next = own[0].rm.rm_id
                    unfinished = True
                    break
                rounds = max(1, min(turn, budget) // len(own))
                allowed = rounds if limit is None else min(limit, rounds)
            try:
                rounds, more = _serve(kernel, own, allowed)
            except Exception:  # a bug, or a predicate that raises: all others come first next time
                self._next = _after(owners, own)
                raise
            if budget is not None:
                budget -= rounds * len(own)
            most = max(most, rounds)
            unfinished = unfinished or bool(more)
        kernel.tally.rounds += most
        if kernel.hints_in_slices:
            # of what decisions have left of the budget, and of no less than a quarter
            steps = None if budget is None else max(budget, whole // 4)
            unfinished = self._tell_of_some(steps) or unfinished
        self.unfinished = unfinished
        for partition in self.partitions():
            if _is_served(partition) and partition.hints.asks:
                scale_up.watch(kernel, partition)
            if partition.rm.all_states and _is_served(partition):
                skipped.watch(kernel, partition)
            if partition.failed_preemptions.by_shape:
                failed_preemptions.watch(kernel, partition)
        kernel.settle()
        return kernel.outbox.take()

    def _tell_of_some(self, steps: int | None) -> bool:
        """Look at the next asks that may lack nodes, at most ``steps`` in all partitions together
        (``None``: all). Return whether more are left."""
        looking = [each for each in self.partitions() if each.hints.inspection is not None]
        for partition in looking:
            most = -1 if steps is None else max(1, steps // len(looking))
            scale_up.go_on(partition, most)
        return any(partition.hints.inspection is not None for partition in looking)

    def _in_turn(self) -> list[list[Partition]]:
        """The partitions that are served, by resource manager, from whose turn it is on."""
        served = [partition for partition in self.partitions() if _is_served(partition)]
        if len(served) < 2:
            return [served] if served else []
        owners = [list(own) for _, own in groupby(served, key=lambda partition: partition.rm.rm_id)]
        first = sum(own[0].rm.rm_id < self._next for own in owners)
        return owners[first:] + owners[:first]

    def advance(self, now: Time) -> list[Output]:
        """Let every timer up to ``now`` fire, each at its own instant."""
        kernel = self._advance_to(now)
        self._ring(kernel.now)
        return kernel.outbox.take()

    def next_deadline(self) -> int | None:
        """The instant of the next timer: call ``advance`` and ``schedule`` then."""
        return self._kernel.timers.next()

    # -- connections -----------------------------------------------------------------------------

    def set_group_resolver(self, groups_of: Callable[[str], tuple[str, ...]] | None) -> None:
        """Ask this for the groups of a user whose application names none (I24).

        ``()`` is the answer for a user who has none or is not known. It is part of the input: the
        same answers give the same output.
        """
        self._kernel.groups_of = groups_of

    def set_predicate(self, rm_id: str, predicate: Predicate | None) -> None:
        """Ask this before an ask is placed: (allocation key, node id, allocate or reserve) gives
        ``None`` if the pod fits the node, else the reason why not (I36)."""
        if predicate is None:
            self._kernel.predicates.pop(rm_id, None)
        else:
            self._kernel.predicates[rm_id] = predicate

    def set_preemption_predicate(self, rm_id: str, predicate: PreemptionPredicate | None) -> None:
        """Ask this before others have to go for an ask: (allocation key, node id, keys of those who
        would have to go, in order, start index) gives the index of the last one that really has to,
        or ``None`` if the pod would not fit all the same (I37). Without it the start index is
        enough (X24)."""
        if predicate is None:
            self._kernel.preemption_predicates.pop(rm_id, None)
        else:
            self._kernel.preemption_predicates[rm_id] = predicate

    def set_events(self, rm_id: str, wanted: bool) -> None:
        """Whether the resource manager is to be told events (I40). It is from its registration on
        unless this says otherwise; the ring buffer and streams have them in any case."""
        rm = self._rms.get(rm_id)
        if rm is not None:
            self._events.hear(rm, wanted)

    def set_hints_in_slices(self, wanted: bool) -> None:
        """Whether resource managers are told of asks that lack nodes (5.11) by calls of ``schedule``,
        each of which looks at no more asks than its ``budget``; else the timer tells of all at once."""
        self._kernel.hints_in_slices = wanted

    def set_measure(self, measure: Measure | None) -> None:
        """Enter ``measure(name)`` around what takes long inside of one decision (``preemption``), so
        that a driver can time it. Nothing of it is looked at here: there is no clock inside."""
        self._kernel.measure = measure

    def disconnect(self, rm_id: str, now: Time) -> list[Output]:
        """The connection is lost: not scheduled until it is back, forgotten after a time (I6)."""
        return self._connection(rm_id, life.DISCONNECT, now)

    def reconnect(self, rm_id: str, now: Time) -> list[Output]:
        """The connection is back in time: nothing was lost."""
        return self._connection(rm_id, life.RECONNECT, now)

    def shutdown(self, rm_id: str, now: Time) -> list[Output]:
        """The resource manager leaves: its state is dropped at once."""
        return self._connection(rm_id, life.SHUTDOWN, now)

    def _connection(self, rm_id: str, trigger: life.Trigger, now: Time) -> list[Output]:
        kernel = self._advance_to(now)
        rm = self._rms.get(rm_id)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, trigger):
            state = rm.state if rm is not None else "not known"
            text = f"resource manager {rm_id!r} is {state}: {trigger} is not possible (I6)"
            raise RequestError(trigger, "rmID", text)
        kernel.cause = trigger
        kernel.fire(RESOURCE_MANAGER, rm, trigger)
        kernel.settle()
        return kernel.outbox.take()

    # -- looking ---------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        return self._kernel.journal

    @property
    def events(self) -> Events:
        """What happened, for people: the ring buffer, streams and counters of event records."""
        return self._events

    def take_summaries(self) -> list[ApplicationSummary]:
        """Of applications that ended since they were last taken, oldest first; at most 1000 wait."""
        summaries = self._kernel.summaries
        taken = list(summaries)
        summaries.clear()
        return taken

    @property
    def now(self) -> int:
        return self._kernel.now

    @property
    def tally(self) -> Tally:
        """What has happened so far and no book remembers."""
        return self._kernel.tally

    @property
    def notes(self) -> tuple[tuple[int, str], ...]:
        """What was ignored and why: (ns, text), oldest first."""
        return tuple(self._kernel.notes)

    @property
    def overdue(self) -> tuple[tuple[int, str, str], ...]:
        """The watchdog's reports: (ns, key, state) of entities that outstayed a state."""
        return tuple(self._kernel.overdue)

    def story(
        self, key: str, partition: str | None = None, rm_id: str | None = None
    ) -> tuple[Record, ...]:
        """What happened to one entity; ``key`` is ``lifecycle/id``, as in the journal. Ids are unique
        within a partition: say which one, where there are several."""
        return self._kernel.journal.story(key, partition, rm_id)

    def resource_managers(self) -> tuple[ResourceManager, ...]:
        return tuple(self._rms[rm_id] for rm_id in sorted(self._rms))

    def partitions(self) -> Iterator[Partition]:
        """All partitions in order of resource manager and name."""
        for rm_id in sorted(self._rms):
            partitions = self._rms[rm_id].partitions
            yield from (partitions[name] for name in sorted(partitions))

    def partition(self, name: str = "default", rm_id: str | None = None) -> Partition:
        """The partition of this name. Raises ``KeyError``."""
        for partition in self.partitions():
            if partition.name == name and rm_id in (None, partition.rm.rm_id):
                return partition
        raise KeyError(name)

    def application(
        self, app_id: str, partition: str = "default", rm_id: str | None = None
    ) -> Application | EndedApplication:
        """The living application of this id, else what is kept of the last one that ended. Raises
        ``KeyError``."""
        found = self.partition(partition, rm_id)
        living = found.applications.get(app_id)
        if living is not None:
            return living
        for app in reversed(found.ended):
            if app.app_id == app_id:
                return app
        raise KeyError(app_id)

    def explain(
        self,
        application_id: str,
        allocation_key: str,
        partition: str = "default",
        rm_id: str | None = None,
        *,
        predicates: bool = True,
    ) -> explain.Explanation:
        """Why the ask is still pending: every check with its numbers. Raises ``KeyError``.

        Without ``predicates`` the resource manager is not asked what it thinks of each node.
        """
        app = self.partition(partition, rm_id).applications[application_id]
        return explain.explain(self._kernel, app.asks[allocation_key], predicates=predicates)

    def check(self) -> list[str]:
        """The invariants (6.1) that do not hold now; empty when all do."""
        return [text for p in self.partitions() for text in invariants.violations(p)]

    def audit(self) -> list[str]:
        """As ``check``, but of what the last step touched, in time that follows from that; and of
        everything after each ``Options.audit_every`` steps. To be called after every step."""
        if self._audit is None:
            raise RuntimeError("the scheduler was made without Options.audit_every")
        return self._audit.step(self.partitions())

    def inspect(self, now: Time) -> list[Output]:
        """One pass over outstanding asks at once, instead of a second after a vain round (5.11)."""
        kernel = self._advance_to(now)
        for partition in self.partitions():
            scale_up.inspect(kernel, partition)
        return kernel.outbox.take()

    def clean_queues(self, now: Time) -> None:
        """A round of the cleaner at once: remove empty queues that drain or were made by placement.

        The core makes one itself at every tenth second, while there are any (2.9).
        """
        kernel = self._advance_to(now)
        kernel.cause = "clean queues"
        for partition in list(self.partitions()):
            queue_tree.clean(kernel, partition)

    # -- the rest --------------------------------------------------------------------------------

    def _advance_to(self, now: Time) -> Kernel:
        """Time has come to ``now``; what was due before it happens first, at its own instants."""
        kernel = self._kernel
        instant = check_time(now, kernel.now)
        self._ring(instant - 1)
        kernel.now = instant
        return kernel

    def _ring(self, until: int) -> None:
        kernel = self._kernel
        while (timer := kernel.timers.pop(until)) is not None:
            kernel.now = max(kernel.now, timer.when)
            kernel.cause = f"timer {timer.name}"
            deadlines.ring(kernel, timer)

    def _rm(self, message: Request) -> ResourceManager:
        rm = self._rms.get(message.rmID)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, life.SHUTDOWN):
            name = type(message).__name__
            raise RequestError(
                name, "rmID", f'received {name}, but RmID="{message.rmID}" not registered (I43)'
            )
        return rm

    def _register(self, message: RegisterResourceManagerRequest) -> None:
        name = type(message).__name__
        if not message.rmID:
            raise RequestError(name, "rmID", "is required (I10)")
        configuration = registration.read_configuration(name, message.config)
        registration.check_extra(name, message.extraConfig)
        if message.policyGroup:  # I44
            for other in self._rms.values():
                alike = other.configuration in ("", configuration.checksum)
                shared = other.policy_group == message.policyGroup
                if shared and not alike and other.rm_id != message.rmID:
                    raise RequestError(
                        name,
                        "policyGroup",
                        f"{message.policyGroup!r} is shared with resource manager "
                        f"{other.rm_id!r}, whose configuration differs (I44)",
                    )
        rm = self._rms.get(message.rmID)
        if rm is None:
            rm = self._rms[message.rmID] = ResourceManager(message.rmID)
            observers.observe(rm, self._events)
        registration.register(self._kernel, rm, message, configuration)

    def check_update(self, message: UpdateConfigurationRequest) -> None:
        """Raise what ``apply`` would raise for this configuration now; nothing changes."""
        rm, configuration = self._read_update(message)
        registration.check_update(type(message).__name__, rm, configuration)

    def _reconfigure(self, message: UpdateConfigurationRequest) -> None:
        rm, configuration = self._read_update(message)
        registration.update_configuration(self._kernel, rm, message, configuration)

    def _read_update(
        self, message: UpdateConfigurationRequest
    ) -> tuple[ResourceManager, Configuration | None]:
        name = type(message).__name__
        rm = self._rms.get(message.rmID)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, life.SHUTDOWN):
            raise RequestError(name, "rmID", f"{message.rmID!r} is not registered (I39)")
        registration.check_extra(name, message.extraConfig)
        text = message.config
        return rm, registration.read_configuration(name, text) if text.strip() else None


def _is_served(partition: Partition) -> bool:
    """Partitions of a resource manager that is away are not scheduled (2.10)."""
    return RESOURCE_MANAGER.allows(partition.rm.state, life.DISCONNECT)


def _after(owners: list[list[Partition]], own: list[Partition]) -> str:
    """The resource manager that comes after this one."""
    following = owners[(owners.index(own) + 1) % len(owners)]
    return following[0].rm.rm_id


def _serve(kernel: Kernel, partitions: list[Partition], most: int) -> tuple[int, list[Partition]]:
    """Up to so many rounds (negative: no limit) in the partitions of one resource manager. How many
    there were, and the partitions in which there may be more to decide."""
    for partition in partitions:
        _bring_back(kernel, partition)
    going, left = partitions, most
    while len(going) > 1 and left:
        going = [partition for partition in going if decide(kernel, partition)]
        left -= 1
    if going and left:
        rounds, more = decide_all(kernel, going[0], left)
        left -= rounds
        going = going if more else []
    for partition in partitions:
        partition.waiting.undecided = partition in going
        if not partition.waiting.undecided and partition.nodes:
            partition.rm.observer.round_ended(partition)
    return most - left, going


def _bring_back(kernel: Kernel, partition: Partition) -> None:
    """What predicates refused may look again, and members of gangs that lacked room."""
    if partition.waiting.stranded:
        replacement.land(kernel, partition)
    if partition.waiting.outgrown:
        replacement.look_again(partition)
    if partition.waiting.deferred_reservations:
        partition.waiting.retries.update(partition.waiting.deferred_reservations)
        partition.waiting.deferred_reservations.clear()
    if partition.waiting.deferred_asks:
        asks, partition.waiting.deferred_asks = partition.waiting.deferred_asks, {}
        for ask in asks:
            if awaited(kernel, ask):
                partition.waiting.deferred_asks[ask] = None
        # the newest first: so each mostly goes to the head of its group
        for ask in sorted(
            asks.keys() - partition.waiting.deferred_asks.keys(), key=_by_arrival, reverse=True
        ):
            reservation.wait_again(kernel, ask)


def _by_arrival(ask: Ask) -> int:
    return ask.seq
