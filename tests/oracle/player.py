"""Plays the steps of a scenario on our core."""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.core.driver.service import SchedulerService
from tests.oracle.requests import NotUnderstood, Requests, termination
from tests.oracle.scenario import V15, V18, Answer, Callback
from tests.oracle.settings import Setting, with_properties
from tests.oracle.totals import our_totals

START = 946_684_800 * 10**9  # 2000-01-01

#: kinds of release that the resource manager confirms (R2)
_BY_CORE = (
    si.TerminationType.TIMEOUT,
    si.TerminationType.PREEMPTED_BY_SCHEDULER,
    si.TerminationType.PLACEHOLDER_REPLACED,
)

_MS = 10**6
#: longer than any scenario, in ns: what the Go core does not do by itself never comes
_NEVER = 10**18

#: how every scenario is played: names and order of messages as in the Go core, no watchdog
_EXTRA = {
    "si.stateNames": "yunikorn",
    "si.messageOrder": "k8shim",
    "release.resend": f"{_NEVER // 10**9}s",
}

#: there asks are created a few ns after the instant in which they come, and reserve when they are
#: older than two seconds: not at two seconds exactly
_A_LITTLE = 1

#: Go's side of every option in which the defaults differ
OPTIONS = Options(
    journal_size=None,
    inspect_interval=_NEVER,
    reservation_delay=2_000 * _MS + _A_LITTLE,
    reservation_give_up=_NEVER,
    bound_reservations=False,
    preempt_unguaranteed=False,
    gang_admission="whole",
    node_sort_policy="fair",
)


#: the steps that the README defines
OPERATIONS = frozenset(
    "register updateConfiguration updateNode updateApplication updateAllocation addNode nodeAction "
    "addApp removeApp ask releaseAlloc releaseAsk confirm schedule scheduleIdle multiStep advance "
    "sleep inspect cleanQueues cleanExpired timeouts predicates dump rest".split()
)


def cannot_be_told(done: Mapping[str, Any]) -> bool:
    """Whether this end of a step says that the interface of v1.8.0 has no words for it."""
    return "unknown field" in str(done.get("error", ""))


def _as_told_to_v18(step: dict[str, Any]) -> dict[str, Any]:
    """What v1.8.0 knows of a step: no repeats (X13), stateaware queues (X15), occupied resources (X19)."""
    told = {name: value for name, value in step.items() if name not in ("max", "occupied")}
    if isinstance(told.get("config"), str):
        told["config"] = told["config"].replace("stateaware", "fifo")
    return told


class _Callback(si.NullCallback):
    """The resource manager: writes down what it hears, and confirms when it is told to."""

    def __init__(self, player: Player) -> None:
        self.player = player

    def take(self, message: Message) -> None:
        """A message by whichever way it comes."""
        self.player.hear(message)
        if isinstance(message, si.AllocationResponse):
            by_core = (r for r in message.released if r.terminationType in _BY_CORE)
            self.player.outstanding.extend(by_core)

    update_allocation = update_application = update_node = take
    update_container_scheduling_state = take

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse:
        """The first try does it, on every node."""
        return si.PreemptionPredicatesResponse(success=True, index=args.startIndex)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        for event in events:
            self.player.hear(event)


