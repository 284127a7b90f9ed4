"""The scenarios of the oracle over gRPC: what our core says to them is what is written beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.si.client import Client
from quadriga.sim import RemoteScheduler
from tests.oracle import player
from tests.oracle.report import ours
from tests.oracle.scenario import scenarios
from tests.si.remote_side import PATIENCE, SOON, Serving

SCENARIOS = Path(player.__file__).parent / "scenarios"

_HEARS: dict[type[Any], Callable[[Any, Any], None]] = {
    si.AllocationResponse: lambda callback, message: callback.update_allocation(message),
    si.ApplicationResponse: lambda callback, message: callback.update_application(message),
    si.NodeResponse: lambda callback, message: callback.update_node(message),
    si.EventRecord: lambda callback, message: callback.send_event([message]),
    si.UpdateContainerSchedulingStateRequest: (
        lambda callback, message: callback.update_container_scheduling_state(message)
    ),
}


class RemoteService:
    """Stands in for the `SchedulerService` of a player, which is behind a server here."""

    made: list[RemoteService] = []  # noqa: RUF012

    def __init__(self, *args: Any, **how: Any) -> None:
        self._clock: Callable[[], int] = how["clock"]
        self._service = SchedulerService(*args, **how)
        self._serving = Serving(steps=True, service=self._service)
        self._client = Client(self._serving.address, backoff=SOON, timeout_s=PATIENCE)
        self._remote: RemoteScheduler | None = None
        self._callback: Any = None
        self.scheduler = self._service.scheduler
        self.read = self._service.read
        self.made.append(self)

    @property
    def failures(self) -> int:
        return self._service.failures

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: si.ResourceManagerCallback
    ) -> None:
        self._callback = callback
        self._remote = RemoteScheduler(self._client, callback)
        self._say(request)

    def _say(self, request: Any) -> None:
        assert self._remote is not None
        self._hear(self._remote.apply(request, self._clock()))

    update_allocation = update_application = update_node = update_configuration = _say

    def step(self, now: int, limit: int | None = None) -> None:
        if self._remote is None or limit == 0:  # time, and no decisions at all
            self._service.step(now, limit)
            if self._remote is None:
                return
        self._hear(self._remote.advance(now))
        if limit != 0:
            self._hear(self._remote.schedule(now, limit))

    def _hear(self, outputs: list[Any]) -> None:
        for _, message in outputs:
            _HEARS[type(message)](self._callback, message)

    def stop(self) -> None:
        self._client.close()
        self._serving.stop()


@pytest.mark.parametrize("name", sorted(file.stem for file in SCENARIOS.glob("*.json")))
def test_ours_says_the_same_over_the_wire(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "SchedulerService", RemoteService)
    monkeypatch.setattr(RemoteService, "made", [])
    (scenario,) = scenarios([SCENARIOS / name])
    try:
        said = "\n".join(ours(scenario)) + "\n"
    finally:
        for service in RemoteService.made:
            service.stop()
    assert len(RemoteService.made) == 1
    assert said == (SCENARIOS / f"{name}.txt").read_text()
