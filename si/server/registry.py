"""Who is registered: registrations, their streams, and whether they are connected (I6, I7).

What the scheduler is told about a resource manager (RM) follows from its streams here, one thing after
the other for each RM.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import grpc

from quadriga.si.api import RequestError
from quadriga.si.extension.extension_pb2 import Callback
from quadriga.si.server.channels import ALLOCATION, CALLBACK, SI_CHANNELS
from quadriga.si.server.driver import DISCONNECT, RECONNECT, SHUTDOWN, Served
from quadriga.si.server.limits import LONGEST_ID, Limits
from quadriga.si.server.session import Session
from quadriga.si.server.statuses import Ending, of_request
from quadriga.si.server.streams import Stream
from quadriga.si.v1.si_pb2 import RegisterResourceManagerRequest

__all__ = ["Registry"]

_log = logging.getLogger("quadriga.grpc")

Code = grpc.StatusCode

#: how long streams of a resource manager that leaves may take to write what waits, in s
_FAREWELL = 5.0


class Registry:
    """With ``client_clock`` the scheduler waits for the answers of predicates."""

    def __init__(self, driver: Served, limits: Limits, *, client_clock: bool) -> None:
        #: the present registrations by rmID
        self.sessions: dict[str, Session] = {}
        #: the number of the latest registration; higher than any of a server that ran here before
        self.epoch = time.time_ns() // 1_000_000
        #: all rmIDs that have ever been registered
        self.names: set[str] = set()
        #: the server stops: the scheduler is told nothing more
        self.stopping = False
        self._driver = driver
        self._limits = limits
        self._client_clock = client_clock
        #: registrations of one RM are made one after the other; those of others go on meanwhile
        self._registering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def stop(self, ending: Ending) -> None:
        """End what is under way, and every session."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self.sessions.values():
            session.retire(ending)

    # -- registrations ---------------------------------------------------------------------------

    async def enter(
        self, rm_id: str, request: RegisterResourceManagerRequest, in_order: bool
    ) -> Session:
        """Register, instead of an older registration. No request of that one comes after."""
        async with self._registering.setdefault(rm_id, asyncio.Lock()):
            loop = asyncio.get_running_loop()
            self.epoch += 1
            session = Session(
                rm_id,
                self.epoch,
                self._limits,
                loop,
                self._changed,
                self._begin,
                client_clock=self._client_clock,
                in_order=in_order,
            )
            old = self.sessions.get(rm_id)
            held = asyncio.Event()
            if old is not None:
                old.held = held
            try:
                await asyncio.wrap_future(self._driver.submit(request, session))
                self._driver.set_events(rm_id, False)  # until it says that it hears them
                if old is not None:
                    why = _over("I7", f"resource manager {rm_id!r} has registered again")
                    self._drop(old, why)
                self.sessions[rm_id] = session
                self.names.add(rm_id)
            except RequestError as error:
                raise of_request(error) from None
            finally:
                held.set()
                if old is not None:
                    old.held = None
        loop.call_later(self._limits.attach_s, self._expect_streams, session)
        _log.info("resource manager %s registered (registration %d)", rm_id, session.epoch)
        return session

    def _expect_streams(self, session: Session) -> None:
        """It has registered and opened no stream: nobody can be told anything."""
        if not session.wanted and session.over is None:
            session.wanted.add(ALLOCATION)
            self._changed(session)

    # -- streams ---------------------------------------------------------------------------------

    async def session_for(self, rm_id: str, opened: int, epoch: int | None) -> Session:
        """The registration that the stream belongs to. Raises `Ending` if that is not the present
        one, or there is none any more."""
        session = self.sessions.get(rm_id)
        while session is not None and session.held is not None:  # about to be another one
            await session.held.wait()
            session = self.sessions.get(rm_id)
        if session is not None and not session.connected:
            known = await asyncio.wrap_future(self._driver.registered())
            session = self.sessions.get(rm_id)
            if session is not None and rm_id not in known:
                self._drop(session, _stopped(rm_id))
                session = None
        if session is None:
            raise _stopped(rm_id)
        if session.epoch > opened or epoch not in (None, session.epoch):
            raise Ending(
                Code.FAILED_PRECONDITION,
                "I7",
                f"resource manager {rm_id!r} has registered since this stream was begun",
                again=epoch is not None,
            )
        return session

    def attach(self, stream: Stream, received: int | None) -> None:
        session, kind = stream.session, stream.kind
        older = session.live.get(kind)
        session.live[kind] = stream
        session.wanted.add(kind)
        session.half_closed.discard(kind)
        if older is not None:
            session.mailbox.wake(kind)
            older.end(Ending(Code.ABORTED, "I6", "replaced by a newer stream of its kind"))
        if received is not None and not session.mailbox.rewind(kind, received):
            ending = _over(
                "I43", f"what followed message {received} is no longer known: register again"
            )
            session.retire(ending)
            self._changed(session)
            raise ending
        self._changed(session)

    def detach(self, stream: Stream) -> None:
        session, kind = stream.session, stream.kind
        if session.live.get(kind) is stream:
            del session.live[kind]
            if kind == CALLBACK:
                session.asking.lost()
            self._changed(session)

    def half_closed(self, stream: Stream) -> None:
        """The RM has nothing more to say on this stream. On all three: it leaves (I6)."""
        session = stream.session
        if not stream.is_current:
            return
        if stream.kind == CALLBACK:  # nobody will answer: it has no callbacks any more
            session.wanted.discard(CALLBACK)
            session.hello.Clear()
            self.spawn(self.greeted(session))
            stream.drain()
            return
        session.half_closed.add(stream.kind)
        if session.half_closed.issuperset(SI_CHANNELS):
            self.spawn(self.leave(session))

    async def leave(self, session: Session) -> None:
        """The RM shuts down: its state is dropped, its streams end when they are empty."""
        async with session.settling:
            await session.decided()
            if session.over is not None or session.leaving:
                return
            try:
                await asyncio.wrap_future(self._driver.connection(session.rm_id, SHUTDOWN))
            except RequestError as error:
                self._drop(session, of_request(error))
                return
        _log.info("resource manager %s has left", session.rm_id)
        session.connected = False
        session.leaving = True
        for stream in [*session.live.values()]:
            stream.drain()
        asyncio.get_running_loop().call_later(_FAREWELL, self._drop, session, _left(session.rm_id))
        if self.sessions.get(session.rm_id) is session:
            del self.sessions[session.rm_id]

    async def greeted(self, session: Session) -> None:
        """Whom the scheduler asks about the RM's asks."""
        await session.decided()
        if self.sessions.get(session.rm_id) is not session:
            return  # the scheduler asks and tells somebody else by now
        hello, asking = session.hello, session.asking
        self._driver.set_events(session.rm_id, hello.events)
        await asyncio.wrap_future(
            self._driver.set_predicates(
                session.rm_id,
                asking.predicates if hello.predicates else None,
                asking.preemption if hello.preemptionPredicates else None,
            )
        )
        if hello.rmID:
            session.mailbox.add_unnumbered(Callback(ready={}))

    # -- connected or not ------------------------------------------------------------------------

    def _changed(self, session: Session) -> None:
        """A stream has come or gone, or the RM has fallen behind or caught up."""
        if not self.stopping:
            self.spawn(self._settle(session))

    async def _settle(self, session: Session) -> None:
        """Tell the scheduler whether the RM is connected (I6)."""
        async with session.settling:
            await session.decided()
            is_there = session.over is None and session.is_whole and session.mailbox.keeps_up
            if self.sessions.get(session.rm_id) is not session or self.stopping:
                return
            if session.over is not None:
                del self.sessions[session.rm_id]
            if is_there == session.connected:
                return
            session.connected = is_there
            trigger = RECONNECT if is_there else DISCONNECT
            try:
                await asyncio.wrap_future(self._driver.connection(session.rm_id, trigger))
            except RequestError:
                self._drop(session, _stopped(session.rm_id))
                return
            _log.info("resource manager %s: %s", session.rm_id, trigger)

    def _drop(self, session: Session, why: Ending) -> None:
        """The scheduler does not know this registration any more."""
        session.connected = False
        session.retire(why)
        if self.sessions.get(session.rm_id) is session:
            del self.sessions[session.rm_id]

    async def sweep(self) -> None:
        """Forget those whom the scheduler has given up."""
        while True:
            await asyncio.sleep(self._limits.sweep_s)
            away = [s for s in self.sessions.values() if not s.connected]
            if away:
                known = await asyncio.wrap_future(self._driver.registered())
                for session in away:
                    if session.rm_id not in known:
                        self._drop(session, _stopped(session.rm_id))

    def _begin(self, work: Callable[[], list[Any]]) -> None:
        """Have the scheduler's owner do it, as long as there is one."""
        if not self.stopping:
            with suppress(RuntimeError):  # it has been stopped
                self._driver.begin(work)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, Ending) and not self.stopping:
                _log.error("gRPC server: %r", error, exc_info=error)


def _over(rule: str, text: str) -> Ending:
    """The registration is over: there has to be another."""
    return Ending(Code.FAILED_PRECONDITION, rule, text, again=True)


def _stopped(rm_id: str) -> Ending:
    name = rm_id[:LONGEST_ID]
    text = f"resource manager {name!r} is not registered, or no longer: register again"
    return _over("I43", text)


def _left(rm_id: str) -> Ending:
    return _over("I6", f"resource manager {rm_id!r} has left")
