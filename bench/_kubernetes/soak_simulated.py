"""A soak in simulated time: random work on an API server in memory, with the real shim and the real core.

Requests and connections are not in it: those are for ``soak_real``.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from bench._kubernetes.processes import memory
from bench._kubernetes.soaked import Sample, Soaked
from quadriga.base.times import SECOND
from quadriga.core.runtime.kernel import Options
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.actions import Action
from quadriga.k8s.shim.inputs import BindEnded, ConfigurationChanged, CreateEnded
from tests.k8s.k8s_world import OURS, World, gang, vcore_of

_NODES = 12
_CPU = 16
#: pods that have ended stay as long (s), as those of a Job do
_KEPT = 120
#: share of the writes that take up to half a minute
_SLOW = 0.05
#: at most this share of them is answered with 404 though the pod is there, which no API server does: a node that such a
#: pod is on may be overbooked until the next audit
_LIES = 0.01
#: what happens, and how often in a minute on average
_RATES = {
    "job": 1.0, "gang": 0.6, "foreign": 0.6, "delete": 1.0, "delete placeholder": 0.2, "cordon": 0.2, "uncordon": 0.3,
    "lose": 0.1, "back": 0.2, "configure": 0.1, "resize": 0.3, "steal": 0.1,
}  # fmt: skip
#: The journal and the ring of events would fill for a day, and a leak would not be seen.
_OPTIONS = Options(journal_size=2_000)
_SETTINGS = {"event.ringBufferCapacity": "1000"}
_POLICIES = (
    "",
    "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Soft",
    "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard",
)
_QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
            resources:
              max: {vcore: %d000m}
"""


@dataclass
class _World(World):
    """Its API server may lose a delete, and take its time for a write, and for those to the same pod after it."""

    def __post_init__(self) -> None:
        self.loses: Callable[[], bool] = lambda: False
        self.is_slow: Callable[[], bool] = lambda: False
        self.held: list[Action] = []
        super().__post_init__()

    def _effect(self, action: Action) -> None:
        if isinstance(action, _WRITES):
            pod = _pod_of(action)
            if any(_pod_of(each) == pod for each in self.held) or self.is_slow():
                self.held.append(action)
                return
        elif isinstance(action, actions.CancelBind):
            bind = [
                each
                for each in self.held
                if isinstance(each, actions.Bind) and each.pod.uid == action.uid
            ]
            self.held = [each for each in self.held if each not in bind]
        elif isinstance(action, actions.CancelCreate):
            self.held = [each for each in self.held if _pod_of(each) != action.name]
        self._write(action)

    def _write(self, action: Action) -> None:
        if not (isinstance(action, actions.Delete) and self.loses()):
            super()._effect(action)

    def answer_held(self) -> None:
        """The API server has done what it was slow with."""
        held, self.held = self.held, []
        for action in held:
            self._write(action)


_WRITES = (actions.Bind, actions.Create, actions.Delete, actions.FailPod, actions.Annotate)


def _pod_of(action: Action) -> str:
    if isinstance(action, actions.Create):
        return str(action.manifest["metadata"]["name"])
    assert isinstance(action, (actions.Bind, actions.Delete, actions.FailPod, actions.Annotate))
    return action.pod.uid


