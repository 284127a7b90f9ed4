"""Errors of accept are logged once a minute; other errors of the loop as before (Q16)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from quadriga.cli.serving.accept_errors import AcceptErrors
from quadriga.si.log_pace import LogPace


class Loop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self.handed_on: list[dict[str, Any]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.handed_on.append(context)


def test_q16_a_connection_that_cannot_be_accepted_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    handler, loop = AcceptErrors(LogPace(lambda: now[0])), Loop()
    full = OSError(24, "Too many open files")
    error = {"message": "socket.accept() out of system resource", "exception": full}
    with caplog.at_level(logging.ERROR):
        for _ in range(1000):
            handler(loop, error)
        now[0] = 61.0
        handler(loop, error)
    first, second = [record.getMessage() for record in caplog.records]
    assert "Too many open files" in first and "ulimit -n is" in first
    assert "999 errors before were left out" in second
    assert not any(record.exc_info for record in caplog.records)
    assert not loop.handed_on
    other = {"message": "Exception in callback"}
    AcceptErrors()(loop, other)
    assert loop.handed_on == [other]  # as before
