"""The running shim: one asyncio loop in a thread of its own, and the core behind `SchedulerAPI` (K1, K2).

Reflectors, the core and completed writes put inputs into one queue. The loop takes them from there, lets the
shim decide, and carries out its actions. Nothing in the loop waits for the core or for the API server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from quadriga.base.times import SECOND, whole_time
from quadriga.core.driver.clock import Standstill, SteadyClock
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.watchdog import Watchdog
from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.placeholders import SUFFIX_ALPHABET, SUFFIX_LENGTH
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.driver.auditing import Auditor
from quadriga.k8s.driver.config_maps import ConfigMaps
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.driver.core_sender import CoreSender
from quadriga.k8s.driver.core_state import CoreState
from quadriga.k8s.driver.explaining import Core, Explainer
from quadriga.k8s.driver.inbox import Inbox, described
from quadriga.k8s.driver.measured import Measured, measured_of
from quadriga.k8s.driver.volumes import Volumes
from quadriga.k8s.driver.watches import Watches
from quadriga.k8s.driver.writers import Writers
from quadriga.k8s.lifecycles import shim as shim_fsm
from quadriga.k8s.objects import Pod, PodCondition
from quadriga.k8s.shim.inputs import (
    Changed,
    CoreForgot,
    CoreRefused,
    Input,
    LeaseHeld,
    LeaseLost,
    VolumesChanged,
)
from quadriga.k8s.shim.shim import Shim
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.discovery import DeviceClasses
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Login
from quadriga.k8s.transport.reflector import RealTiming, Reflector, Watching
from quadriga.k8s.tuning import TUNING
from quadriga.k8s.writers.condition_writer import ConditionWriter, Explain, GroupConditionWriter
from quadriga.k8s.writers.event_writer import EventWriter
from quadriga.k8s.writers.lease import Guarded, Lease, LeaseTimes
from quadriga.k8s.writers.writes import PodWrites
from quadriga.si import SchedulerAPI

_log = logging.getLogger("quadriga.kubernetes")


@dataclass(frozen=True, slots=True)
class Options:
    """Options that are not in the ConfigMaps."""

    #: namespace of the scheduler, with its ConfigMaps and its lease
    namespace: str = "default"
    #: identity of this process, unique in the cluster
    identity: str = "quadriga"
    #: describes this program to the core, for display
    build: Mapping[str, str] = field(default_factory=dict)
    #: ``None``: use the settings
    leader_election: bool | None = None
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    watching: type[Watching] | Watching = Watching
    #: send asks in the form of SI 1.6, as allocations without a node (K8)
    unified_asks: bool = False
    #: seconds between two audits (K176); ``None``: use the settings
    audit_every: float | None = None
    #: if an input waits, or is handled, for more than this many seconds the shim is not ready
    health_delay: float = 5.0
    #: disable the garbage collector while the cluster is listed (K190)
    tune_gc: bool = True


class _Stopped(Exception):
    """The process ends with this code and for this reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


