"""Whether a configuration would be taken: found out beside the scheduler, in bounded time.

A short text is read in a thread of this process, which takes a fraction of a second. A long one
would take the processor from the scheduler for many seconds, so it is read in a process of its
own, which is ended when it takes too long.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from quadriga.core.config import ConfigError, Problem
from quadriga.core.views import Views
from quadriga.web.answers import Refusal

__all__ = ["SHORT", "Desk", "verdict"]

T = TypeVar("T")

#: characters up to which a text is read here
SHORT: Final = 16 * 1024
#: s that the process may take; 1 MiB takes about nine on a quiet machine
_PATIENCE: Final = 20.0

#: configurations that are looked at together, and that may wait for their turn
_AT_A_TIME, _MAY_WAIT = 1, 8

_COMMAND: Final = (sys.executable, "-m", "quadriga.cli", "config", "check", "--json", "-")


class Desk:
    """Where configurations are looked at, one after the other."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_AT_A_TIME)
        self._waiting = 0

    async def call(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do it when it has its turn. Raises ``Refusal`` (503) where too many wait."""
        if self._waiting >= _MAY_WAIT:
            raise Refusal(503, "Too many configurations are being checked", {"Retry-After": "5"})
        self._waiting += 1
        try:
            async with self._room:
                return await work(*args)
        finally:
            self._waiting -= 1


async def verdict(text: str, patience: float = _PATIENCE) -> dict[str, Any]:
    """``allowed``, and the ``reason`` against it. Raises ``Refusal`` (503) where it takes too long."""
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
    """What the command says of the text. However this ends, the process ends with it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
    try:
        said, _ = await process.communicate(text.encode("utf-8", "surrogatepass"))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said
