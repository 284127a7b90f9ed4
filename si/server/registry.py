"""All registered resource managers: their sessions, their streams, and whether they are connected
(I6, I7).

The state of an RM's streams decides what the scheduler is told about the RM. Changes are reported
one at a time for each RM.
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
from quadriga.si.server.status import StatusError, status_of
from quadriga.si.server.streams import Stream
from quadriga.si.v1.si_pb2 import RegisterResourceManagerRequest

_log = logging.getLogger("quadriga.grpc")

Code = grpc.StatusCode

#: streams of a leaving resource manager have this long to write their last messages, in s
_DRAIN_TIMEOUT_S = 5.0


class Registry:
    """With ``client_clock`` the scheduler waits for the answers of predicates."""

    def __init__(self, driver: Served, limits: Limits, *, client_clock: bool) -> None:
        #: rmID -> its current session
        self.sessions: dict[str, Session] = {}
        #: number of the latest registration; higher than any number of an earlier server process
        self.epoch = time.time_ns() // 1_000_000
        #: all rmIDs that have ever registered
        self.known_ids: set[str] = set()
        #: the server is stopping; nothing more is reported to the scheduler
        self.stopping = False
        self._driver = driver
        self._limits = limits
        self._client_clock = client_clock
        #: serializes the registrations of one RM; other RMs are not held up
        self._registering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def stop(self, status: StatusError) -> None:
        """End all tasks and sessions."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self.sessions.values():
            session.end(status)

    # -- registrations ---------------------------------------------------------------------------

    async def register(
        self, rm_id: str, request: RegisterResourceManagerRequest, in_order: bool
    ) -> Session:
        """Register the RM. The new session replaces an older one, whose requests are dropped from
        then on."""
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
            older = self.sessions.get(rm_id)
            pending = asyncio.Event()
            if older is not None:
                older.pending_registration = pending
            try:
                await asyncio.wrap_future(self._driver.submit(request, session))
                # Until the RM announces that it handles events.
                self._driver.set_events(rm_id, False)
                if older is not None:
                    status = _register_again(
                        "I7", f"resource manager {rm_id!r} has registered again"
                    )
                    self._end(older, status)
                self.sessions[rm_id] = session
                self.known_ids.add(rm_id)
            except RequestError as error:
                raise status_of(error) from None
            finally:
                pending.set()
                if older is not None:
                    older.pending_registration = None
        loop.call_later(self._limits.attach_s, self._expect_streams, session)
        _log.info("resource manager %s registered (registration %d)", rm_id, session.epoch)
        return session

    def _expect_streams(self, session: Session) -> None:
        """Count the RM as disconnected if it has opened no stream since it registered."""
        if not session.opened and session.ended is None:
            session.opened.add(ALLOCATION)
            self._changed(session)

    # -- streams ---------------------------------------------------------------------------------

    async def session_for(self, rm_id: str, opened: int, epoch: int | None) -> Session:
        """The session that a new stream belongs to. Raises `StatusError` if the RM is not
        registered, or has registered again since the stream was opened."""
        session = self.sessions.get(rm_id)
        while session is not None and session.pending_registration is not None:
            await session.pending_registration.wait()
            session = self.sessions.get(rm_id)
        if session is not None and not session.connected:
            known = await asyncio.wrap_future(self._driver.registered())
            session = self.sessions.get(rm_id)
            if session is not None and rm_id not in known:
                self._end(session, _not_registered(rm_id))
                session = None
        if session is None:
            raise _not_registered(rm_id)
        if session.epoch > opened or epoch not in (None, session.epoch):
            raise StatusError(
                Code.FAILED_PRECONDITION,
                "I7",
                f"resource manager {rm_id!r} has registered since this stream was begun",
                register_again=epoch is not None,
            )
        return session

    def attach(self, stream: Stream, received: int | None) -> None:
        session, channel = stream.session, stream.channel
        older = session.streams.get(channel)
        session.streams[channel] = stream
        session.opened.add(channel)
        session.half_closed.discard(channel)
        if older is not None:
            session.mailbox.wake(channel)
            older.end(StatusError(Code.ABORTED, "I6", "replaced by a newer stream of its kind"))
        if received is not None and not session.mailbox.rewind(channel, received):
            status = _register_again(
                "I43", f"messages after number {received} are no longer stored: register again"
            )
            session.end(status)
            self._changed(session)
            raise status
        self._changed(session)

    def detach(self, stream: Stream) -> None:
        session, channel = stream.session, stream.channel
        if session.streams.get(channel) is stream:
            del session.streams[channel]
            if channel == CALLBACK:
                session.questions.disconnected()
            self._changed(session)

    def on_half_close(self, stream: Stream) -> None:
        """The RM has sent its last request on this stream. If that holds for all three streams of
        the interface, the RM leaves (I6)."""
        session = stream.session
        if not stream.is_current:
            return
        if stream.channel == CALLBACK:  # no more answers, so no callbacks
            session.opened.discard(CALLBACK)
            session.hello.Clear()
            self.spawn(self.install_callbacks(session))
            stream.drain()
            return
        session.half_closed.add(stream.channel)
        if session.half_closed.issuperset(SI_CHANNELS):
            self.spawn(self.leave(session))

    async def leave(self, session: Session) -> None:
        """Shut the RM down: the scheduler drops its state, and its streams end when they have
        written all messages."""
        async with session.connection_lock:
            await session.registration_settled()
            if session.ended is not None or session.leaving:
                return
            try:
                await asyncio.wrap_future(self._driver.connection(session.rm_id, SHUTDOWN))
            except RequestError as error:
                self._end(session, status_of(error))
                return
        _log.info("resource manager %s has left", session.rm_id)
        session.connected = False
        session.leaving = True
        for stream in [*session.streams.values()]:
            stream.drain()
        asyncio.get_running_loop().call_later(
            _DRAIN_TIMEOUT_S, self._end, session, _has_left(session.rm_id)
        )
        if self.sessions.get(session.rm_id) is session:
            del self.sessions[session.rm_id]

    async def install_callbacks(self, session: Session) -> None:
        """Register the RM's predicates and its interest in events with the scheduler."""
        await session.registration_settled()
        if self.sessions.get(session.rm_id) is not session:
            return  # another session has replaced this one
        hello, questions = session.hello, session.questions
        self._driver.set_events(session.rm_id, hello.events)
        await asyncio.wrap_future(
            self._driver.set_predicates(
                session.rm_id,
                questions.predicates if hello.predicates else None,
                questions.preemption if hello.preemptionPredicates else None,
            )
        )
        if hello.rmID:
            session.mailbox.add_unnumbered(Callback(ready={}))

    # -- connected or not ------------------------------------------------------------------------

    def _changed(self, session: Session) -> None:
        """A stream was opened or closed, or the RM has fallen behind or caught up."""
        if not self.stopping:
            self.spawn(self._report_connection(session))

    async def _report_connection(self, session: Session) -> None:
        """Tell the scheduler whether the RM is connected (I6)."""
        async with session.connection_lock:
            await session.registration_settled()
            connected = (
                session.ended is None and session.has_all_streams and session.mailbox.keeps_up
            )
            if self.sessions.get(session.rm_id) is not session or self.stopping:
                return
            if session.ended is not None:
                del self.sessions[session.rm_id]
            if connected == session.connected:
                return
            session.connected = connected
            trigger = RECONNECT if connected else DISCONNECT
            try:
                await asyncio.wrap_future(self._driver.connection(session.rm_id, trigger))
            except RequestError:
                self._end(session, _not_registered(session.rm_id))
                return
            _log.info("resource manager %s: %s", session.rm_id, trigger)

    def _end(self, session: Session, status: StatusError) -> None:
        """End a session that the scheduler no longer knows."""
        session.connected = False
        session.end(status)
        if self.sessions.get(session.rm_id) is session:
            del self.sessions[session.rm_id]

    async def sweep(self) -> None:
        """End the sessions of RMs that the scheduler has given up, every ``sweep_s`` seconds."""
        while True:
            await asyncio.sleep(self._limits.sweep_s)
            away = [s for s in self.sessions.values() if not s.connected]
            if away:
                known = await asyncio.wrap_future(self._driver.registered())
                for session in away:
                    if session.rm_id not in known:
                        self._end(session, _not_registered(session.rm_id))

    def _begin(self, work: Callable[[], list[Any]]) -> None:
        """Run a function in the scheduler's thread, unless the server is stopping."""
        if not self.stopping:
            with suppress(RuntimeError):  # the scheduler has been stopped
                self._driver.begin(work)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, StatusError) and not self.stopping:
                _log.error("gRPC server: %r", error, exc_info=error)


def _register_again(rule: str, text: str) -> StatusError:
    """The status of a session that is over: the RM must register again."""
    return StatusError(Code.FAILED_PRECONDITION, rule, text, register_again=True)


def _not_registered(rm_id: str) -> StatusError:
    name = rm_id[:LONGEST_ID]
    text = f"resource manager {name!r} is not registered, or no longer: register again"
    return _register_again("I43", text)


def _has_left(rm_id: str) -> StatusError:
    return _register_again("I6", f"resource manager {rm_id!r} has left")
