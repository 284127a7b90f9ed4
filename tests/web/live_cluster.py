"""A scheduler at work, in the service's thread: something of everything, and more every moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from quadriga.core.driver.service import SchedulerService
from quadriga.core.scheduler import Scheduler
from quadriga.core.views import Views
from quadriga.si import Allocation, AllocationRequest, NodeInfo, TerminationType
from quadriga.si.constants import FOREIGN_DEFAULT, HOST_NAME, INSTANCE_TYPE, RACK_NAME, TAG_FOREIGN
from quadriga.sim.scripted.script import Script, resource

#: an application's id that has to be escaped in a path
ODD = "odd/app id#1?ä%41"

CONFIG = """\
partitions:
  - name: default
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2.5, memory: 1}}
    placementrules:
      - {name: provided, create: true}
      - {name: fixed, value: root.dev, filter: {type: allow, users: [ann, bob], groups: [staff]}}
    queues:
      - name: root
        submitacl: '*'
        limits:
          - limit: everybody
            users: ['*']
            maxapplications: 50
            maxresources: {memory: 1000000, vcore: 500}
        queues:
          - name: prod
            parent: true
            resources: {guaranteed: {memory: 1000, vcore: 2}, max: {memory: 100000, vcore: 100}}
            properties: {priority.offset: "5", preemption.policy: fence}
            childtemplate:
              maxapplications: 3
              properties: {application.sort.policy: fair}
              resources: {guaranteed: {vcore: 1}, max: {vcore: 20}}
            limits: [{limit: staff, groups: [staff], maxapplications: 9, maxresources: {vcore: 60}}]
            queues:
              - {name: gangs, properties: {application.sort.policy: fifo}}
              - name: idle
          - {name: dev, resources: {max: {vcore: 40}}}
          - name: tight
            limits: [{limit: cat may have little, users: [cat], maxresources: {vcore: 1}}]
          - name: odd:queue
