"""Looking at the scheduler without being in its way.

A look happens in the thread that owns the scheduler, between two of its steps, so what it sees is of
one moment. Everything else, above all spelling JSON, happens outside. Three rules keep readers, however
many, from holding the scheduler up:

* Who asks for what somebody else has asked for and the owner has not looked at yet gets the same answer.
* A look that took the owner, and the spelling after it, ``cost`` seconds serves for ``cost / share``
  seconds. So all of one name together take at most the ``share`` of the time, and a cheap one is made
  for everybody who asks: only answers that took long are ever a little old.
* What was spelled once is not spelled again for the same look, nor packed again (``packing``).

What does more than look, as a stream that hands over its events, is done for each who asks (``once``).
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quadriga.web.answers import Refusal
from quadriga.web.packing import Shared

if TYPE_CHECKING:
    from quadriga.core.driver.service import SchedulerService
    from quadriga.core.scheduler import Scheduler

__all__ = ["Answer", "Reader"]

T = TypeVar("T")

#: of the owner's time, for all looks of one name
SHARE: Final = 0.05

#: s; a look that takes less is never kept
CHEAP: Final = 0.001

#: answers that are kept at most
KEPT: Final = 64

#: questions that may wait for the owner
MOST_WAITING: Final = 10_000

#: s; a scheduler that does not get round to a look within this is said to be busy
PATIENCE: Final = 30.0


class Answer:
    """What was seen at one moment. ``cost`` is how long it held the owner, ``spelling`` how long it
    took to spell, in s."""

    __slots__ = ("begun", "cost", "ended", "future", "spelling", "texts", "value")

    def __init__(self) -> None:
        self.begun = False
        self.ended = 0.0
        self.cost = 0.0
        self.spelling = 0.0
        self.value: Any = None
        self.texts: dict[Any, Future[bytes]] = {}
        self.future: Future[Any] | None = None


class Reader:
    """Reads for one event loop. ``clock`` gives seconds and does not go back."""

    def __init__(
        self,
        service: SchedulerService,
        *,
        share: float = SHARE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._service = service
        self._share = share
        self._clock = clock
        # One at a time: each competes with the scheduler for the interpreter.
        self._spellers = ThreadPoolExecutor(1, "quadriga-spelling")
        self._waiting: dict[Hashable, Answer] = {}
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        #: of each name, the most and the latest that a look has cost the owner, in s
        self.costs: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    async def read(self, name: Hashable, look: Callable[[Scheduler], T]) -> T:
        """What ``look`` sees; the same ``name`` must mean the same question. What is returned may be
        shared with other readers: it is not to be changed.

        Raises what ``look`` raises, and ``Refusal`` (503) where the scheduler has no time or has been
        stopped.
        """
        found: T = (await self._answer(name, look)).value
        return found

    async def once(self, name: Hashable, look: Callable[[Scheduler], T]) -> T:
        """What ``look`` does, or takes away, is for the caller alone: it is neither shared nor kept.
        ``name`` is for the costs. Raises as ``read`` does."""
        place = object()  # nobody else asks for it
        answer = self._waiting[place] = self._ask(look)
        try:
            await _told(answer)
        finally:
            del self._waiting[place]
        self._note(name, answer)
        found: T = answer.value
        return found

    async def text(
        self,
        name: Hashable,
        look: Callable[[Scheduler], T],
        spell: Callable[[T], bytes],
        *,
        long: bool = False,
    ) -> bytes:
        """The same, spelled outside of the owner's thread and, unless it is short, of the loop's.
        ``long``: it is never short, and ``spell`` is always the same and not called twice at a time."""
        answer = await self._answer(name, look)
        if not long and answer.cost < CHEAP:
            return spell(answer.value)
        text = answer.texts.get(spell)
        if text is None:
            text = answer.texts[spell] = self._spellers.submit(self._spell, answer, spell)
            self._keep(name, answer)
        return await asyncio.shield(asyncio.wrap_future(text))

    def _spell(self, answer: Answer, spell: Callable[[Any], bytes]) -> bytes:
        begin = self._clock()
        try:
            return Shared(spell(answer.value))
        finally:
            answer.spelling += self._clock() - begin

    async def _answer(self, name: Hashable, look: Callable[[Scheduler], Any]) -> Answer:
        kept = self._kept.get(name)
        if kept is not None:
            if self._left(kept) > 0:
                return kept
            del self._kept[name]
        answer = self._waiting.get(name)
        if answer is None or answer.begun:
            answer = self._waiting[name] = self._ask(look)
        assert answer.future is not None
        try:
            await _told(answer)
        finally:
            if self._waiting.get(name) is answer and (answer.begun or answer.future.done()):
                del self._waiting[name]
        self._note(name, answer)
        if answer.cost >= CHEAP:
            self._keep(name, answer)
        return answer

    def _ask(self, look: Callable[[Scheduler], Any]) -> Answer:
        if len(self._waiting) >= MOST_WAITING:
            raise Refusal(503, "The scheduler is busy, and too many ask")
        answer = Answer()
        clock = self._clock

        def timed(scheduler: Scheduler) -> None:
            answer.begun = True
            begin = clock()
            # What is seen of thousands of things is as many new tuples, among which a collection of
            # garbage would find none, and take longer than the look.
            collects = gc.isenabled()
            gc.disable()
            try:
                answer.value = look(scheduler)
            finally:
                if collects:
                    gc.enable()
                answer.ended = clock()
                answer.cost = answer.ended - begin

        try:
            answer.future = self._service.read_later(timed)
        except RuntimeError as stopped:
            raise Refusal(503, str(stopped)) from None
        return answer

    def _note(self, name: Hashable, answer: Answer) -> None:
        most, _ = self.costs.pop(name, (0.0, 0.0))
        self.costs[name] = max(most, answer.cost), answer.cost
        if len(self.costs) > KEPT:
            self.costs.popitem(last=False)

    def _keep(self, name: Hashable, answer: Answer) -> None:
        if name in self._kept or self._left(answer) <= 0:
            return
        self._kept[name] = answer
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self._drop(name, answer)

    def _left(self, answer: Answer) -> float:
        """How much longer it serves, in s; while it is being spelled, it does."""
        if any(not text.done() for text in answer.texts.values()):
            return CHEAP
        return answer.ended + (answer.cost + answer.spelling) / self._share - self._clock()

    def _drop(self, name: Hashable, answer: Answer) -> None:
        """It may be large: when it serves no more it goes, whether anybody asks or not."""
        if self._kept.get(name) is not answer:
            return
        left = self._left(answer)
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._drop, name, answer)
        else:
            del self._kept[name]


async def _told(answer: Answer) -> None:
    """Wait for the owner's answer. Raises what the look raised, and ``Refusal`` when it takes too long."""
    assert answer.future is not None
    future = asyncio.wrap_future(answer.future)
    future.add_done_callback(_heard)
    try:
        # Not `wait_for`: up to Python 3.11 it may take a cancellation for an answer.
        async with asyncio.timeout(PATIENCE):
            await asyncio.shield(future)
    except TimeoutError:
        raise Refusal(503, "The scheduler has not answered in time") from None


def _heard(future: asyncio.Future[Any]) -> None:
    """An error that nobody waits for any more is not one that was lost."""
    if not future.cancelled():
        future.exception()
