"""The interface between the gRPC server and the scheduler.
`quadriga.core.driver.service.SchedulerService` implements it.

Calls take effect in the order in which they are made. Only `play` waits for its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from quadriga.si import (
    RegisterResourceManagerRequest,
    RequestError,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
)
from quadriga.si.api import Outcome
from quadriga.si.explained import Explained
from quadriga.si.wire import Request

#: (allocation key, node id, allocate) -> ``None``, or the reason against the node (I36)
Predicate = Callable[[str, str, bool], str | None]
#: (allocation key, node id, keys of the victims, start index) -> index of the last victim (I37)
Preemption = Callable[[str, str, list[str], int], int | None]

DISCONNECT, RECONNECT, SHUTDOWN = "disconnect", "reconnect", "shutdown"


class Served(Protocol):
    """The interface of a scheduler with a clock of its own. A future raises what the scheduler
    raises: ``RequestError`` for a refused request."""

    def submit(
        self,
        request: Request | RegisterResourceManagerRequest | UpdateConfigurationRequest,
        callback: ResourceManagerCallback | None = None,
    ) -> Future[None]:
        """Hand over a request of an RM. A registration needs the callback."""

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Do in advance the slow part of a request, such as parsing its configuration. Changes
        nothing and may be called in any thread."""

    def post(self, request: Request, outcome: Outcome) -> None:
        """Like `submit`, but cheaper for many requests: ``outcome`` receives the result in the
        scheduler's thread. Raises ``RuntimeError`` if the scheduler has been stopped."""

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        """Report that the RM is out of reach, back, or leaving (I6): `DISCONNECT`, `RECONNECT`,
        `SHUTDOWN`."""

    def registered(self) -> Future[frozenset[str]]:
        """The ids of the RMs that are registered."""

    def set_predicates(
        self, rm_id: str, predicate: Predicate | None, preemption: Preemption | None
    ) -> Future[None]:
        """Set the functions that the scheduler calls for predicates of this RM."""

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Set whether the RM receives events. The scheduler creates no events for an RM without
        them."""

    def explain(
        self,
        rm_id: str,
        partition: str,
        application_id: str,
        allocation_key: str,
        *,
        predicates: bool,
    ) -> Future[Explained]:
        """Where an application is, and why its ask waits; with ``predicates`` also by what the resource
        manager says of each node. Raises ``KeyError`` for an unknown name."""

    def begin(self, work: Callable[[], list[Any]]) -> Future[None]:
        """Run a function in the scheduler's thread between two steps."""


class Driver(Served, Protocol):
    """The interface of a scheduler that may run by a client's clock."""

    def play(
        self,
        now: int,
        requests: Sequence[Request] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int | None = None,
    ) -> list[tuple[int, RequestError]]:
        """Apply the requests at the instant ``now`` of the client's clock, and wait until that is
        done."""

    @property
    def scheduler(self) -> Any:
        """For `next_deadline` and `unfinished`, between two calls of `play`."""
