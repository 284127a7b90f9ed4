"""What the server needs of the scheduler that it serves: `quadriga.core.driver.service.SchedulerService`
has it. What is asked for is done in the order of the calls; nothing but `play` waits for it."""

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
from quadriga.si.answers import Outcome
from quadriga.si.wire import Request

__all__ = [
    "DISCONNECT",
    "RECONNECT",
    "SHUTDOWN",
    "Driver",
    "Predicate",
    "Preemption",
    "Served",
]

#: (allocation key, node id, allocate) gives ``None`` or the reason against it (I36)
Predicate = Callable[[str, str, bool], str | None]
#: (allocation key, node id, keys of the victims, start index) gives the index of the last (I37)
Preemption = Callable[[str, str, list[str], int], int | None]

DISCONNECT, RECONNECT, SHUTDOWN = "disconnect", "reconnect", "shutdown"


class Served(Protocol):
    """All but the clock. Futures have what the scheduler raises, ``RequestError`` for what it
    refuses."""

    def submit(
        self,
        request: Request | RegisterResourceManagerRequest | UpdateConfigurationRequest,
        callback: ResourceManagerCallback | None = None,
    ) -> Future[None]:
        """A request of an RM; its registration needs the callback."""
        ...

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Do before what takes long and changes nothing; may be called in any thread."""
        ...

    def post(self, request: Request, outcome: Outcome) -> None:
        """As `submit`, for many requests: the outcome is told in the scheduler's thread. Raises
        ``RuntimeError`` if the scheduler has been stopped."""
        ...

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        """The RM is out of reach, back, or leaves (I6): `DISCONNECT`, `RECONNECT`, `SHUTDOWN`."""
        ...

    def registered(self) -> Future[frozenset[str]]:
        """The RMs that need not register again."""
        ...

    def set_predicates(
        self, rm_id: str, predicate: Predicate | None, preemption: Preemption | None
    ) -> Future[None]:
        """Whom to ask for the RM from now on."""
        ...

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Whether the RM hears events, so that they need not be made for nobody."""
        ...

    def explain(
        self, rm_id: str, partition: str, application_id: str, allocation_key: str
    ) -> Future[tuple[str, str, tuple[str, ...], str]]:
        """The queue and the state of an application, and why its ask waits; without a key only the
        former. ``KeyError`` for what is not known."""
        ...

    def begin(self, work: Callable[[], list[Any]]) -> Future[None]:
        """Have its owner do something between two steps."""
        ...


class Driver(Served, Protocol):
    """With a clock that may be a client's."""

    def play(
        self,
        now: int,
        requests: Sequence[Request] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int | None = None,
    ) -> list[tuple[int, RequestError]]:
        """One instant of a clock that is not the scheduler's own. Waits until it is over."""
        ...

    @property
    def scheduler(self) -> Any:
        """For `next_deadline` and `unfinished`, between two calls of `play`."""
        ...
