"""The scheduler: one object with one owner.

Messages, the time and the resource managers' answers come in, messages go out. There is no clock,
thread, socket or random number inside; the same input gives the same output, byte for byte. Drivers
around it (``core.driver.service``, the simulator) own the clock and the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, SupportsIndex

from quadriga.core.checks import invariants
from quadriga.core.checks.audit import Audit, AuditedKernel
from quadriga.core.config import Configuration
from quadriga.core.events import Events, observers
from quadriga.core.explain.asks import explain_in_steps
from quadriga.core.explain.explanation import Explanation
from quadriga.core.intake import registration
from quadriga.core.intake.dispatcher import Request, check, configure, dispatch
from quadriga.core.model.application import Application, EndedApplication
from quadriga.core.model.history import ApplicationSummary
from quadriga.core.model.partition import Partition
from quadriga.core.model.resource_manager import ResourceManager
from quadriga.core.model.run_times import Row, RunTimes
from quadriga.core.runtime.journal import Journal, Record
from quadriga.core.runtime.kernel import Kernel, Measure, Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.runtime.stepwise import Steps, at_once
from quadriga.core.runtime.tally import Tally
from quadriga.core.scheduling import deadlines, effects, scale_up
from quadriga.core.scheduling.turns import Turns
from quadriga.core.steps import queue_tree
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RequestError,
    UpdateConfigurationRequest,
)

Predicate = Callable[[str, str, bool], str | None]
PreemptionPredicate = Callable[[str, str, list[str], int], int | None]


#: an ``int``; declared as one, anything else would raise ``TypeError`` in a compiled wheel
Time = SupportsIndex

#: the latest time (ns): the sum of a time and a duration stays within 63 bits
_LATEST: Final = 1 << 62


@cache
def _cause_of(timer: str) -> str:
    """The cause of what follows from a timer of this name."""
    return f"timer {timer}"


def check_time(now: Time, latest: int) -> int:
    """Return the time. Raises ``RequestError`` if it is none, or is before ``latest``."""
    if type(now) is not int:  # nor a bool
        kind = type(now).__name__
        raise RequestError("time", "now", f"has to be an integer (ns), and is of type {kind}")
    if not -_LATEST <= now <= _LATEST:  # not quoted: it may have any number of digits
        raise RequestError("time", "now", "is beyond 2^62 ns")
    if now < latest:
        raise RequestError("time", "now", f"went back from {latest} to {now} ns")
    return now


class Scheduler:
    """All times are integer ns, up to 2^62, of one clock that does not go back."""

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
        #: the last call of ``schedule`` ended because of its limit or budget: there may be more to decide
        self.unfinished = False
        self._turns = Turns()

    # -- input -----------------------------------------------------------------------------------

    def apply(
        self,
        message: RegisterResourceManagerRequest | UpdateConfigurationRequest | Request,
        now: Time,
    ) -> list[Output]:
        """Apply one message and return the messages that follow from it.

        Raises ``RequestError`` for a request that is refused as a whole; then nothing has changed.
        Timers that are due before ``now`` fire first. Nothing is scheduled here: call ``schedule``.
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

        ``limit`` is the largest number of rounds; a round makes at most one decision in each partition
        (5.2). ``budget`` is the largest number of decisions in all: with a budget resource managers
        take turns, and the next call continues where this one ended.
        """
        kernel = self._advance_to(now)
        kernel.cause = "schedule"
        partitions = list(self.partitions())
        self.unfinished = self._turns.schedule(kernel, partitions, limit, budget)
        kernel.settle()
        return kernel.outbox.take()

    def advance(self, now: Time) -> list[Output]:
        """Fire every timer up to ``now``, each at its own instant."""
        kernel = self._advance_to(now)
        self._ring(kernel.now)
        return kernel.outbox.take()

    def next_deadline(self) -> int | None:
        """The instant of the next timer (ns): call ``advance`` and ``schedule`` then."""
        return self._kernel.timers.next()

    def describe_next_timer(self) -> str:
        """What fires at ``next_deadline``, for reports."""
        return self._kernel.timers.describe_next()

    # -- run times -------------------------------------------------------------------------------

    def run_times(self) -> dict[str, list[Row]]:
        """The run times that predict others (Q11), by key of the partition, for `restore_run_times`."""
        return {key: each.data() for key, each in self._kernel.run_times.items()}

    def restore_run_times(self, data: Mapping[str, Iterable[Row]]) -> None:
        """Remember the run times that another scheduler had. They are input, like a message. Raises ``ValueError``."""
        for key, rows in data.items():
            self._kernel.run_times.setdefault(key, RunTimes()).restore(rows)

    # -- connections -----------------------------------------------------------------------------

    def set_group_resolver(self, groups_of: Callable[[str], tuple[str, ...]] | None) -> None:
        """Set the function that gives the groups of a user whose application names none (I24).

        It returns ``()`` for a user without groups and for an unknown user. Its answers are part of
        the input: the same answers give the same output.
        """
        self._kernel.groups_of = groups_of

    def set_predicate(
        self, rm_id: str, predicate: Predicate | None, refusal: Predicate | None = None
    ) -> None:
        """Set the function that is called before an ask is placed (I36).

        Its arguments are the allocation key, the node id, and whether to allocate or to reserve. It
        returns ``None`` if the pod fits the node, else the reason why not.

        An explanation asks ``refusal`` instead, if it is given: a question from which nothing follows.
        """
        kernel = self._kernel
        for functions, function in ((kernel.predicates, predicate), (kernel.refusals, refusal)):
            if function is None:
                functions.pop(rm_id, None)
            else:
                functions[rm_id] = function
        for partition in self.partitions():
            partition.waiting.forget_refusals()

    def set_preemption_predicate(self, rm_id: str, predicate: PreemptionPredicate | None) -> None:
        """Set the function that is called before allocations are preempted for an ask (I37).

        Its arguments are the allocation key, the node id, the keys of the victims in order, and the
        index of the last victim that the resources require. It returns the index of the last victim
        that the pod requires, or ``None`` if the pod would not fit without any of them. Without such
        a function the given index is used (X24).
        """
        if predicate is None:
            self._kernel.preemption_predicates.pop(rm_id, None)
        else:
            self._kernel.preemption_predicates[rm_id] = predicate

    def set_events(self, rm_id: str, wanted: bool) -> None:
        """Send event records to the resource manager, or not (I40). By default they are sent. The ring
        buffer and streams get them in any case."""
        rm = self._rms.get(rm_id)
        if rm is not None:
            self._events.hear(rm, wanted)

    def set_hints_in_slices(self, wanted: bool) -> None:
        """Report asks that lack nodes (5.11) from calls of ``schedule``, each of which looks at no more
        asks than its ``budget`` allows; otherwise a timer reports all at once."""
        self._kernel.hints_in_slices = wanted

    def set_measure(self, measure: Measure | None) -> None:
        """Enter ``measure(name)`` around long parts of a decision (``preemption``), so that a driver can
        time them. No decision depends on it."""
        self._kernel.measure = measure

    def disconnect(self, rm_id: str, now: Time) -> list[Output]:
        """The connection is lost: nothing of the resource manager is scheduled until it is back, and its
        state is dropped after a time (I6)."""
        return self._connection(rm_id, resource_manager_fsm.DISCONNECT, now)

    def reconnect(self, rm_id: str, now: Time) -> list[Output]:
        """The connection is back in time: nothing was lost."""
        return self._connection(rm_id, resource_manager_fsm.RECONNECT, now)

    def shutdown(self, rm_id: str, now: Time) -> list[Output]:
        """The resource manager leaves: its state is dropped at once."""
        return self._connection(rm_id, resource_manager_fsm.SHUTDOWN, now)

    def _connection(
        self, rm_id: str, trigger: resource_manager_fsm.Trigger, now: Time
    ) -> list[Output]:
        kernel = self._advance_to(now)
        rm = self._rms.get(rm_id)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, trigger):
            state = rm.state if rm is not None else "not known"
            text = f"resource manager {rm_id!r} is {state}: {trigger} is not possible"
            raise RequestError(trigger, "rmID", text)
        kernel.cause = trigger
        kernel.fire(RESOURCE_MANAGER, rm, trigger)
        kernel.settle()
        return kernel.outbox.take()

    # -- reading ---------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        return self._kernel.journal

    @property
    def events(self) -> Events:
        """The ring buffer, the streams and the counters of event records."""
        return self._events

    def take_summaries(self) -> list[ApplicationSummary]:
        """The summaries of applications that ended since the last call, oldest first; at most 1000."""
        summaries = self._kernel.summaries
        taken = list(summaries)
        summaries.clear()
        return taken

    @property
    def options(self) -> Options:
        return self._kernel.options

    @property
    def now(self) -> int:
        return self._kernel.now

    @property
    def tally(self) -> Tally:
        """Counters of what has happened so far."""
        return self._kernel.tally

    @property
    def notes(self) -> tuple[tuple[int, str], ...]:
        """What was ignored and why: (ns, text), oldest first."""
        return tuple(self._kernel.notes)

    @property
    def overdue(self) -> tuple[tuple[int, str, str], ...]:
        """The watchdog's reports: (ns, key, state) of entities that stayed too long in a state."""
        return tuple(self._kernel.overdue)

    def story(
        self, key: str, partition: str | None = None, rm_id: str | None = None
    ) -> tuple[Record, ...]:
        """The journal's records of one entity; ``key`` is ``lifecycle/id``. Ids are unique within a
        partition: name the partition if there are several."""
        return self._kernel.journal.story(key, partition, rm_id)

    def resource_managers(self) -> tuple[ResourceManager, ...]:
        return tuple(self._rms[rm_id] for rm_id in sorted(self._rms))

    def partitions(self) -> Iterator[Partition]:
        """All partitions in order of resource manager and name."""
        rms = self._rms
        for rm_id in sorted(rms) if len(rms) > 1 else rms:
            partitions = rms[rm_id].partitions
            if len(partitions) > 1:
                yield from (partitions[name] for name in sorted(partitions))
            else:
                yield from partitions.values()

    def partition(self, name: str = "default", rm_id: str | None = None) -> Partition:
        """The partition of this name. Raises ``KeyError``."""
        for partition in self.partitions():
            if partition.name == name and rm_id in (None, partition.rm.rm_id):
                return partition
        raise KeyError(name)

    def application(
        self, app_id: str, partition: str = "default", rm_id: str | None = None
    ) -> Application | EndedApplication:
        """The living application of this id, else the record of the last one that ended. Raises
        ``KeyError``."""
        found = self.partition(partition, rm_id)
        living = found.applications.get(app_id)
        if living is not None:
            return living
        for app in reversed(found.ended):
            if app.app_id == app_id:
                return app
        raise KeyError(app_id)

    def explain_in_steps(
        self,
        application_id: str,
        allocation_key: str,
        partition: str = "default",
        rm_id: str | None = None,
        *,
        predicates: bool = True,
    ) -> Steps[Explanation]:
        """Why the ask is still pending: every check with its numbers. Raises ``KeyError``.

        Without ``predicates`` the resource manager is not asked about each node.
        """
        app = self.partition(partition, rm_id).applications[application_id]
        ask = app.asks[allocation_key]
        return explain_in_steps(self._kernel, ask, predicates=predicates)

    explain = at_once(explain_in_steps)

    def check(self) -> list[str]:
        """The invariants (6.1) that do not hold now; empty when all do."""
        return [text for p in self.partitions() for text in invariants.violations(p)]

    def audit(self) -> list[str]:
        """As ``check``, but only of the entities that the last step changed, in time proportional to
        these; every ``Options.audit_every`` steps of all. To be called after every step."""
        if self._audit is None:
            raise RuntimeError("the scheduler was made without Options.audit_every")
        return self._audit.step(self.partitions())

    def inspect(self, now: Time) -> list[Output]:
        """Inspect pending asks now, instead of a second after a round without a decision (5.11)."""
        kernel = self._advance_to(now)
        for partition in self.partitions():
            scale_up.inspect(kernel, partition)
        return kernel.outbox.take()

    def clean_queues(self, now: Time) -> None:
        """Remove empty queues now that are draining or were created by placement.

        The core does so itself every ten seconds while there are such queues (2.9).
        """
        kernel = self._advance_to(now)
        kernel.cause = "clean queues"
        for partition in list(self.partitions()):
            queue_tree.clean(kernel, partition)

    # -- the rest --------------------------------------------------------------------------------

    def _advance_to(self, now: Time) -> Kernel:
        """Advance the time to ``now``; timers that are due before it fire first, at their own instants."""
        kernel = self._kernel
        instant = check_time(now, kernel.now)
        due = kernel.timers.next()
        if due is not None and due < instant:
            self._ring(instant - 1)
        kernel.now = instant
        return kernel

    def _ring(self, until: int) -> None:
        kernel = self._kernel
        while (timer := kernel.timers.pop(until)) is not None:
            kernel.now = max(kernel.now, timer.when)
            kernel.cause = _cause_of(timer.name)
            deadlines.timer_fired(kernel, timer)

    def _rm(self, message: Request) -> ResourceManager:
        rm = self._rms.get(message.rmID)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN):
            name = type(message).__name__
            raise RequestError(
                name, "rmID", f'received {name}, but RmID="{message.rmID}" not registered'
            )
        return rm

    def _register(self, message: RegisterResourceManagerRequest) -> None:
        configuration = registration.read_registration(message, self._rms.values(), self.options)
        rm = self._rms.get(message.rmID)
        if rm is None:
            rm = self._rms[message.rmID] = ResourceManager(message.rmID)
            observers.observe(rm, self._events)
        configure(self._kernel, rm, message, configuration)

    def check_update(self, message: UpdateConfigurationRequest) -> None:
        """Raise what ``apply`` would raise for this configuration now; nothing changes."""
        rm, configuration = self._read_update(message)
        registration.check_update(type(message).__name__, rm, configuration)

    def _reconfigure(self, message: UpdateConfigurationRequest) -> None:
        rm, configuration = self._read_update(message)
        configure(self._kernel, rm, message, configuration)

    def _read_update(
        self, message: UpdateConfigurationRequest
    ) -> tuple[ResourceManager, Configuration | None]:
        rm = self._rms.get(message.rmID)
        if rm is None or not RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN):
            name = type(message).__name__
            raise RequestError(name, "rmID", f"{message.rmID!r} is not registered")
        return rm, registration.read_update(message, self.options)