class _Choosy(_Callback):
    """One that has an opinion on nodes; the core asks nobody else."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        for key, node_id in self.player.denied:
            if key in ("*", args.allocationKey) and node_id in ("*", args.nodeID):
                return "denied by the scenario"
        return None


class Player(Requests):
    """One scenario on a core of its own. Instants are ns since the scenario's start."""

    def __init__(
        self,
        steps: list[dict[str, Any]],
        settings: tuple[Setting, ...] = (),
        version: str = V15,
        options: Options = OPTIONS,
    ) -> None:
        super().__init__(by_key=version == V18)
        self._told = _as_told_to_v18 if version == V18 else dict[str, Any]
        self.now = 0
        #: releases by the core that have not been confirmed, oldest first
        self.outstanding: list[si.AllocationRelease] = []
        #: pairs of allocation key and node that predicates refuse
        self.denied: list[tuple[str, str]] = []
        self._settings = settings
        choosy = any(step.get("op") == "predicates" for step in steps)
        self._service = SchedulerService(options, manual=True, clock=lambda: START + self.now)
        self._service.step(START, limit=0)
        self._heard: list[Callback] = []
        self._callback = _Choosy(self) if choosy else _Callback(self)
        self._auto = self._auto_confirm = False
        self._ends: int | None = None

    @property
    def core(self) -> Scheduler:
        return self._service.scheduler

    def hear(self, message: Message) -> None:
        self._heard.append((self.now, type(message).__name__, MessageToDict(message)))

    def play(self, step: dict[str, Any], ends: int | None = None) -> Answer:
        self._heard = []
        self._ends = ends
        step = self._told(step)
        done: dict[str, Any] = {"op": step.get("op")}
        failures = self._service.failures
        try:
            self._perform(step, done)
        except si.RequestError as refused:
            done["error"] = str(refused)
        except NotUnderstood as problem:
            done["unknown"] = str(problem)
        except Exception:
            done["wrong"] = [traceback.format_exc()]
            return Answer(self._heard, done)
        wrong = self._service.read(lambda core: core.check())
        if self._service.failures > failures:
            wrong.append("a lifecycle refused a trigger of ours")
        if wrong:
            done["wrong"] = wrong
        return Answer(self._heard, done)

    def _perform(self, step: dict[str, Any], done: dict[str, Any]) -> None:
        name = str(step.get("op"))
        method: Callable[..., Any] | None = getattr(self, f"_{name}", None)
        if method is None or name not in OPERATIONS:
            raise NotUnderstood(f"no such operation: {name!r}")
        arguments = {key: value for key, value in step.items() if key != "op"}
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as problem:
            raise NotUnderstood(f"{name}: {problem}") from None
        done.update(method(**arguments) or {})
        self._follow_up()

    # -- the resource manager's requests -------------------------------------------------------------

    def _register(
        self,
        config: str = "",
        extraConfig: dict[str, str] | None = None,
        rmID: str = "rm:123",
        policyGroup: str = "",
        auto: bool = False,
        autoConfirm: bool = False,
    ) -> None:
        self._auto, self._auto_confirm = auto, autoConfirm
        self.rm_id = rmID
        self._service.register_resource_manager(
            si.RegisterResourceManagerRequest(
                rmID=rmID,
                config=with_properties(config, self._settings),
                extraConfig={**(extraConfig or {}), **_EXTRA},
                policyGroup=policyGroup,
            ),
            self._callback,
        )

    def _updateConfiguration(
        self, config: str = "", extraConfig: dict[str, str] | None = None, rmID: str = ""
    ) -> None:
        self._service.update_configuration(
            si.UpdateConfigurationRequest(
                rmID=rmID or self.rm_id,
                config=with_properties(config, self._settings),
                extraConfig=extraConfig or {},
            )
        )

    def _confirm(self, types: Sequence[str] = ()) -> dict[str, Any]:
        wanted = [termination(name) for name in types] or list(_BY_CORE)
        confirmed = [r for r in self.outstanding if r.terminationType in wanted]
        for release in confirmed:
            self.outstanding.remove(release)
            self._release(release)
        return {"confirmed": len(confirmed)}

    # -- what the core does --------------------------------------------------------------------------

    def _schedule(self, count: int = 1) -> dict[str, Any]:
        return {"allocated": sum(self._cycle() for _ in range(count))}

    def _scheduleIdle(self, count: int = 1000) -> dict[str, Any]:
        allocated = 0
        while allocated < count and self._cycle():
            allocated += 1
        return {"allocated": allocated}

    def _multiStep(self, count: int = 1) -> dict[str, Any]:
        allocated = 0
        for at in range(count):
            if at:
                self._pass(self.now + 100 * _MS)
            allocated += self._cycle()
        # whether time passes after the last one too, the reference knows
        self._pass(max(self.now, self._ends or self.now + 100 * _MS))
        return {"allocated": allocated}

    def _cycle(self) -> bool:
        """One round; whether it allocated or replaced something."""
        before = len(self._heard)
        self._service.step(START + self.now, limit=1)
        did_something = any(
            message.get("new")
            or any(
                release.get("terminationType") == "PLACEHOLDER_REPLACED"
                for release in message.get("released", ())
            )
            for _, kind, message in self._heard[before:]
            if kind == "AllocationResponse"
        )
        if self._auto_confirm:
            self._confirm()
        return did_something

    def _advance(self, ms: int = 0) -> None:
        self._pass(self.now + ms * _MS)

    _sleep = _advance

    def _pass(self, until: int) -> None:
        """Let time pass, timer by timer, so that everything is heard at its own instant."""
        while True:
            deadline = self.core.next_deadline()
            if deadline is None or deadline - START > until:
                break
            self.now = max(self.now, deadline - START)
            for _, message in self._service.read(lambda core: core.advance(START + self.now)):
                self._callback.take(message)
            self._follow_up()
        self.now = until
        self._service.step(START + self.now, limit=0)

    def _inspect(self) -> None:
        for _, message in self._service.read(lambda core: core.inspect(START + self.now)):
            self.hear(message)

    def _cleanQueues(self) -> None:
        self._service.read(lambda core: core.clean_queues(START + self.now))

    def _cleanExpired(self) -> None:
        """Ours are dropped the moment they expire."""

    def _timeouts(
        self,
        startingMs: int | None = None,
        completingMs: int | None = None,
        reservationMs: int | None = None,
        terminatedMs: int | None = None,
        placeholderMs: int | None = None,
    ) -> None:
        kernel = self.core._kernel
        options = kernel.options
        lasts = dict(options.lasts)
        for states, ms in (
            (("Starting",), startingMs),
            (("Waiting",), completingMs),
            (("Completed", "Killed", "Rejected"), terminatedMs),
        ):
            if ms is not None:
                lasts.update({("application", state): ms * _MS for state in states})
        kernel.options = dataclasses.replace(
            options,
            lasts=lasts,
            reservation_delay=(
                options.reservation_delay
                if reservationMs is None
                else reservationMs * _MS + _A_LITTLE
            ),
            placeholder_timeout=(
                options.placeholder_timeout if placeholderMs is None else placeholderMs * _MS
            ),
        )

    def _predicates(self, deny: Sequence[dict[str, str]] = ()) -> None:
        self.denied.extend((each.get("key", "*"), each.get("nodeID", "*")) for each in deny)

    # -- looking ---------------------------------------------------------------------------------------

    def _dump(self, what: Sequence[str] = ()) -> dict[str, Any]:
        return {"totals": self._service.read(our_totals)}

    def _rest(self, path: str = "", method: str = "GET", body: object = None) -> None:
        """Paths are not served here."""

    # -- a core that goes on by itself -------------------------------------------------------------------

    def _follow_up(self) -> None:
        """What a resource manager that confirms at once, and a core that schedules on its own, make of it."""
        while True:
            if self._auto_confirm and self.outstanding:
                self._confirm()
            elif not (self._auto and self._cycle()):
                return