"""


class LiveCluster:
    """A service, its views, and a thread that keeps it busy if it is to be."""

    def __init__(self, *, busy: bool = True) -> None:
        self.now = 1_700_000_000 * 10**9
        self.service = SchedulerService(clock=lambda: self.now)
        self.views = Views(self.service.scheduler, start_time=self.now)
        self.script = self.step(self._build)
        self._round = 0
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._work, name="busy") if busy else None
        if self._thread is not None:
            self._thread.start()

    def __enter__(self) -> LiveCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._halt.set()
        if self._thread is not None:
            self._thread.join()
        self.service.stop()

    def step(self, what: Callable[[Scheduler], Script]) -> Script:
        found: Script = self.service.read(what)
        return found

    def _build(self, scheduler: Scheduler) -> Script:
        scheduler.advance(self.now)
        how = {"check": False, "version": "1.5.2", "extra": {"health.checkInterval": "1h"}}
        script = Script(CONFIG, scheduler=scheduler, **how)
        script.now = self.now
        _nodes(script)
        _gangs(script)
        _ends(script)
        _waits(script)
        script.app("busy", "root.dev", user="bob", groups=("staff",))
        script.ask("busy", "first", vcore=200, memory=10)
        script.schedule()
        self.now = script.now
        self.views.sample()
        self.views.check_health()
        return script

    def _work(self) -> None:
        while not self._halt.wait(0.001):
            self.step(self._churn)

    def _churn(self, scheduler: Scheduler) -> Script:
        """An ask comes, an allocation goes, now and then an application comes and goes."""
        script = self.script
        self._round += 1
        number = self._round
        script.now = self.now = self.now + 10_000_000
        script.advance(0)
        size = {"vcore": 100 + number % 7, "memory": 5}
        script.ask("busy", f"pod-{number}", tags={"n": str(number)}, **size)
        if number % 10 == 0:
            script.app(f"short-{number}", "root.prod.idle", user="ann", groups=("staff",))
            script.ask(f"short-{number}", "x", vcore=10)
        script.schedule()
        held = list(scheduler.application("busy").allocations)
        for uuid in held[: max(0, len(held) - 20)]:
            script.release("busy", uuid)
        if number % 10 == 5 and number > 10:
            script.remove_app(f"short-{number - 5}")
        script.confirm(TerminationType.TIMEOUT)  # and not the replacement that is under way
        script.schedule()
        script.messages.clear()
        script.log.clear()
        script.events.clear()
        return script


def _nodes(script: Script) -> None:
    for number in range(6):
        named = {HOST_NAME: f"host-{number}", RACK_NAME: f"rack-{number % 2}"}
        attributes = {**named, INSTANCE_TYPE: "m5.large", "zone": "a"}
        script.node(f"node-{number}", attributes=attributes, vcore=16_000, memory=64_000)
    script.node("odd/node", vcore=8_000, memory=32_000, gpu=2)
    script.node("draining", vcore=4_000, memory=16_000)
    foreign = Allocation(
        allocationKey="daemon",
        nodeID="odd/node",
        priority=7,
        allocationTags={TAG_FOREIGN: FOREIGN_DEFAULT},
        resourcePerAlloc=resource({"vcore": 100}),
    )
    script.send(AllocationRequest(rmID="rm", allocations=[foreign]))
    script.node("taken", occupied={"vcore": 500, "memory": 100}, vcore=1_000, memory=4_000)


def _gangs(script: Script) -> None:
    """One whose placeholders are being replaced, one that waits for room, one that has timed out."""
    size = {"vcore": 3_000, "memory": 300}
    script.app("gang", "root.prod.gangs", user="ann", groups=("staff",), gang=size)
    for number in range(3):
        script.ask("gang", f"ph-{number}", group="tg", placeholder=True, vcore=1_000, memory=100)
    script.schedule()
    script.ask("gang", "real-0", group="tg", vcore=1_000, memory=100)
    script.schedule()
    script.confirm()
    script.ask("gang", "real-1", group="tg", vcore=1_000, memory=100)
    script.schedule()  # its placeholder is asked back, and nobody confirms

    script.app("late", "root.prod.gangs", user="ann", gang={"vcore": 2_000}, timeout_ms=1_000)
    script.ask("late", "ph", group="tg", placeholder=True, vcore=1_000)
    script.app("hard", "root.prod.gangs", user="ann", gang=size, style="Hard", timeout_ms=1_000)
    script.ask("hard", "ph", group="tg", placeholder=True, vcore=1_000)
    script.schedule()
    script.advance(2)
    script.confirm(TerminationType.TIMEOUT)


def _ends(script: Script) -> None:
    """A completed application, a killed one, rejected ones."""
    for name in ("done", "killed"):
        script.app(name, "root.dev", user="bob")
        script.ask(name, "pod", vcore=100, memory=1)
        script.schedule()
    script.release("done")
    script.advance(31)
    script.remove_app("killed")
    script.app("nowhere", "root.prod", user="ann")  # a parent
    script.app("again", "root.dev", user="ann")
    script.app("again", "root.dev", user="ann")


def _waits(script: Script) -> None:
    """A node reserved, a user at his limit, a queue made by placement, odd names, a node draining."""
    script.app("wide", "root.odd:queue", user="dora")
    for number in range(6):
        script.ask("wide", f"filler-{number}", vcore=9_500, memory=100)
    script.schedule()
    script.ask("wide", "big", vcore=15_500, memory=100, priority=7)
    script.schedule()
    script.advance(3)
    script.schedule()
    script.app("greedy", "root.tight", user="cat")
    script.ask("greedy", "one", "two", vcore=800)
    script.app("made", "root.prod.made", user="ann", groups=("staff",))
    script.ask("made", "pod", vcore=100, originator=True)
    script.app(ODD, "root.dev", user="e.f@example.org", groups=("a/b",))
    tags = {"kubernetes.io/meta/namespace": "space", "kubernetes.io/meta/podName": "pod-ä"}
    script.ask(ODD, "odd/ask", vcore=100, tags=tags)
    script.schedule()
    script.node("draining", NodeInfo.DRAIN_NODE)
    script.confirm(TerminationType.TIMEOUT)
