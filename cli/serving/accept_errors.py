"""Errors of ``accept``: one line a minute instead of thousands of tracebacks a second.

If no descriptor is left, asyncio reports the error for each connection that waits, with a traceback,
and tries again every second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from quadriga.base.pacing import LogPace
from quadriga.si.descriptors import available

_log = logging.getLogger("quadriga.serve")

#: how the message begins that asyncio gives with such an error
_ACCEPT: Final = "socket.accept() out of system resource"


class AcceptErrors:
    """The exception handler of an event loop."""

    def __init__(self, pace: LogPace | None = None) -> None:
        self._pace = pace or LogPace()

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not str(context.get("message", "")).startswith(_ACCEPT):
            loop.default_exception_handler(context)
            return
        left_out = self._pace.due()
        if left_out is not None:
            _log.error(
                "a connection could not be accepted: %s (ulimit -n is %s, %d errors before were left out)",
                *(context.get("exception"), available() or "unlimited", left_out),
            )