class KubernetesShim:
    """Schedules the pods of a cluster with the core behind ``scheduler``.

    Call `start`, then `wait` or `stop`. ``core`` explains why pods wait (K156). ``observe(method, path,
    status)`` is called for every response of the API server.
    """

    def __init__(
        self,
        scheduler: SchedulerAPI,
        login: Login,
        options: Options | None = None,
        *,
        core: Core | None = None,
        observe: Callable[[str, str, int], None] | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._login = login
        self.options = options or Options()
        self._core = core
        self._observe = observe
        self._timing = RealTiming()
        self._thread = threading.Thread(target=self._run, name="quadriga-kubernetes", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._ended = threading.Event()
        self._begun = threading.Event()
        self._outcome = _Stopped(0, "it was stopped")
        self._turned_at = self._timing.now()
        self._watchdog = Watchdog(self._timing.now, described)
        self._leads = False
        self._lease: Lease | None = None
        self._cache = ClusterCache(time.monotonic_ns)
        self._inbox: Inbox | None = None
        self._shim: Shim | None = None
        self._writers: Writers | None = None
        self._volumes: Volumes | None = None
        self._watches: Watches | None = None
        self.settings = Settings()

    # -- for other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the shim; return at once."""
        self._turned_at = self._timing.now()
        self._thread.start()
        self._begun.wait()

    def stop(self) -> None:
        """Stop the shim and wait for its end. Completed writes stay; nothing else is lost (K12)."""
        loop, main = self._loop, self._main
        if loop is not None and main is not None:
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(main.cancel)
        if self._thread.ident is not None:
            self._thread.join()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code when it has ended, ``None`` if it has not within ``timeout`` seconds."""
        return self._outcome.code if self._ended.wait(timeout) else None

    @property
    def reason(self) -> str:
        """The reason why it has ended."""
        return self._outcome.reason

    def core_forgot(self) -> None:
        """Note that a remote core was restarted (K151). Thread-safe."""
        self._put_from_thread(CoreForgot())

    def core_refused(self, request: str, reason: str) -> None:
        """Note that a remote core has refused a whole request. Thread-safe."""
        self._put_from_thread(CoreRefused(request, reason))

    def health(self) -> Health:
        """Return the health (K16). Thread-safe."""
        shim, inbox = self._shim, self._inbox
        longest = int(self.options.health_delay * SECOND)
        unsynced = tuple(each.key for each in self._reflectors() if not each.synced)
        if shim is None:
            unsynced = ("settings",)
        return health_of(
            now=self._timing.now(),
            turned_at=self._turned_at,
            leads=self._leads,
            unsynced=unsynced,
            serves=shim is not None and shim.state in shim_fsm.SERVES,
            stopped=self._outcome.reason if self._ended.is_set() else "",
            rival=self._lease.rival if self._lease is not None else "",
            stuck=self._watchdog.stuck(longest),
            delay=inbox.delay() if inbox is not None else 0,
            longest=longest,
        )

    def measured(self) -> list[Measured]:
        """Return the metrics (K16). Thread-safe."""
        shim = self._shim
        audit = shim.audit if shim is not None else None
        return measured_of(
            self._inbox, self._writers, self._reflectors(), self._leads, audit, self._watchdog
        )

    def state_dump(self) -> str:
        """Return all of the shim's state as JSON, without secrets (K17). Call it from any thread but the
        loop's."""
        loop = self._loop
        if loop is None or self._ended.is_set():
            return json.dumps({"stopped": self._outcome.reason})

        async def dump() -> str:
            return json.dumps(self._dump(), default=str)

        future = asyncio.run_coroutine_threadsafe(dump(), loop)
        return future.result(TUNING.dump_timeout_s)

    # -- the loop --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except _Stopped as stopped:
            self._outcome = stopped
            log = _log.info if stopped.code == 0 else _log.error
            log("the shim ends: %s", stopped.reason)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            _log.exception("the shim ends by an error")
            self._outcome = _Stopped(1, f"an internal error: {error!r}")
        finally:
            self._begun.set()
            self._ended.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._inbox = Inbox(clock=self._timing.now)
        self._begun.set()
        # Use the defaults until the settings are read (K13).
        settings = Settings()
        limits = Limits(settings.qps, settings.burst, settings.inflight, clock=self._timing.now)
        async with Client(self._login, limits, observe=self._observe) as client:
            maps = ConfigMaps(self.options.namespace, self._put)
            self.settings = await self._read_settings(maps, client)
        settings = self.settings
        limits = Limits(settings.qps, settings.burst, settings.inflight, clock=self._timing.now)
        async with Client(self._login, limits, observe=self._observe) as client:
            await self._work(client, limits, maps)

    async def _read_settings(self, maps: ConfigMaps, client: Client) -> Settings:
        try:
            reading = await maps.read(client, self._timing)
        except PermissionError as error:
            raise _Stopped(1, str(error)) from None
        for warning in reading.warnings:
            _log.warning("settings: %s", warning)
        if reading.settings is None:
            raise _Stopped(1, f"the settings are wrong: {'; '.join(reading.errors)}")
        return reading.settings

    async def _work(self, client: Client, limits: Limits, maps: ConfigMaps) -> None:
        inbox = self._inbox
        assert inbox is not None
        settings = self.settings
        callback = CoreCallback(self._cache, inbox.put_from_thread, self.state_dump)
        sender = CoreSender(
            self._scheduler, callback, inbox.put_from_thread, unify=self.options.unified_asks
        )
        clock = self._timing.now
        scheduler_name = settings.scheduler_names[0]
        events = EventWriter(
            client,
            controller=scheduler_name,
            instance=self.options.identity,
            clock=clock,
            wall=time.time_ns,
            busy=lambda: limits.pods_wait,
            per_second=settings.events_per_second,
        )
        conditions = ConditionWriter(
            client,
            current=self._condition_of,
            clock=clock,
            wall=time.time_ns,
            explain=self._new_explainer(settings, client),
            record=events.record,
            per_second=settings.conditions_per_second,
            interval=settings.condition_interval,
        )
        volumes = self._volumes = Volumes(
            *(client, self._cache, settings, self._timing),
            *(self._look_again, self._volumes_changed, self.options.watching),
        )
        pods = PodWrites(
            Guarded(client.on("pods"), self._may_write),
            self._put,
            scheduler=scheduler_name,
            bind_timeout=settings.bind_timeout,
            clock=clock,
            stamp=lambda: whole_time(time.time_ns()),
            before_bind=conditions.settled,
            behind=Guarded(client.on("placeholders"), self._may_write),
            members=Guarded(client.on("members"), self._may_write),
            bind_volumes=lambda pod, node: volumes.bind(self._cache.pod(pod.uid), node),
        )
        self._shim = self._new_shim(settings, volumes)
        groups = GroupConditionWriter(
            client, clock=clock, wall=time.time_ns, per_second=settings.conditions_per_second
        )
        self._writers = Writers(sender, pods, conditions, groups, events, _stop)
        watches = Watches(
            *(client, inbox, settings, self._timing),
            watching=self.options.watching,
            tune_gc=self.options.tune_gc,
        )
        await watches.prepare(self.options.namespace, maps, volumes)
        self._watches = watches
        sender.start()
        watches.begin_listing()
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in watches.reflectors:
                    tasks.create_task(each.run())
                tasks.create_task(watches.announce_synced(volumes))
                tasks.create_task(volumes.run())
                tasks.create_task(conditions.run())
                tasks.create_task(groups.run())
                tasks.create_task(watches.look_for_groups(tasks))
                tasks.create_task(events.run())
                tasks.create_task(self._lead(client))
                tasks.create_task(self._new_auditor(self._shim, watches).run())
                tasks.create_task(self._decide(inbox, self._shim, self._writers))
        except* _Stopped as stopped:
            raise _first(stopped) from None
        finally:
            watches.end_listing()
            await pods.close()
            # Its thread may be in a call of the core, which will end.
            await asyncio.to_thread(sender.stop)

    def _new_shim(self, settings: Settings, volumes: Volumes) -> Shim:
        return Shim(
            settings,
            self._cache,
            suffix=_suffix,
            blocked_reason=volumes.blocked_reason,
            build=self.options.build,
            namespace=self.options.namespace,
        )

    def _new_auditor(self, shim: Shim, watches: Watches) -> Auditor:
        service = self._scheduler
        return Auditor(
            CoreState(service, self.settings.cluster_id)
            if isinstance(service, SchedulerService)
            else None,
            self._cache,
            pods=watches.pods,
            applications=shim.application_ids,
            serves=lambda: shim.serving,
            put=self._put,
            sleep=self._timing.sleep,
            every=self.options.audit_every or self.settings.audit_interval / SECOND,
        )

    def _look_again(self, pod: Pod) -> None:
        self._put(Changed("MODIFIED", pod))

    def _volumes_changed(self) -> None:
        self._put(VolumesChanged())

    async def _decide(self, inbox: Inbox, shim: Shim, writers: Writers) -> None:
        now, carry_out, clock = self._timing.now, writers.carry_out, SteadyClock()
        standstill = Standstill(shim.describe_next_timer)
        watchdog, pause = self._watchdog, 0.0
        while True:
            watchdog.idle()
            deadline = shim.next_deadline()
            wait = TUNING.loop_turn_s
            if deadline is not None:
                wait = min(max((deadline - clock()) / SECOND, pause), TUNING.loop_turn_s)
            await inbox.wait(wait)
            self._turned_at = now()
            wall = clock()
            inputs = inbox.take(TUNING.inputs_batch)
            for each in inputs:
                watchdog.at(each)
                if isinstance(each, Changed) and isinstance(each.object, Pod):
                    for _ in self._cache.preparing(each.object):
                        watchdog.idle()
                        await asyncio.sleep(0)
                        watchdog.at(each)
                carry_out(shim.handle(each, wall))
            watchdog.at("timers")
            actions = shim.advance(wall)
            carry_out(actions)
            messages = shim.flush()
            carry_out(messages)
            deadline = shim.next_deadline()
            changed = bool(inputs or actions or messages) or deadline is None or deadline > wall
            pause = standstill.pause(changed=changed)
            watchdog.idle()
            # However many inputs wait, writes and watches have their turns.
            await asyncio.sleep(0)

    async def _lead(self, client: Client) -> None:
        elects = self.options.leader_election
        if elects is None:
            elects = self.settings.leader_election
        if not elects:
            self._leads = True
            self._put(LeaseHeld())
            return
        lease = self._lease = Lease(
            client.on("urgent"),
            namespace=self.options.namespace,
            identity=self.options.identity,
            random=self._timing.random,
            wall=time.time_ns,
            times=self.options.lease_times,
        )
        try:
            await lease.acquire()
            self._leads = True
            self._put(LeaseHeld())
            reason = await lease.keep()
            self._leads = False
            self._put(LeaseLost(reason))
            raise _Stopped(1, reason)
        except asyncio.CancelledError:
            await lease.release()
            raise

    # -- small parts -----------------------------------------------------------------------------

    def _reflectors(self) -> list[Reflector[Any]]:
        return list(self._watches.reflectors) if self._watches is not None else []

    def _may_write(self) -> bool:
        return self._lease is None or self._lease.held

    def _put(self, input: Input) -> None:
        assert self._inbox is not None
        self._inbox.put(input)

    def _put_from_thread(self, input: Input) -> None:
        if self._inbox is not None:
            self._inbox.put_from_thread(input)

    def _condition_of(self, uid: str) -> PodCondition | None:
        pod = self._cache.pod(uid)
        if pod is None:
            return None
        return next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)

    def _new_explainer(self, settings: Settings, client: Client) -> Explain | None:
        if self._core is None:
            return None
        explainer = Explainer(
            self._core,
            rm_id=settings.cluster_id,
            ask_of=lambda uid: self._shim.ask_of(uid) if self._shim else None,
            nodes=self._cache.node_names,
            refusals=self._cache.refusals,
            unoffered=lambda uid: self._shim.unoffered(uid) if self._shim else (),
            device_class=DeviceClasses(client, self._timing.now).serving,
        )
        return lambda pod: explainer.explain(pod.uid)

    def _dump(self) -> dict[str, Any]:
        inbox, shim, writers, watches = self._inbox, self._shim, self._writers, self._watches
        return {
            "waitingEvents": len(inbox) if inbox is not None else 0,
            "leads": self._leads,
            "reflectors": watches.dump() if watches is not None else [],
            "writes": dict(writers.pods.counts) if writers is not None else {},
            "waitingWrites": writers.pods.waiting if writers is not None else 0,
            "cache": self._cache.dump(),
            "shim": shim.dump() if shim is not None else {},
        }


def _suffix() -> str:
    """Return the random end of a placeholder's name (K69)."""
    return "".join(random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))


