"""A simulation with faults: either side restarts, nodes disappear and come back.

After a restart both sides synchronize their state (I7, I8): the resource manager registers, adds
its applications, reports its nodes with their allocations, and sends pending asks again. Whenever
the fault happens, nothing may be lost or duplicated.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.core import Output
from quadriga.si import NodeInfo
from quadriga.sim.errors import SimulationError
from quadriga.sim.lifecycles import BOUND
from quadriga.sim.options import SimulationOptions
from quadriga.sim.outbox import RM_ID
from quadriga.sim.simulation import Simulation
from quadriga.sim.workload.model import NodeSpec, Workload

#: the scheduler is replaced by a new one without any state
RESTART_SCHEDULER: Final = "restart of the scheduler"
#: the resource manager registers again with the same scheduler, with the state of its cluster
RESTART_MANAGER: Final = "restart of the resource manager"
#: a node disappears with all its pods
LOSE_NODE: Final = "loss of a node"


class Fault(NamedTuple):
    """One fault. With ``unheard`` the answers of that step are lost as well.

    ``node`` is the node to lose; ``back_s`` is the time in seconds until it comes back (0: never).
    """

    kind: str
    unheard: bool = False
    node: str = ""
    back_s: int = 0


class World(Simulation):
    """``faults`` maps the number of a step to its fault. Steps are: each message to the scheduler,
    each round of decisions, and each processing of its timers, including those of a restart.

    Nodes are reported with their allocations. With ``by_request`` they are reported as current
    shims do: draining nodes first, then allocations in a request of their own, then the nodes are
    opened.
    """

    def __init__(
        self,
        workload: Workload,
        options: SimulationOptions | None = None,
        faults: Mapping[int, Fault] | None = None,
        *,
        by_request: bool = False,
    ) -> None:
        super().__init__(workload, options)
        self.faults = dict(faults or {})
        self.by_request = by_request
        #: step -> fault that has happened
        self.happened: dict[int, Fault] = {}
        self.nodes: dict[str, NodeSpec] = {node.name: node for node in workload.nodes}
        self._lost: dict[str, NodeSpec] = {}
        self._era = 0
        self._settled = False
        #: whether the nodes have been reported since the last restart
        self._reported = True

    def _set_up(self) -> None:
        super()._set_up()
        self._settled = True

    def _nodes(self) -> Iterable[NodeSpec]:
        return self.nodes.values()

    # -- what may go wrong -------------------------------------------------------------------------

    def restart_scheduler(self) -> None:
        """Replace the scheduler. The resource manager keeps what it was told."""
        self.scheduler = self._new_scheduler()
        self._core = self._recorded(self.scheduler)
        self._agree(remembers=True)

    def restart_manager(self) -> None:
        """Restart the resource manager: it forgets what it was about to send or to bind."""
        self._agree(remembers=False)

    def lose_node(self, name: str, back_s: int = 0) -> None:
        """Remove the node and its pods. An unknown or lost node is ignored."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self._lost[name] = node
        self.manager.lose_node(name)
        if back_s:
            self.manager.clock.after(back_s * SECOND, self._bring_back, name)
        if self._reported:
            self._say(self.manager.outbox.act(NodeInfo.DECOMISSION, [name]))

    def _bring_back(self, name: str) -> None:
        self.nodes[name] = self._lost.pop(name)
        if self._reported:
            self._say(self.manager.outbox.nodes([self.nodes[name]]))

    def _agree(self, *, remembers: bool) -> None:
        """Register and report everything again. A restart meanwhile starts this over."""
        self._era += 1
        era = self._era
        self._reported = False
        self.manager.restart(remembers)
        self._register()
        if self._era == era:
            self._send(self.manager.requests())
        if self._era == era:
            self._reported = True
            self._send(self._report())

    def _report(self) -> Iterator[Any]:
        """Report the nodes with all their allocations."""
        outbox, pods = self.manager.outbox, self.manager.pods_on_nodes
        if not self.by_request:
            yield outbox.nodes(self.nodes.values(), pods())
            return
        names = list(self.nodes)
        yield outbox.nodes(self.nodes.values(), draining=True)
        yield outbox.existing(pods())
        open_now = [name for name in names if name in self.nodes]  # without nodes lost meanwhile
        yield outbox.act(NodeInfo.DRAIN_TO_SCHEDULABLE, open_now)

    # -- steps -------------------------------------------------------------------------------------

    def _send(self, requests: Iterable[Any]) -> None:
        era = self._era
        for request in requests:
            if self._era == era:  # answers from before a restart are lost with the connection
                self._say(request)

    def _hear(self, outputs: Iterable[Output]) -> None:
        step = self.steps + 1
        fault = self.faults.pop(step, None) if self._settled else None
        super()._hear(() if fault is not None and fault.unheard else outputs)
        if fault is not None:
            self.happened[step] = fault
            if fault.kind == RESTART_SCHEDULER:
                self.restart_scheduler()
            elif fault.kind == RESTART_MANAGER:
                self.restart_manager()
            else:
                self.lose_node(fault.node, fault.back_s)

    # -- what must hold ----------------------------------------------------------------------------

    def _run_instant(self, now: int, deadline: bool) -> None:
        super()._run_instant(now, deadline)
        if self.options.check:
            self._compare()

    def _compare(self) -> None:
        """Compare both sides at the end: every running pod must have its allocation on its node,
        and no pod may have two allocations or a pending ask."""
        partition = self.scheduler.partition(self.destinations.partition, RM_ID)
        wrong = []
        for app in partition.applications.values():
            held = [a.ask.ask_key for a in (*app.allocations.values(), *app.placeholders.values())]
            if len(set(held)) != len(held):
                wrong.append(f"a pod of {app.app_id} has two places: {held}")
            if both := sorted(set(held) & set(app.asks)):
                wrong.append(f"pods of {app.app_id} have a place and ask for one: {both}")
        for run in self.manager.runs.values():
            for pod in run.pods.values():
                if pod.state == BOUND:
                    known = partition.applications.get(run.key)
                    place = known and (
                        known.allocations.get(pod.uuid) or known.placeholders.get(pod.uuid)
                    )
                    if not place or place.node.node_id != pod.node:
                        wrong.append(f"pod {pod.key} runs and has no allocation {pod.uuid}")
        if wrong:
            raise SimulationError(f"the two sides differ at {self._at()}", wrong)
