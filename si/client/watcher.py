"""Notifications of a client that do not come from the scheduler's callbacks."""

from __future__ import annotations

import logging
from typing import Any

from quadriga.si import RequestError
from quadriga.si.client.connection_state import FORGOTTEN

_log = logging.getLogger("quadriga.client")


class Watcher:
    """Logs the notifications; override its methods to handle them. They are called between the
    callbacks, in order."""

    def changed(self, state: str, why: str) -> None:
        """The connection is now ``Connected``, ``Away`` or ``Forgotten`` (`connection_state`).

        After ``Forgotten`` no messages follow until the resource manager registers again and
        reports all its state (I7, I43). It may do so within this method.
        """
        level = logging.ERROR if state == FORGOTTEN else logging.INFO
        _log.log(level, "the connection to the scheduler is %s%s", state, why and f": {why}")

    def refused(self, request: Any, error: RequestError) -> None:
        """The scheduler has refused a request as a whole and applied nothing of it."""
        _log.error("refused: %s", error)