def _stop(code: int, reason: str) -> None:
    raise _Stopped(code, reason)


def _first(group: BaseExceptionGroup[_Stopped]) -> _Stopped:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, _Stopped)
    return found


# -- the health, for probes (K16). See D274. -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Health:
    """The health. ``alive``: the loop turns. ``ready``: it holds the lease, its caches are synced and the core
    knows the cluster. ``reasons`` say what is missing. ``leader``: the other process that leads, if this one is
    a standby that lacks nothing but the lease."""

    alive: bool
    ready: bool
    reasons: tuple[str, ...] = ()
    leader: str = ""


def health_of(
    *,
    now: int,
    turned_at: int,
    leads: bool,
    unsynced: tuple[str, ...],
    serves: bool,
    stopped: str,
    rival: str = "",
    stuck: str = "",
    delay: int = 0,
    longest: int = TUNING.loop_stuck_ns,
) -> Health:
    """Return the health for these facts. Times are in ns; ``stopped`` is the reason why the shim has ended, ""
    if it has not; ``rival`` holds the lease as this process has read it. ``stuck`` names what the loop has been
    doing for more than ``longest``, and ``delay`` is how long its oldest input waits."""
    reasons = []
    alive = now - turned_at <= TUNING.loop_stuck_ns
    if stopped:
        alive = False
        reasons.append(f"it has stopped: {stopped}")
    elif not alive:
        reasons.append(f"its loop has not turned for {(now - turned_at) // SECOND} s")
    if stuck:
        reasons.append(stuck)
    late = delay > longest
    if late:
        reasons.append(f"a change or an answer has waited for {delay / SECOND:.1f} s")
    if not leads:
        reasons.append(f"{rival or 'another process'} leads")
    if unsynced:
        reasons.append(f"not listed yet: {', '.join(unsynced)}")
    if leads and not unsynced and not serves:
        reasons.append("the core is being told what runs")
    stands_by = alive and not (leads or unsynced or stuck or late)
    return Health(alive, not reasons, tuple(reasons), rival if stands_by else "")
