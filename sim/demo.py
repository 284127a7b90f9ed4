"""A simulated cluster for a real scheduler, to show the scheduler at work.

The resource manager is the simulator's. Its clock follows the real clock at a higher speed, and its
users never stop: they submit training jobs that are gangs, batch jobs that fill the rest, and
rushes of service pods with a guarantee that preempt batch jobs. At times more is submitted than
fits, so that some jobs wait.

Memory is bounded for any run time: no jobs are submitted while too many are active, and ended jobs
are dropped (`OPTIONS` makes the scheduler drop them soon, too).
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from quadriga import si
from quadriga.base.times import MINUTE, SECOND
from quadriga.core import Options, Output
from quadriga.core.driver.service import SchedulerService
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.sim.destinations import Destinations
from quadriga.sim.options import SimulationOptions
from quadriga.sim.outbox import RM_ID
from quadriga.sim.resource_manager import ResourceManager
from quadriga.sim.usage import Usage
from quadriga.sim.workload.model import GIB, VCORE, Job, Member, NodeSpec, Resources, Workload

QUEUES: Final = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: research
            resources:
              max: {vcore: 144, memory: 576Gi}
            queues:
              - name: training
                properties:
                  application.sort.policy: fifo
                  preemption.policy: disabled
                resources:
                  guaranteed: {vcore: 64, memory: 256Gi}
              - name: notebooks
                resources:
                  max: {vcore: 24, memory: 96Gi}
          - name: batch
            properties:
              application.sort.policy: fifo
            resources:
              guaranteed: {vcore: 8, memory: 32Gi}
          - name: services
            properties:
              preemption.delay: 2s
            resources:
              guaranteed: {vcore: 64, memory: 256Gi}
"""

#: options of a scheduler that people watch for minutes: ended applications stay visible, but not
#: for long
OPTIONS: Final = Options(
    lasts={
        ("application", application_fsm.WAITING): 5 * SECOND,
        ("application", application_fsm.COMPLETED): 10 * MINUTE,
        ("application", application_fsm.KILLED): 10 * MINUTE,
        ("application", application_fsm.REJECTED): 10 * MINUTE,
    }
)

_NODES = 12
_CAPACITY: Resources = {VCORE: 16_000, "memory": 64 * GIB}
_USERS = ("ada", "bela", "chen", "dora", "emre")

#: active jobs at a time; while the cluster is full, users submit nothing
_MAX_ACTIVE = 80
#: rounds of messages in one step; further ones are left to the next step
_MAX_ROUNDS = 50

# in seconds of the simulated clock
_RUSH_EVERY = 2400
_FIRST_RUSH = 120
_MEAN_GAP = 66.0
#: jobs in the first minute, so that the cluster fills up soon
_INITIAL_JOBS = 32


class Demo(si.NullCallback):
    """The simulated resource manager of ``service``. Call `begin` once, then `step` as time passes.

    ``speed`` is the number of simulated seconds per real second. Both methods must be called in the
    owner thread (``service.read``), so that neither side sends while the other still processes
    messages.
    """

    def __init__(self, service: SchedulerService, *, speed: float = 60.0, seed: int = 1) -> None:
        self._service = service
        self._speed = speed
        self._heard: deque[Output] = deque()
        nodes = tuple(
            NodeSpec(f"node-{n:02}", dict(_CAPACITY), {"si/rackname": f"rack-{n % 3}"})
            for n in range(1, _NODES + 1)
        )
        self._nodes = nodes
        cluster = Workload("demo", nodes, (), (), (), 0, "made up")
        options = SimulationOptions(start_s=45, release_s=30, confirm_s=5)
        destinations = Destinations(cluster, QUEUES, queue_map={}, user_map={})
        self.manager = ResourceManager(options, Usage(VCORE), destinations)
        self._jobs = _jobs(random.Random(seed))
        self._next = next(self._jobs)
        #: number of jobs that have ended
        self.ended = 0

    # -- what the scheduler says -----------------------------------------------------------------

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Stored until the next step."""
        self._heard.append(Output(RM_ID, response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Stored until the next step."""
        self._heard.append(Output(RM_ID, response))

    def update_node(self, response: si.NodeResponse) -> None:
        """Stored until the next step."""
        self._heard.append(Output(RM_ID, response))

    # -- what the cluster does -------------------------------------------------------------------

    def begin(self) -> None:
        """Register and report the nodes."""
        registration = self.manager.outbox.registration(QUEUES)
        registration.extraConfig["event.trackingEnabled"] = "true"
        registration.buildInfo["demo"] = "true"
        self._service.register_resource_manager(registration, self)
        self._service.update_node(self.manager.outbox.nodes(self._nodes))

    def step(self, elapsed: int) -> None:
        """Run everything that is due ``elapsed`` ns after the beginning.

        Raises `SimulationError` for an answer of the scheduler that no resource manager can
        process.
        """
        manager, clock = self.manager, self.manager.clock
        clock.now = max(clock.now, int(elapsed * self._speed))
        while self._next.submit_s * SECOND <= clock.now:
            if len(manager.runs) < _MAX_ACTIVE:
                manager.submit(self._next, self._next.job_id)
            self._next = next(self._jobs)
        for _ in range(_MAX_ROUNDS):
            self._listen()
            clock.run_due()
            requests = manager.requests()
            if not requests:
                break
            for request in requests:
                self._say(request)
        self.ended += len(manager.fates)
        manager.fates.clear()
        manager.usage.days.clear()

    def _listen(self) -> None:
        heard, self._heard = self._heard, deque()
        self.manager.receive(heard)

    def _say(self, request: Any) -> None:
        if isinstance(request, si.ApplicationRequest):
            self._service.update_application(request)
        else:
            self._service.update_allocation(request)


def _jobs(chance: random.Random) -> Iterator[Job]:
    """An endless sequence of jobs, in the order of submission."""
    now, rush = 0.0, _FIRST_RUSH
    for number in count(1):
        now += chance.expovariate(1 / _MEAN_GAP) if number > _INITIAL_JOBS else 1.0
        if now >= rush:
            for pod in range(10):
                yield _job(f"shop-{number:05}-{pod}", rush, chance, "services", 1, 4, (600, 900))
            rush += _RUSH_EVERY
        kind = chance.random()
        if kind < 0.30:
            pods = chance.randint(3, 8)
            yield _job(f"training-{number:05}", now, chance, "training", pods, 4, (600, 1800))
        elif kind < 0.45:
            yield _job(f"notebook-{number:05}", now, chance, "notebooks", 1, 2, (900, 2400))
        else:
            size = chance.choice((2, 4, 8))
            yield _job(f"batch-{number:05}", now, chance, "batch", 1, size, (600, 1500))


def _job(
    name: str,
    now: float,
    chance: random.Random,
    queue: str,
    pods: int,
    vcores: int,
    runtime: tuple[int, int],
) -> Job:
    member = Member(pods, {VCORE: vcores * 1000, "memory": vcores * 4 * GIB})
    user = _USERS[chance.randrange(len(_USERS))]
    return Job(name, int(now), chance.randint(*runtime), user, queue, (member,))
