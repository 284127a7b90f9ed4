"""Diagnostics: probes, the state dump, threads, /debug (2.13, 2.14)."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from quadriga.base.times import SECOND
from quadriga.web.resource import Operation, Resource
from quadriga.web.responses import JSON, TEXT, Refusal, json_response, text_response
from quadriga.web.rest.fragments import Fragments
from quadriga.web.rest.long_answers import LongAnswers
from quadriga.web.rest.objects import StateDumpObject, StatusObject

if TYPE_CHECKING:
    from quadriga.web.site import Site

#: times the delay of readiness: a loop that is at one thing for so long is not alive
_DEAD: Final = 12

_OK: Final[StatusObject] = {"status": "ok"}

_INDEX: Final = """\
/debug/pprof/

goroutine     the stacks of all threads
threadcreate  the threads
heap          objects that the garbage collector knows, by generation

Go's other profiles (allocs, block, cmdline, mutex, profile, symbol, trace) have no counterpart here;
a sampling profiler such as py-spy can watch the process from outside.
"""


def resources(site: Site, fragments: Fragments) -> list[Resource]:
    long = LongAnswers(site.reader, fragments, Fragments.state)

    async def dump(request: Request) -> Response:
        said = await asyncio.to_thread(site.service.diagnostics)
        level = logging.getLevelName(logging.getLogger("quadriga").getEffectiveLevel())
        views = site.views
        return await long.stream(
            request, lambda _: views.each_state(diagnostics=said, log_level=level)
        )

    async def lives(request: Request) -> Response:
        if not site.service.alive:
            raise Refusal(503, "The scheduler has stopped")
        if stuck := site.service.watchdog.stuck(int(_DEAD * site.health_delay * SECOND)):
            raise Refusal(503, f"The scheduler does not respond: {stuck}")
        return json_response(_OK)

    async def ready(request: Request) -> Response:
        longest = site.health_delay
        try:
            async with asyncio.timeout(longest):
                await site.reader.read("ready", lambda scheduler: None)
        except TimeoutError:
            slow = site.service.slow(int(longest * SECOND))
            text = f"The scheduler is busy for {longest:g} s already" + (
                f": {slow}" if slow else ""
            )
            raise Refusal(503, text) from None
        # A look comes before all requests, and says nothing of those that wait.
        if slow := site.service.slow(int(longest * SECOND)):
            raise Refusal(503, f"The scheduler is slow: {slow}")
        return json_response(_OK)

    dumped = Operation(
        dump, "The whole state, sent while it is read.", {JSON: StateDumpObject}, (503,)
    )
    stack = Operation(_text(stacks), "The stacks of all threads.", {TEXT: None})
    status = {JSON: StatusObject}
    rows: list[tuple[str, Operation]] = [
        ("/ws/v1/fullstatedump", dumped),
        ("/debug/fullstatedump", dumped),
        ("/ws/v1/stack", stack),
        ("/debug/stack", stack),
        ("/debug/pprof/goroutine", stack),
        (
            "/debug/pprof/",
            Operation(_text(lambda: _INDEX), "The profiles that are available.", {TEXT: None}),
        ),
        ("/debug/pprof/threadcreate", Operation(_text(_threads), "All threads.", {TEXT: None})),
        ("/debug/pprof/heap", Operation(_text(_heap), "Objects in memory.", {TEXT: None})),
        (
            "/livez",
            Operation(lives, "Whether the scheduler runs and its loop turns.", status, (503,)),
        ),
        (
            "/readyz",
            Operation(
                ready,
                "Whether the scheduler responds to requests, and none waits for too long.",
                status,
                (503,),
            ),
        ),
    ]
    return [Resource(path, {"GET": operation}, "diagnosis") for path, operation in rows]


def _text(make: Callable[[], str]) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose text is made for each request."""

    async def answer(request: Request) -> Response:
        return text_response(make(), TEXT)

    return answer


def stacks() -> str:
    """The stack of every thread: its name, then its calls, latest last. Values are not shown."""
    names = {each.ident: each.name for each in threading.enumerate()}
    found = []
    for ident, frame in sorted(sys._current_frames().items()):
        calls = "".join(traceback.format_stack(frame))
        found.append(f"thread {ident} [{names.get(ident, 'unknown')}]:\n{calls}")
    return "\n".join(found)


def _threads() -> str:
    every = sorted(threading.enumerate(), key=lambda each: each.name)
    return "".join(f"{each.name} daemon={each.daemon} alive={each.is_alive()}\n" for each in every)


def _heap() -> str:
    lines = [f"gc enabled={gc.isenabled()} thresholds={gc.get_threshold()}"]
    for generation, (count, stats) in enumerate(zip(gc.get_count(), gc.get_stats(), strict=True)):
        lines.append(f"generation {generation}: waiting={count} {stats}")
    return "\n".join([*lines, f"frozen: {gc.get_freeze_count()}", ""])