class Soak:
    """``minute`` lets one pass; ``rest`` until all has ended."""

    def __init__(self, seed: int, faults: float) -> None:
        self.choose = random.Random(seed)
        self.share = faults
        self.world = _World(queues=_QUEUES % 1000, values=_SETTINGS, options=_OPTIONS)
        self.world.fault = self._fault
        self.world.loses = self._loses
        self.world.is_slow = lambda: self.share > 0 and self.choose.random() < _SLOW
        self.made: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.writes = 0
        self.differences: list[str] = []
        self.samples: list[Sample] = []
        #: when each ended pod is cleared away (ns)
        self._cleared: dict[str, int] = {}
        self._count = 0
        self.minutes = 0
        for n in range(_NODES):
            self.world.add_node(f"n{n}", cpu=str(_CPU))
        self.world.run(1)

    def close(self) -> None:
        self.world.core.stop()

    # -- what goes wrong -------------------------------------------------------------------------

    def _is_faulty(self, most: float = 1) -> bool:
        self.writes += 1
        return self.choose.random() < min(self.share, most)

    def _loses(self) -> bool:
        if not self._is_faulty(_LIES):
            return False
        self.faults["delete: 404 though it is there"] += 1
        return True

    def _fault(self, action: Action) -> BindEnded | CreateEnded | None:
        if not self._is_faulty():
            return None
        world, choose = self.world, self.choose
        if isinstance(action, actions.Create):
            name = action.manifest["metadata"]["name"]
            outcome: Any = choose.choice(["name_taken", "refused"])
            self.faults[f"create: {outcome}"] += 1
            return CreateEnded(action.application_id, action.group, name, outcome, "quota")
        assert isinstance(action, actions.Bind)
        uid, pod = action.pod.uid, world.pods.get(action.pod.uid)
        if pod is None or pod.spec.node_name or pod.terminating:
            return None
        kind = choose.choice(["failed", "lost", "gone", "elsewhere"])
        if kind == "gone" and choose.random() > _LIES / self.share:
            kind = "failed"
        other = self._room_for(pod) if kind == "elsewhere" else None
        if kind == "gone":
            self.faults["bind: 404 though it is there"] += 1
            return BindEnded(uid, "gone")
        if kind == "lost" and action.node in world.nodes:
            self.faults["bind: the reply is lost"] += 1
            world.place(uid, action.node)
        elif other is not None:
            self.faults["bind: somebody else was faster"] += 1
            world.place(uid, other)
            return BindEnded(uid, "elsewhere", other)
        else:
            self.faults["bind: 500 to every try"] += 1
        return BindEnded(uid, "failed", reason="the API server answered 500")

    def _room_for(self, pod: Pod) -> str | None:
        """A node that another scheduler may choose: one with room for the pod in any case."""
        least = vcore_of(pod) + 2000
        cluster = self.world.free()

        def free(scheduler: Any) -> list[str]:
            (partition,) = scheduler.partitions()
            at = partition.registry.index.get("vcore")
            return [
                name
                for name, node in partition.nodes.items()
                if at is not None and node.available[at] >= least and cluster.get(name, 0) >= least
            ]

        found: list[str] = self.world.core.read(free)
        return self.choose.choice(sorted(found)) if found else None

    # -- what happens ----------------------------------------------------------------------------

    def minute(self) -> None:
        """Random work, a minute, an audit."""
        for operation, rate in _RATES.items():
            for _ in range(self._times(rate)):
                self._step(operation)
                self.world.run(self.choose.random() * 3)
                if self.choose.random() < 0.5:
                    self.world.answer_held()
        self.minutes += 1
        self.pass_time(60)

    def _times(self, rate: float) -> int:
        whole = int(rate)
        return whole + (self.choose.random() < rate - whole)

    def pass_time(self, seconds: float) -> None:
        """Without new work. What is wrong raises AssertionError."""
        world = self.world
        world.run(seconds / 2)
        world.answer_held()
        world.run(seconds / 2)
        self._clear()
        report = world.audit()
        self.differences += [each for each in world.log_warnings if each.startswith("audit: ")]
        for each in report.standing:
            assert each.kind == "watched", f"minute {self.minutes}: {each}"
        self._check_nodes()
        assert not world.stopped, world.stopped
        for kept in (world.log, world.log_warnings, world.records, world.sent, world.deletes):
            kept.clear()

    def _check_nodes(self) -> None:
        world = self.world
        for name, free in world.free().items():
            assert free >= 0, f"minute {self.minutes}: {name} is too full"
        for uid, nodes in world.bound.items():
            assert len(nodes) == 1, f"{uid} was bound to {nodes}"

    def _clear(self) -> None:
        """Pods that ended a while ago are deleted, and the books of the test with them."""
        world = self.world
        for uid, pod in list(world.pods.items()):
            if pod.ended:
                until = self._cleared.setdefault(uid, world.now + _KEPT * SECOND)
                if world.now >= until:
                    world.delete_pod(uid)
        books: tuple[dict[str, Any], ...] = (
            world.durations, world.conditions, world.bound, self._cleared, world.ends,
        )  # fmt: skip
        for each in books:
            for uid in [uid for uid in each if uid not in world.pods]:
                del each[uid]

    def _step(self, operation: str) -> None:
        world, choose = self.world, self.choose
        self._count += 1
        name = f"{operation.replace(' ', '-')}-{self._count}"
        live = sorted(uid for uid, pod in world.pods.items() if not pod.ended)
        if operation == "job":
            app = name if choose.random() < 0.7 else f"steady-{choose.randrange(3)}"
            cpu, lasts = choose.choice(["250m", "1", "2", "4"]), choose.choice([10, 60, 300, 900])
            for n in range(choose.randrange(1, 13)):
                world.add_pod(f"{name}-{n}", app, cpu, duration=lasts * (0.5 + choose.random()))
                self.made["pods of jobs"] += 1
        elif operation == "gang":
            members, cpu = choose.choice([2, 4, 8, 16]), choose.choice(["1", "2", "8"])
            policy = choose.choice(_POLICIES)
            for n in range(members):
                groups = [gang("w", members, cpu)] if n == 0 else ()
                world.add_pod(
                    f"{name}-{n}", name, cpu, group="w", groups=groups,
                    policy=policy if n == 0 else "", duration=choose.choice([5, 60, 200]),
                )  # fmt: skip
                self.made["pods of gangs"] += 1
        elif operation == "foreign":
            pod = world.add_pod(name, scheduler="other", duration=choose.choice([30, 600]))
            node = self._room_for(pod)
            if node is not None:
                world.place(pod.uid, node)
                self.made["pods of others"] += 1
            else:
                world.delete_pod(pod.uid)
        elif operation == "delete" and live:
            world.delete_pod(choose.choice(live))
            self.made["deleted"] += 1
        elif operation == "delete placeholder" and world.placeholders:
            world.delete_pod(choose.choice(world.placeholders).uid)
            self.made["deleted placeholders"] += 1
        elif operation in ("cordon", "uncordon"):
            world.cordon(choose.choice(sorted(world.nodes)), operation == "cordon")
            self.made[f"{operation}s"] += 1
        elif operation == "lose" and len(world.nodes) > _NODES // 2:
            world.remove_node(choose.choice(sorted(world.nodes)))
            self.made["lost nodes"] += 1
        elif operation == "back":
            self._back()
        elif operation == "configure":
            text = choose.choice(
                [_QUEUES % 20, _QUEUES % 100, _QUEUES % 1000, "partitions: [wrong"]
            )
            world.inputs.append(ConfigurationChanged({**_SETTINGS, "queues.yaml": text}))
            self.made["changed queues"] += 1
        elif operation == "resize" and live:
            self._resize(world.pods[choose.choice(live)])
        elif operation == "steal":
            self._steal(live)

    def _back(self) -> None:
        for n in range(_NODES):
            if f"n{n}" not in self.world.nodes:
                self.world.add_node(f"n{n}", cpu=str(_CPU))
                return

    def _resize(self, pod: Pod) -> None:
        (container,) = pod.spec.containers
        assert container.resources is not None
        if pod.spec.scheduler_name != OURS or pod.metadata.name.startswith("tg-"):
            return
        smaller = replace(
            container, resources=replace(container.resources, requests={"cpu": "200m"})
        )
        self.world.set_pod(replace(pod, spec=replace(pod.spec, containers=(smaller,))))
        self.made["resized"] += 1

    def _steal(self, live: list[str]) -> None:
        """Another scheduler places a pod of ours that waits."""
        world = self.world
        waiting = [
            uid
            for uid in live
            if not world.pods[uid].spec.node_name and world.cache.assumed(uid) is None
        ]
        if waiting:
            uid = self.choose.choice(waiting)
            node = self._room_for(world.pods[uid])
            if node is not None:
                world.place(uid, node)
                self.made["placed by others"] += 1

    # -- the end ---------------------------------------------------------------------------------

    def rest(self, hours: float = 24) -> None:
        """No faults, no work, and room for all, until nothing is left."""
        world = self.world
        self.share = 0.0
        world.inputs.append(ConfigurationChanged({**_SETTINGS, "queues.yaml": _QUEUES % 1000}))
        for _ in range(_NODES):
            self._back()
        for name in sorted(world.nodes):
            world.cordon(name, unschedulable=False)
        for _ in range(int(hours * 12)):
            self.pass_time(300)
            if not world.pods and not world.shim.dump()["applications"]:
                break
        self.pass_time(60)
        self.pass_time(60)

    def sample(self) -> Sample:
        gc.collect()
        report = self.world.shim.audit.report
        live = sum(1 for pod in self.world.pods.values() if not pod.ended)
        found = Sample(
            self.minutes,
            memory(os.getpid()),
            live,
            report.number if report is not None else 0,
            len(report.standing) if report is not None else 0,
            dict(self.world.shim.audit.stood),
        )
        self.samples.append(found)
        return found

    def left(self) -> dict[str, int]:
        """What the shim and the core have kept, by where."""
        world = self.world
        cache: Any = world.cache
        found: dict[str, int] = {"pods": len(world.pods)}
        parts: dict[str, Any] = {
            "shim": world.shim._kernel,
            "outbox": world.shim._kernel.outbox,
            "timers": world.shim._kernel.timers,
            "cache": cache,
            "signatures": cache._signatures,
            "selections": cache._selections,
            "ports": cache._ports,
            "refused": cache._refused,
            "volumes": cache._volumes,
        }
        (partition,) = world.core.scheduler.partitions()
        parts |= {
            "core": partition,
            "waiting": partition.waiting,
            "retries": partition.waiting.retries,
        }
        for name, part in parts.items():
            for attribute, value in _attributes(part):
                if (
                    isinstance(value, Sized)
                    and not isinstance(value, (str, bytes, tuple))
                    and len(value)
                ):
                    found[f"{name}.{attribute.strip('_')}"] = len(value)
        return found


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    names = list(getattr(thing, "__dict__", ()))
    for each in type(thing).__mro__:
        slots = each.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    for name in names:
        if hasattr(thing, name):
            yield name, getattr(thing, name)


def soak(hours: float, seed: int, faults: float, tell: Callable[[str], object]) -> Soaked:
    """Work for so many hours, then rest until all has ended."""
    run = Soak(seed, faults)
    try:
        before = run.left()
        while run.minutes < hours * 60:
            run.minute()
            if run.minutes % 60 == 0:
                tell(str(run.sample()))
        run.rest()
        tell(str(run.sample()))
        left = {name: size for name, size in run.left().items() if size > before.get(name, 0)}
        run.made["writes"] = run.writes
        return Soaked(run.samples, dict(run.made), dict(run.faults), left, run.differences)
    finally:
        run.close()
