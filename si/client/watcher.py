"""What the user of a client may want to know beside what the scheduler says."""

from __future__ import annotations

import logging
from typing import Any

from quadriga.si import RequestError
from quadriga.si.client.link import FORGOTTEN

__all__ = ["Watcher"]

_log = logging.getLogger("quadriga.client")


class Watcher:
    """Logs; to be told, override. The calls come between those of the callback, in order."""

    def changed(self, state: str, why: str) -> None:
        """The connection is ``Connected``, ``Away`` or ``Forgotten`` now (`link`).

        After ``Forgotten`` nothing more comes until the resource manager registers anew and reports
        all its state (I7, I43); that may be done right here.
        """
        level = logging.ERROR if state == FORGOTTEN else logging.INFO
        _log.log(level, "the connection to the scheduler is %s%s", state, why and f": {why}")

    def refused(self, request: Any, error: RequestError) -> None:
        """The scheduler has refused a request as a whole, and nothing of it is applied."""
        _log.error("refused: %s", error)
