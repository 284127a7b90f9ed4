"""One stream of a resource manager (RM): its reader, its writer, and how it ends.

Bytes come in and go out here: so what cannot be parsed is an error of the sender with a status of its
own, and messages that are joined need not be parsed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from quadriga.si.answers import Outcome
from quadriga.si.api import RequestError
from quadriga.si.extension.extension_pb2 import Callback, Refused
from quadriga.si.items import count
from quadriga.si.server.callers import Context
from quadriga.si.server.channels import ALLOCATION, CALLBACK, MESSAGE_OF, NODE
from quadriga.si.server.flow import Flow
from quadriga.si.server.limits import Limits
from quadriga.si.server.session import Session
from quadriga.si.server.statuses import Ending, of_request

__all__ = ["Stream", "parse", "rm_id_of"]

#: how long a stream that ended may turn out to be broken, in s
_UNTIL_CANCELLED = 0.2


def parse(message: type[Any], data: bytes) -> Any:
    """The message. Raises `Ending` for bytes that are none."""
    try:
        return message.FromString(data)
    except DecodeError:
        name = message.DESCRIPTOR.full_name
        raise Ending(
            grpc.StatusCode.INVALID_ARGUMENT, "I1", f"{len(data)} bytes are not a {name}"
        ) from None


def rm_id_of(kind: int, message: Any) -> str:
    """Whose message it is, as far as it says."""
    if kind != CALLBACK:
        rm_id: str = message.rmID
        return rm_id
    if message.WhichOneof("answer") != "hello":
        raise Ending(grpc.StatusCode.INVALID_ARGUMENT, "I4", "the first answer must be hello")
    return str(message.hello.rmID)


class Stream:
    """``submit`` hands a request to the scheduler; ``half_closed`` is told that the RM has no more
    requests here, ``greeted`` that it has said which callbacks it has."""

    def __init__(
        self,
        kind: int,
        session: Session,
        context: Context,
        limits: Limits,
        *,
        submit: Callable[[Any, Outcome], None],
        half_closed: Callable[[Stream], None],
        greeted: Callable[[Session], Awaitable[None]],
    ) -> None:
        self.kind = kind
        self.session = session
        self._context = context
        self._limits = limits
        self._submit = submit
        self._half_closed = half_closed
        self._greeted = greeted
        #: it ends when nothing waits any more
        self._draining = False
        self._flow = Flow(limits.window, limits.window_items, self._judged, self._failed)
        self._ended: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()

    def end(self, why: Ending | None) -> None:
        """Let the stream end so; ``None`` is well."""
        if not self._ended.done():
            self._ended.set_result(why)

    def drain(self) -> None:
        """Let it end well as soon as what waits has been written."""
        self._draining = True
        self.session.mailbox.wake(self.kind)

    @property
    def is_current(self) -> bool:
        """Whether it is still the one for its kind, of a session that goes on."""
        return self.session.over is None and self.session.live.get(self.kind) is self

    async def run(self, first: Any | None) -> Ending | None:
        """Until it ends, and how. ``first`` is what was read already to learn whose it is."""
        tasks = [asyncio.create_task(self._read(first)), asyncio.create_task(self._write())]
        all_three: list[asyncio.Future[Any]] = [self._ended, *tasks]
        try:
            await asyncio.wait(all_three, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and (error := task.exception()) is not None:
                    if isinstance(error, Ending):
                        return error
                    if not self._ended.done():
                        raise error
            return await self._ended
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- in --------------------------------------------------------------------------------------

    async def _read(self, message: Any | None) -> None:
        """Requests, one after the other, no faster than the scheduler takes them."""
        session = self.session
        while True:
            if message is None:
                await session.mailbox.wait_until_keeping_up()
                try:
                    data = await self._context.read()
                except grpc.aio.BaseError:  # the RM has gone: gRPC is about to cancel us
                    await self._ended
                    return
                if data is grpc.aio.EOF:
                    break
                message = parse(MESSAGE_OF[self.kind], data)
                wait = session.requests.take()
                if wait > 0:
                    await asyncio.sleep(wait)
            if self.kind == CALLBACK:
                await self._hear(message)
            else:
                await self._pass_on(message)
            message = None
        await self._flow.empty()
        # gRPC reports a broken stream as its end first, and then cancels us
        await asyncio.sleep(_UNTIL_CANCELLED)
        self._half_closed(self)
        await self._ended  # what the scheduler has to say still goes out

    async def _pass_on(self, message: Any) -> None:
        session = self.session
        items = count(message)
        if (wait := session.items.take(items)) > 0:  # for too many as well: they have been parsed
            await asyncio.sleep(wait)
        if items > self._limits.items:
            name, most = type(message).__name__, self._limits.items
            said = f"{items} items in one {name}, at most {most}"
            if session.mailbox.is_in_order:
                session.took(self.kind)
                self._tell_refusal(message, f"{name}.: {said}")
                return
            raise Ending(grpc.StatusCode.RESOURCE_EXHAUSTED, "I11", said)
        if message.rmID != session.rm_id:
            if message.rmID:
                raise Ending(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "I11",
                    f"this stream is of resource manager {session.rm_id!r}, not {message.rmID!r}",
                )
            message.rmID = session.rm_id
        if session.held is not None:
            await session.decided()
        if not self.is_current or session.leaving:
            await self._ended
            return
        session.took(self.kind)
        if not items:
            return  # it only says whose stream this is
        if session.client_clock:
            self._keep(message)
            return
        self._note_changes(message)
        flow = self._flow
        try:
            self._submit(message, flow.send(message, items))
        except RuntimeError as error:  # it has been stopped
            raise Ending(grpc.StatusCode.UNAVAILABLE, "I8", str(error)) from None
        if flow.error is not None:
            raise self._ending_of(flow.error)
        await flow.room()

    def _judged(self, error: BaseException, message: Any) -> BaseException | None:
        """In the scheduler's thread: a request was refused. An RM with one order is told of that beside
        its streams, which go on: where they ended, others of its requests would have to come again."""
        if self.session.mailbox.is_in_order and isinstance(error, RequestError):
            if not of_request(error).again:
                self._tell_refusal(message, str(error))
                return None
        return error

    def _tell_refusal(self, message: Any, reason: str) -> None:
        self.session.mailbox.add_unnumbered(
            Callback(
                refused=Refused(
                    channel=self.kind,  # type: ignore[arg-type]
                    request=message.SerializeToString(),
                    reason=reason,
                )
            )
        )

    def _failed(self) -> None:
        if self._flow.error is not None:
            self.end(self._ending_of(self._flow.error))

    def _ending_of(self, error: BaseException) -> Ending:
        """The scheduler has refused a request."""
        if not isinstance(error, RequestError):
            return Ending(grpc.StatusCode.UNAVAILABLE, "I8", f"{error}")
        ending = of_request(error)
        if ending.again:
            self.session.retire(ending)
        return ending

    def _keep(self, message: Any) -> None:
        """A step of the client's clock will name it."""
        session = self.session
        session.inbound[self.kind].append(message)
        session.inbound_bytes += message.ByteSize()
        session.arrived.set()
        if session.inbound_bytes > self._limits.backlog_bytes:
            raise Ending(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "Step",
                f"more than {self._limits.backlog_bytes} bytes of requests wait for a step",
            )

    def _note_changes(self, message: Any) -> None:
        """What the RM says about asks and nodes makes answers about them void."""
        asking = self.session.asking
        if asking.predicates is None:
            return  # nobody is asked
        if self.kind == NODE:
            for node in message.nodes:
                asking.node_changed(node.nodeID)
        elif self.kind == ALLOCATION:
            releases = message.releases
            for changed in (
                *message.asks,
                *message.allocations,
                *releases.allocationAsksToRelease,
                *(each for each in releases.allocationsToRelease if not each.UUID),
            ):
                asking.ask_changed(changed.allocationKey)

    async def _hear(self, message: Any) -> None:
        """An answer of the Callbacks stream."""
        session = self.session
        if not self.is_current:
            await self._ended
            return
        session.taken[self.kind] += 1
        kind = message.WhichOneof("answer")
        if kind == "hello":
            if message.hello.rmID not in ("", session.rm_id):
                raise Ending(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "I4",
                    f"this stream is of resource manager {session.rm_id!r}",
                )
            await self._greeted_with(message.hello)
        elif kind == "predicates":
            session.asking.judged(message.predicates)
        elif kind == "preemptionPredicates":
            session.asking.chosen(message.preemptionPredicates)
        elif kind == "stateDump":
            session.asking.dumped(message.stateDump)
        elif kind == "received":
            session.mailbox.confirm(message.received)
        else:
            raise Ending(grpc.StatusCode.INVALID_ARGUMENT, "I4", "an answer without content")

    async def _greeted_with(self, hello: Any) -> None:
        hello.rmID = self.session.rm_id
        self.session.greet(hello)
        await self._greeted(self.session)

    # -- out -------------------------------------------------------------------------------------

    async def _write(self) -> None:
        mailbox, kind = self.session.mailbox, self.kind
        while self.is_current and not self._ended.done():
            data = mailbox.take(kind)
            if data is None and self._draining:
                self.end(None)
            elif data is None:
                await mailbox.wait(kind)
            else:
                try:
                    await self._context.write(data)
                except grpc.aio.BaseError:  # the RM has gone: gRPC is about to cancel us
                    break
        await self._ended
