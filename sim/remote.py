"""The scheduler of a simulation in another process, which runs by the simulation's clock.

``quadriga serve --clock client`` waits for its client to set the time. Every message thus has its
instant and its position, and the decisions equal those of a scheduler in the same process.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quadriga.core import Output
from quadriga.si import (
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    EventRecord,
    NodeRequest,
    NodeResponse,
    NullCallback,
    RegisterResourceManagerRequest,
    RequestError,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.si.api import has_own
from quadriga.si.client import Client, ClientError
from quadriga.si.client.errors import refusal
from quadriga.si.client.streams import STREAM_OF
from quadriga.si.explained import Explained
from quadriga.si.extension.extension_pb2 import Channel
from quadriga.sim.errors import SimulationError
from quadriga.sim.options import SimulationOptions
from quadriga.sim.pods import Pod, Run
from quadriga.sim.reports.report import Report
from quadriga.sim.simulation import Progress, Simulation
from quadriga.sim.workload.model import Workload


class RemoteScheduler:
    """The methods that drive a `Scheduler` (`apply`, `advance`, `schedule`, `next_deadline`), for
    one resource manager, through a client. All times are in ns.

    ``questions`` answers predicates, if there are any. Raises what the client raises.
    """

    def __init__(self, client: Client, questions: ResourceManagerCallback | None = None) -> None:
        self.client = client
        self.now = 0
        #: whether the last call of ``schedule`` ended at its limit
        self.unfinished = False
        self._heard: list[Output] = []
        self._listener = _Listener(self._heard)
        for question in ("predicates", "preemption_predicates"):
            if has_own(questions, question):
                setattr(self._listener, question, getattr(questions, question))
        self._deadline: int | None = None
        self._send: dict[type[Any], Callable[[Any], None]] = {
            AllocationRequest: client.update_allocation,
            ApplicationRequest: client.update_application,
            NodeRequest: client.update_node,
        }

    def apply(self, message: Any, now: int) -> list[Output]:
        """Send one message at this instant; return the resulting messages of the scheduler.

        Raises `RequestError` for a request that is refused as a whole.
        """
        if isinstance(message, RegisterResourceManagerRequest):
            if self._listener.rm_id:  # before the registration no client can set the time
                self._step(now)
            self._listener.rm_id = message.rmID
            self.client.register_resource_manager(message, self._listener)
            return self._step(now)
        if isinstance(message, UpdateConfigurationRequest):
            self._step(now)
            self.client.update_configuration(message)
            return self._step(now)
        if not any(field.name != "rmID" for field, _ in message.ListFields()):
            return self._step(now)  # over gRPC an empty request only names its resource manager
        self._send[type(message)](message)
        return self._step(now, [STREAM_OF[type(message)]])

    def advance(self, now: int) -> list[Output]:
        """Fire every timer up to ``now``, each at its own instant."""
        return self._step(now, advance=True)

    def schedule(self, now: int, limit: int | None = None) -> list[Output]:
        """Run at most ``limit`` scheduling rounds (at least one)."""
        return self._step(now, schedule=True, limit=limit or 0)

    def next_deadline(self) -> int | None:
        """The instant of the scheduler's next timer, as of the last step."""
        return self._deadline

    def _step(self, now: int, streams: Sequence[Channel] = (), **what: Any) -> list[Output]:
        try:
            response = self.client.step(now, streams, **what)
        except RequestError as error:  # the step itself was refused
            raise SimulationError(
                f"the scheduler at {self.client.address} does not run by this clock: {error.reason}"
                " (start a new one: quadriga serve --clock client)"
            ) from None
        self.now = now
        self.unfinished = response.unfinished
        self._deadline = response.nextDeadline if response.HasField("nextDeadline") else None
        heard = list(self._heard)
        self._heard.clear()
        if response.refused:
            raise refusal(response.refused[0].reason, "Request")
        return heard


class _Listener(NullCallback):
    """Records all messages in order."""

    def __init__(self, heard: list[Output]) -> None:
        self.rm_id = ""
        self._heard = heard

    def update_allocation(self, response: AllocationResponse) -> None:
        self._heard.append(Output(self.rm_id, response))

    def update_application(self, response: ApplicationResponse) -> None:
        self._heard.append(Output(self.rm_id, response))

    def update_node(self, response: NodeResponse) -> None:
        self._heard.append(Output(self.rm_id, response))

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        self._heard.append(Output(self.rm_id, request))

    def send_event(self, events: Sequence[EventRecord]) -> None:
        self._heard.extend(Output(self.rm_id, event) for event in events)


class RemoteSimulation(Simulation):
    """A simulation whose scheduler is reached through ``client``. Checks of invariants and a
    journal are not available, since both need the scheduler in the same process.

    Also raises `SimulationError` for a scheduler with a clock of its own, or one that has been used
    before.
    """

    def __init__(
        self,
        workload: Workload,
        options: SimulationOptions | None = None,
        progress: Progress | None = None,
        *,
        client: Client,
    ) -> None:
        self.remote = RemoteScheduler(client)
        super().__init__(workload, options, progress)
        self._core = self.remote

    def run(self) -> Report:
        """Simulate to the end, then leave the scheduler."""
        try:
            report = super().run()
            self.remote.client.shutdown()
        except (ClientError, PermissionError) as error:
            raise SimulationError(f"at {self._at()}: {error}") from error
        return report

    def _partition(self) -> None:
        """It is in another process."""

    def _placed(self, key: str) -> str:
        return self.remote.client.explain(key, "", self.destinations.partition).queue

    def _explain(self, run: Run, pod: Pod) -> Explained:
        told = self.remote.client.explain(run.key, pod.key, self.destinations.partition)
        return Explained(
            told.queue,
            told.state,
            tuple(told.reasons),
            told.verdict,
            told.gathers,
            tuple((each.nodeID, each.allocationKey) for each in told.reservedNodes),
        )

    @property
    def _checked(self) -> str:
        return "nowhere: the scheduler is in another process"

    def _check(self) -> None:
        """The remote scheduler checks itself."""
