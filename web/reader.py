"""Reads of the scheduler's state that do not slow the scheduler down.

A look runs in the owner thread, between two steps of the scheduler, so it sees the state of one
moment. A look that returns a generator runs in slices, between which the scheduler decides
(``driver.slices``). Everything else, above all the encoding of JSON, runs elsewhere. Three rules limit
the cost for the scheduler, for any number of readers:

* Readers share a look: a request for the same name gets the same answer until the owner has run the
  look, or while it runs further slices of it.
* An answer whose look and encoding took ``cost`` seconds stays valid for ``cost / share`` seconds.
  All looks of one name together thus take at most ``share`` of the time. A cheap look is repeated
  for every request, so only expensive answers are ever slightly old.
* An answer is encoded once for all its readers, and compressed once (``compression``).

What is sent while it is read has looks of its own (``rest.long_answers``), which take at most
``SENDING_SHARE`` of the time all together. A look with an effect, such as opening a stream of events, is
never shared (``once``). See D76.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.scheduler import Scheduler
from quadriga.web.compression import Shared
from quadriga.web.responses import Refusal

T = TypeVar("T")

#: share of the owner's time for all looks of one name
OWNER_SHARE: Final = 0.05

#: share of the owner's time for all answers that are sent while they are read
SENDING_SHARE: Final = 0.25

#: s; the answer of a faster look is never cached
CACHE_ABOVE_S: Final = 0.001

#: at most this many answers are cached
MAX_CACHED: Final = 64

#: at most this many looks wait for the owner
MAX_PENDING: Final = 10_000

#: s; if a look waits longer, the scheduler is reported busy
READ_TIMEOUT: Final = 30.0


class Answer:
    """The result of one look. ``encoding`` is the time to encode it, in s; ``ended`` is when the
    look ended."""

    __slots__ = ("encoding", "ended", "future", "slices", "texts")

    def __init__(self, slices: Slices[Any], future: Future[Any]) -> None:
        self.slices = slices
        self.future = future
        self.ended = 0.0
        self.encoding = 0.0
        self.texts: dict[Any, Future[bytes]] = {}

    @property
    def value(self) -> Any:
        return self.slices.value

    @property
    def cost(self) -> float:
        """The time that the look took the owner (s)."""
        return self.slices.cost

    @property
    def begun(self) -> bool:
        """Whether the look is too far for those who ask now."""
        return self.slices.began is not None and not self.slices.further


class Reader:
    """Reads for one event loop. ``clock`` gives seconds and is monotonic."""

    def __init__(
        self,
        service: SchedulerService,
        *,
        share: float = OWNER_SHARE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._service = service
        self._share = share
        self._clock = clock
        # A single thread: it competes with the scheduler for the interpreter.
        self._encoders = ThreadPoolExecutor(1, "quadriga-spelling")
        self._waiting: dict[Hashable, Answer] = {}
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        #: the number of answers that are sent while they are read
        self.sending = 0
        #: their slices take turns, the next one not before this time
        self._turn = asyncio.Lock()
        self._next_slice = 0.0
        #: name -> longest and latest time that a look took the owner, in s
        self.costs: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    async def read(self, name: Hashable, look: Callable[[Scheduler], T]) -> T:
        """Return the result of ``look``. Equal names must mean equal looks. The result may be
        shared with other readers and must not be changed.

        Raises what ``look`` raises, and ``Refusal`` (503) if the scheduler is busy or has been
        stopped.
        """
        found: T = (await self._answer(name, look)).value
        return found

    async def once(self, name: Hashable, look: Callable[[Scheduler], Any]) -> Any:
        """Run a look for this caller alone; the result is neither shared nor cached. ``name`` is
        for the costs. Raises like ``read``."""
        key = object()  # a key of its own, so the answer is not shared
        answer = self._waiting[key] = self._ask(look)
        try:
            await _wait(answer.future)
        finally:
            del self._waiting[key]
        self._note(name, answer)
        return answer.value

    async def slice(self, slices: Slices[Any]) -> list[Any]:
        """The parts of the next slice of an answer that is sent while it is read. Raises like
        ``read``."""
        async with self._turn:
            await asyncio.sleep(self._next_slice - self._clock())
            before = slices.cost
            parts = await _wait(
                self._later(lambda: self._service.read_later(slices.next, in_turn=True))
            )
            self._next_slice = self._clock() + (slices.cost - before) * (1 / SENDING_SHARE - 1)
        found: list[Any] = parts
        return found

    async def encode(self, encode: Callable[[Any], bytes], value: Any) -> bytes:
        """Encode a part of such an answer."""
        return await asyncio.wrap_future(self._encoders.submit(encode, value))

    async def text(
        self,
        name: Hashable,
        look: Callable[[Scheduler], Any],
        encode: Callable[[Any], bytes],
        *,
        long: bool = False,
    ) -> bytes:
        """Like ``read``, with the result encoded outside the owner's thread. Short results are
        encoded in the event loop, long ones in a thread. ``long`` results always are long; their
        ``encode`` is always the same function and never runs twice at a time."""
        answer = await self._answer(name, look)
        if not long and answer.cost < CACHE_ABOVE_S:
            return encode(answer.value)
        text = answer.texts.get(encode)
        if text is None:
            text = answer.texts[encode] = self._encoders.submit(self._encode, answer, encode)
            self._keep(name, answer)
        return await asyncio.shield(asyncio.wrap_future(text))

    def _encode(self, answer: Answer, encode: Callable[[Any], bytes]) -> bytes:
        begin = self._clock()
        try:
            return Shared(encode(answer.value))
        finally:
            answer.encoding += self._clock() - begin

    async def _answer(self, name: Hashable, look: Callable[[Scheduler], Any]) -> Answer:
        kept = self._kept.get(name)
        if kept is not None:
            if self._left(kept) > 0:
                return kept
            del self._kept[name]
        answer = self._waiting.get(name)
        if answer is None or answer.begun:
            answer = self._waiting[name] = self._ask(look)
        try:
            await _wait(answer.future)
        finally:
            if self._waiting.get(name) is answer and (answer.begun or answer.future.done()):
                del self._waiting[name]
        self._note(name, answer)
        if answer.cost >= CACHE_ABOVE_S:
            self._keep(name, answer)
        return answer

    def _ask(self, look: Callable[[Scheduler], Any]) -> Answer:
        if len(self._waiting) >= MAX_PENDING:
            raise Refusal(503, "The scheduler is busy, and too many requests wait")
        slices = Slices(look, clock=self._clock)
        answer = Answer(slices, self._later(lambda: read_in_slices(self._service, slices)))
        answer.future.add_done_callback(lambda _: setattr(answer, "ended", self._clock()))
        return answer

    @staticmethod
    def _later(ask: Callable[[], Future[T]]) -> Future[T]:
        try:
            return ask()
        except RuntimeError as stopped:
            raise Refusal(503, str(stopped)) from None

    def _note(self, name: Hashable, answer: Answer) -> None:
        most, _ = self.costs.pop(name, (0.0, 0.0))
        self.costs[name] = max(most, answer.cost), answer.cost
        if len(self.costs) > MAX_CACHED:
            self.costs.popitem(last=False)

    def _keep(self, name: Hashable, answer: Answer) -> None:
        if name in self._kept or self._left(answer) <= 0:
            return
        self._kept[name] = answer
        if len(self._kept) > MAX_CACHED:
            self._kept.popitem(last=False)
        self._drop(name, answer)

    def _left(self, answer: Answer) -> float:
        """How much longer the answer is valid, in s. It stays valid while it is being encoded."""
        if any(not text.done() for text in answer.texts.values()):
            return CACHE_ABOVE_S
        return answer.ended + (answer.cost + answer.encoding) / self._share - self._clock()

    def _drop(self, name: Hashable, answer: Answer) -> None:
        """Drop an answer when it is no longer valid, as it may be large."""
        if self._kept.get(name) is not answer:
            return
        left = self._left(answer)
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._drop, name, answer)
        else:
            del self._kept[name]


async def _wait(answer: Future[T]) -> T:
    """Wait for the owner's answer. Raises what the look raised, and ``Refusal`` after the
    timeout."""
    future = asyncio.wrap_future(answer)
    future.add_done_callback(_mark_retrieved)
    try:
        # Not `wait_for`: up to Python 3.11 it may swallow a cancellation.
        async with asyncio.timeout(READ_TIMEOUT):
            return await asyncio.shield(future)
    except TimeoutError:
        raise Refusal(503, "The scheduler has not answered in time") from None


def _mark_retrieved(future: asyncio.Future[Any]) -> None:
    """Mark an error as retrieved if no reader waits for it any more."""
    if not future.cancelled():
        future.exception()
