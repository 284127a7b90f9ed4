"""The queues of resource managers that register without a configuration.

Queues come from the operator of the scheduler, or from a resource manager when it registers. A
resource manager's own configuration takes precedence, as YuniKorn's shim expects. One that registers
with an empty configuration gets the operator's, and follows its changes until it sends its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.config import DEFAULT_CONFIGURATION
from quadriga.core.intake.registration import read_configuration
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import RegisterResourceManagerRequest, RequestError, UpdateConfigurationRequest

if TYPE_CHECKING:
    from quadriga.core.runtime.outbox import Output
    from quadriga.core.scheduler import Scheduler


class DefaultQueues:
    """``text`` is the operator's configuration; YuniKorn's default without one."""

    __slots__ = ("_followers", "_scheduler", "text")

    def __init__(self, scheduler: Scheduler) -> None:
        self.text = DEFAULT_CONFIGURATION
        self._scheduler = scheduler
        self._followers: set[str] = set()

    def register(self, request: RegisterResourceManagerRequest, now: int) -> list[Output]:
        """Apply a registration, with the operator's queues if it has none. Raises ``RequestError``."""
        follows = not request.config.strip()
        if follows:
            filled = RegisterResourceManagerRequest()
            filled.CopyFrom(request)
            filled.config = self.text
            request = filled
        outputs = self._scheduler.apply(request, now)
        (self._followers.add if follows else self._followers.discard)(request.rmID)
        return outputs

    def update(self, request: UpdateConfigurationRequest, now: int) -> list[Output]:
        """Apply a resource manager's own update (I39). Raises ``RequestError``."""
        outputs = self._scheduler.apply(request, now)
        if request.config.strip():
            self._followers.discard(request.rmID)
        return outputs

    def followers(self) -> list[str]:
        """The rmIDs of resource managers that have the operator's queues now."""
        alive = {
            rm.rm_id
            for rm in self._scheduler.resource_managers()
            if RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN)
        }
        return sorted(self._followers & alive)

    def replace(self, text: str, now: int) -> list[Output]:
        """Replace the operator's queues, also those of all followers; an empty text is the default.

        Raises ``RequestError`` with all problems of the text, or with every queue in use that would
        have to change between leaf and parent. Then nothing has changed for any resource manager.
        """
        text = text if text.strip() else DEFAULT_CONFIGURATION
        read_configuration("Configuration", text, self._scheduler.options)
        updates = [
            UpdateConfigurationRequest(rmID=rm_id, config=text) for rm_id in self.followers()
        ]
        refusals = []
        for update in updates:
            try:
                self._scheduler.check_update(update)
            except RequestError as error:
                refusals.append(f"resource manager {update.rmID!r}: {error.reason}")
        if refusals:
            raise RequestError("Configuration", "config", "; ".join(refusals))
        self.text = text
        return [output for update in updates for output in self._scheduler.apply(update, now)]
