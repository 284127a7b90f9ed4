"""Run to completion: fire a trigger, record it, execute its effects.

``core`` changes states through ``Kernel.fire`` only. Each effect is executed at once by the handler
registered for its type. A trigger that an effect fires at the same entity waits in a queue until the
present step is complete (``settle``), so a lifecycle never re-enters itself. The kernel has no clock:
``now`` is the time that the caller of the scheduler gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.texts import shortened
from quadriga.base.times import MINUTE, SECOND
from quadriga.core.config import DEFAULT_NODE_SORT_POLICY, NODE_SORT_POLICIES
from quadriga.core.model.run_times import RunTimes
from quadriga.core.model.timer import Timer
from quadriga.core.resources.message_bounds import MessageBounds
from quadriga.core.runtime.journal import Change, Journal
from quadriga.core.runtime.outbox import Outbox
from quadriga.core.runtime.tally import Tally
from quadriga.core.runtime.timers import Timers
from quadriga.fsm import (
    ALLOCATION,
    LIFECYCLES,
    RESOURCE_MANAGER,
    Effect,
    Entity,
    InvalidTransition,
    Lifecycle,
)
from quadriga.fsm.firing import Step
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.fsm.lifecycles.effects import Fire, Update
from quadriga.fsm.table import Info, State, Trigger

if TYPE_CHECKING:
    from quadriga.core.model.history import ApplicationSummary


#: what ``Options.engine`` may be
ENGINES: Final = ("fast", "stock")


def check_lifecycles(own: Mapping[str, Lifecycle]) -> None:
    """Raise ``ValueError`` unless these can stand for the shared lifecycles of their names."""
    for name, lifecycle in own.items():
        shared = LIFECYCLES.get(name)
        if shared is None:
            raise ValueError(
                f"lifecycles has the unknown name {name!r}, not one of {', '.join(LIFECYCLES)}"
            )
        if lifecycle.name != name:
            raise ValueError(f"lifecycles[{name!r}] is named {lifecycle.name!r}")
        if set(lifecycle.states) != set(shared.states):
            other = sorted(set(lifecycle.states) ^ set(shared.states))
            raise ValueError(
                f"lifecycles[{name!r}] has other states than the scheduler knows: {', '.join(other)}"
            )


def lifecycles_of(engine: str, own: Mapping[str, Lifecycle]) -> dict[str, Lifecycle] | None:
    """The lifecycles by name that take the place of the shared ones; ``None``: no other ones."""
    if engine != "stock" and not own:
        return None
    shared = {
        name: lifecycle.on_stock() if engine == "stock" else lifecycle
        for name, lifecycle in LIFECYCLES.items()
    }
    return {**shared, **own}


#: makes a context manager in which a driver times the named operation
Measure = Callable[[str], AbstractContextManager[object]]

_NOTHING: Final[Info] = {}

_OwnLimit = Callable[[Any], int | None]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a scheduler that are not configured for each resource manager.

    Times are in ns. ``journal_size`` is the number of records kept (``None``: all). ``batch`` is the
    largest number of new allocations in one response. ``lasts`` replaces the time limits of states, by
    lifecycle name and state. Raises ``ValueError`` for a policy or an engine that does not exist, and for
    lifecycles with other states.
    """

    journal_size: int | None = 100_000
    batch: int = 1
    reservation_delay: int = 2 * SECOND
    #: a reservation unused for this time is cancelled, and its ask waits as long before the next one
    reservation_give_up: int = 60 * MINUTE
    #: bound the number of reserved nodes by the property ``reservation.max.share`` of root, and by one
    #: node for each group of asks (Q7); if False, reservations are unbounded, as in YuniKorn
    bound_reservations: bool = True
    #: a queue loses allocations for the guarantee of another one unless they are guaranteed to it, as in
    #: YuniKorn since 1.6; if False, a type without a guarantee is protected up to its quotas, as in 1.5 (5.9)
    preempt_unguaranteed: bool = True
    inspect_interval: int = SECOND
    placeholder_timeout: int = 900 * SECOND
    #: ``gang.admission`` of queues whose configuration sets none: atomic, whole or incremental (Q1)
    gang_admission: str = "atomic"
    #: members that a gang may have by repeats: an ask whose ``maxAllocations`` would make them more is
    #: rejected (Q16). A plan visits each member
    gang_members: int = 10_000
    lasts: dict[tuple[str, str], int] = field(default_factory=dict)
    #: bounds of the ended and the rejected applications that are kept for each resource manager until
    #: they expire, in number and in bytes; beyond a bound the oldest expire early. ``None``: no bound
    keep_ended: int | None = 20_000
    keep_ended_bytes: int | None = 32 << 20
    keep_rejected: int | None = 5_000
    keep_rejected_bytes: int | None = 8 << 20
    #: bound of the users that each partition lists without an application, those that were last to have one
    keep_users: int = 1_000
    #: the node ordering policy of partitions whose configuration names none
    node_sort_policy: str = DEFAULT_NODE_SORT_POLICY
    #: what runs the lifecycles: ``fast``, or ``stock``, the plain class of the library ``transitions``, which
    #: says the same and is slower
    engine: str = "fast"
    #: of what one item of a message may say
    bounds: MessageBounds = field(default_factory=MessageBounds)
    #: by name: lifecycles that run in place of the shared ones (``lifecycle.copy()`` with changes). Where a
    #: callback or a condition of one raises, the shared one is followed and the error is in ``Scheduler.notes``
    lifecycles: Mapping[str, Lifecycle] = field(default_factory=dict)
    #: enable ``Scheduler.audit``, with a full check after this number of steps; 0: disabled
    audit_every: int = 0

    def __post_init__(self) -> None:
        if self.node_sort_policy not in NODE_SORT_POLICIES:
            known = ", ".join(NODE_SORT_POLICIES)
            raise ValueError(f"node_sort_policy is {self.node_sort_policy!r}, not one of {known}")
        if self.engine not in ENGINES:
            raise ValueError(f"engine is {self.engine!r}, not one of {', '.join(ENGINES)}")
        check_lifecycles(self.lifecycles)


