"""Validation of a configuration outside the scheduler, in bounded time.

A short text is parsed in a thread of this process, within a fraction of a second. A long text would
take processor time from the scheduler for many seconds. It is therefore parsed in a process of its
own, which is killed after a timeout. See D29.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from quadriga.core.config import ConfigError, Problem
from quadriga.core.views import Views
from quadriga.web.responses import Refusal

T = TypeVar("T")

#: characters; longer texts are parsed in a process of their own
SHORT: Final = 16 * 1024
#: s; timeout of that process. 1 MiB takes about nine seconds on an idle machine
_PATIENCE: Final = 20.0

#: number of configurations that are validated at a time, and number that may wait
_AT_A_TIME, _MAY_WAIT = 1, 8

_COMMAND: Final = (sys.executable, "-m", "quadriga.cli", "config", "check", "--json", "-")


class ValidationQueue:
    """Limits the number of validations that run and wait."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0

    async def call(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run the function when its turn comes. Raises ``Refusal`` (503) if too many wait."""
        if self._waiting >= _MAY_WAIT:
            raise Refusal(503, "Too many configurations are being checked", {"Retry-After": "5"})
        self._waiting += 1
        try:
            async with self._room:
                return await work(*args)
        finally:
            self._waiting -= 1


async def verdict(text: str, patience: float = _PATIENCE) -> dict[str, Any]:
    """``allowed``, and the ``reason`` against it. Raises ``Refusal`` (503) after the timeout."""
    if len(text) <= SHORT:
        return await asyncio.to_thread(Views.validate_configuration, text)
    try:
        said = await asyncio.wait_for(_read_apart(text), patience)
    except TimeoutError:
        raise Refusal(
            503, f"Checking the configuration takes longer than {patience:g} seconds"
        ) from None
    (found,) = json.loads(said)["files"]
    if found["valid"]:
        return {"allowed": True, "reason": ""}
    problems = [Problem(**problem) for problem in found["problems"]]
    return {"allowed": False, "reason": str(ConfigError(problems, (), found["more"]))}


async def _read_apart(text: str) -> bytes:
    """Validate the text with the command in a process. The process always ends with this call."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
    try:
        said, _ = await process.communicate(text.encode("utf-8", "surrogatepass"))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said
