"""An event loop whose time is virtual: when everything waits, the next timer is due at once."""

import asyncio
import functools
import json
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from quadriga.k8s.transport.requester import JSON, NoAnswer

T = TypeVar("T")

#: 2026-11-23T00:00:00Z
EPOCH_NS = 1_795_392_000_000_000_000


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everything waits, and no timer is set")
        self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """``freeze`` lets time pass without running anything, like SIGSTOP."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def freeze(self, seconds: float) -> None:
        self._virtual.now += seconds


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def on_virtual_time(*given: Any, **named: Any) -> None:
        run(test(*given, **named))

    return on_virtual_time


def clock() -> int:
    """The loop's time, ns."""
    return round(asyncio.get_running_loop().time() * 1e9)


def seconds() -> float:
    """The loop's time since its start."""
    return (clock() - 1_000_000_000_000) / 1e9


def wall() -> int:
    """The loop's time as if it were the date, ns since 1970."""
    return EPOCH_NS + clock() - 1_000_000_000_000


def freeze(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.freeze(seconds)


@asynccontextmanager
async def at_work(writer: T) -> AsyncIterator[T]:
    task = asyncio.create_task(writer.run())  # type: ignore[attr-defined]
    yield writer
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def hearing(writer: T, hear: Callable[[Any], None], steps: Iterable[Any]) -> T:
    """The writer hears these; a number is a pause (s)."""
    async with at_work(writer):
        for step in steps:
            if isinstance(step, int | float):
                await asyncio.sleep(step)
            else:
                hear(step)
    return writer


@dataclass
class ScriptedServer:
    """Answers with the statuses that it was given, in their order, then with success; ``None`` is no answer.
    ``requests`` are the time (s), the method, the path, the body and its type."""

    answers: list[int | None] = field(default_factory=list)
    takes_s: float = 0.0
    requests: list[tuple[float, str, str, dict[str, Any], str]] = field(default_factory=list)
    refusal = b"{}"

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        assert body is not None
        self.requests.append((seconds(), method, path, json.loads(body), content_type))
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        status = self.answers.pop(0) if self.answers else (201 if method == "POST" else 200)
        if status is None:
            raise NoAnswer("connection reset")
        return status, self.refusal if status in (403, 422) else b"{}"

    @property
    def times(self) -> list[float]:
        return [round(each[0], 2) for each in self.requests]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [each[3] for each in self.requests]