class Kernel:
    """The clockless engine that all of core shares: state changes, effects, timers, journal, outbox."""

    __slots__ = (
        "_lasts",
        "cause",
        "effects",
        "entered",
        "groups_of",
        "hints_in_slices",
        "journal",
        "lifecycles",
        "limit",
        "measure",
        "notes",
        "now",
        "options",
        "outbox",
        "overdue",
        "predicates",
        "preemption_predicates",
        "refusals",
        "queue",
        "reason",
        "run_times",
        "summaries",
        "tally",
        "timers",
    )

    def __init__(self, options: Options) -> None:
        self.options = options
        #: the lifecycles to fire at, by name; ``None``: those that the callers of ``fire`` name
        self.lifecycles = lifecycles_of(options.engine, options.lifecycles)
        self.now = 0
        #: by key of a partition; they outlast it, as its resource manager may register anew
        self.run_times: dict[str, RunTimes] = {}
        #: the message, timer or decision that the present step follows from, for the journal
        self.cause = ""
        #: the reason of the present transition, if the trigger came with one
        self.reason = ""
        self.journal = Journal(options.journal_size)
        self.timers = Timers()
        #: the name of the timer and the time limit (ns) of a state, and the function that may give an
        #: entity another limit, by lifecycle and state
        self._lasts: dict[tuple[str, str], tuple[str, int, _OwnLimit | None]] = {}
        #: the timer of the last entered state that has a time limit
        self.limit: Timer | None = None
        self.outbox = Outbox(options.batch)
        self.queue: deque[tuple[Lifecycle, Any, Any]] = deque()
        #: the handler of each type of effect
        self.effects: dict[type[Effect], Callable[[Any, Any], None]] = {}
        #: the functions called, in this order, when an entity has entered a state, by lifecycle
        self.entered: dict[str, tuple[Callable[[Any], None], ...]] = {}
        self.tally = Tally()
        #: the watchdog's reports: time, key and state of entities that stayed too long in a state
        self.overdue: deque[tuple[int, str, str]] = deque(maxlen=1000)
        #: summaries of ended applications, until the driver takes them
        self.summaries: deque[ApplicationSummary] = deque(maxlen=1000)
        #: what was ignored and why: (ns, text), newest last
        self.notes: deque[tuple[int, str]] = deque(maxlen=1000)
        #: by rmID: whether a pod fits a node; returns ``None`` if it does, else the reason (I36)
        self.predicates: dict[str, Callable[[str, str, bool], str | None]] = {}
        #: the same as a read, for explanations, where the resource manager tells the two apart
        self.refusals: dict[str, Callable[[str, str, bool], str | None]] = {}
        #: by rmID: how many of these victims a pod needs evicted to fit a node (I37)
        self.preemption_predicates: dict[str, Callable[[str, str, list[str], int], int | None]] = {}
        #: the groups of a user whose request names none (I24)
        self.groups_of: Callable[[str], tuple[str, ...]] | None = None
        #: ``schedule`` reports asks that lack nodes, some in each call; otherwise a timer reports all
        self.hints_in_slices = False
        #: the driver's stopwatch; no decision depends on it
        self.measure: Measure | None = None

    def on_entering(self, lifecycle: Lifecycle, function: Callable[[Any], None]) -> None:
        """Call the function whenever an entity of the lifecycle has entered a state, before the effects
        of the transition and after the functions that were given earlier."""
        self.entered[lifecycle.name] = (*self.entered.get(lifecycle.name, ()), function)

    def note(self, text: str) -> None:
        """Keep a note of something unexpected that needs no answer, such as an unknown release."""
        self.notes.append((self.now, shortened(text)))

    def fire(
        self,
        lifecycle: Lifecycle[State, Trigger],
        entity: Entity[State],
        trigger: Trigger,
        **info: Any,
    ) -> None:
        """Apply a trigger and execute its effects. Raises ``InvalidTransition`` with the entity's
        story in its notes: that is a bug."""
        step = self._take(lifecycle, entity, trigger, info)
        if step is None:
            return
        self.journal.add(self.now, entity, step.edge, self.cause)
        if not step.quiet or lifecycle.name in self.entered:
            self._follow(lifecycle, entity, step, info)

    def fire_later(
        self, lifecycle: Lifecycle[State, Trigger], entity: Entity[State], trigger: Trigger
    ) -> None:
        """Fire after the present step (``settle``)."""
        self.queue.append((lifecycle, entity, trigger))

    def fire_all(
        self,
        lifecycle: Lifecycle[State, Trigger],
        entities: Iterable[Entity[State]],
        trigger: Trigger,
    ) -> list[Change]:
        """As ``fire`` at many entities of a kind, but for the journal: what it is to record of each is
        returned, for ``Journal.add_all``."""
        taken: list[Change] = []
        watched = lifecycle.name in self.entered
        for entity in entities:
            step = self._take(lifecycle, entity, trigger, _NOTHING)
            if step is None:
                taken.append(())
                continue
            taken.append((entity, step.edge))
            if watched or not step.quiet:
                self._follow(lifecycle, entity, step, _NOTHING)
        return taken

    def _take(self, lifecycle: Lifecycle, entity: Any, trigger: Any, info: Info) -> Step | None:
        """Change the state. ``None``: nothing has changed, and nothing follows."""
        if self.lifecycles is not None:
            lifecycle = self.lifecycles.get(lifecycle.name, lifecycle)
        source = entity.state
        try:
            step = lifecycle.take(entity, trigger, info)
        except InvalidTransition as bug:
            for record in self.journal.story_of(lifecycle.name, entity):
                bug.add_note(str(record))
            raise
        except Exception as error:
            # A callback or an observer that was added to the lifecycle. What the caller began must be finished,
            # so the scheduler's own table decides, and the error is kept (D303).
            entity.state = source
            step = LIFECYCLES.get(lifecycle.name, lifecycle).take_unobserved(entity, trigger, info)
            failed = f"{lifecycle.name} {entity.key}: {trigger} in {source}: {error!r}"
            self.note(
                f"what was added to a lifecycle failed, and its own table was followed: {failed}"
            )
        if step.entered:
            entity.entries += 1
        elif not step.effects:
            return None
        return step

    def settle(self) -> None:
        """Fire what was queued, first come first served, until nothing is left."""
        while self.queue:
            lifecycle, entity, trigger = self.queue.popleft()
            self.fire(lifecycle, entity, trigger)

    def _follow(self, lifecycle: Lifecycle, entity: Any, step: Step, info: Info) -> None:
        """Do what follows from a transition."""
        if step.entered:
            if step.target in lifecycle.timed:
                self._limit(lifecycle, entity, step.target)
            if lifecycle.name in self.entered:
                self.reason = info.get("reason") or ""
                for function in self.entered[lifecycle.name]:
                    function(entity)
        if step.effects:
            self._execute(lifecycle, entity, step.effects)

    def _execute(self, lifecycle: Lifecycle, entity: Any, effects: tuple[Effect, ...]) -> None:
        if len(effects) > 1 and _update_first(entity):
            effects = tuple(sorted(effects, key=lambda effect: not isinstance(effect, Update)))
        for effect in effects:
            if isinstance(effect, Fire):
                self.queue.append((lifecycle, entity, effect.trigger))
            else:
                self.effects[type(effect)](entity, effect)

    def _limit(self, lifecycle: Lifecycle, entity: Any, state: str) -> None:
        """Start the timer of a state with a time limit."""
        known = self._lasts.get((lifecycle.name, state))
        if known is None:
            lasts = self.options.lasts.get((lifecycle.name, state), lifecycle.timed[state].ns)
            name = f"{lifecycle.name}.{state}"
            known = self._lasts[lifecycle.name, state] = (name, lasts, _OWN_LIMITS.get(name))
        name, lasts, own_limit = known
        if own_limit is not None and (own := own_limit(entity)) is not None:
            lasts = own
        self.limit = self.timers.start(self.now, lasts, name, entity, entity.entries)


def _update_first(entity: Any) -> bool:
    """Whether the resource manager receives a state before its consequences (X8)."""
    partition = getattr(entity, "partition", None)
    return partition is not None and not partition.rm.design_order


#: time limits that an entity's resource manager may have set for itself (2.10), in ns
_OWN_LIMITS: Final[dict[str, _OwnLimit]] = {
    f"{RESOURCE_MANAGER.name}.{resource_manager_fsm.PAUSED}": lambda rm: rm.pause_timeout,
    f"{ALLOCATION.name}.{allocation_fsm.RELEASING}": lambda allocation: (
        allocation.ask.app.partition.rm.resend
    ),
}
