"""One stream of a resource manager (RM): its reader, its writer, and its end.

Streams carry bytes rather than parsed messages. An unparsable message thus becomes an error of the
sender with a status of its own, and joined messages are never parsed again. See D109.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from quadriga.base.times import SECOND
from quadriga.si.api import Outcome, RequestError
from quadriga.si.extension.extension_pb2 import Callback, Refused
from quadriga.si.items import count
from quadriga.si.server.authentication import Context
from quadriga.si.server.channels import ALLOCATION, CALLBACK, MESSAGE_OF, NODE
from quadriga.si.server.delivery.flow_control import FlowControl
from quadriga.si.server.limits import Limits
from quadriga.si.server.session import Session
from quadriga.si.server.status import StatusError, status_of

#: gRPC may report a broken stream as half-closed first; the cancellation follows within this time,
#: in s
_CANCEL_GRACE_S = 0.2


def parse(message: type[Any], data: bytes) -> Any:
    """Parse a message. Raises `StatusError` for invalid bytes."""
    try:
        return message.FromString(data)
    except DecodeError:
        name = message.DESCRIPTOR.full_name
        raise StatusError(
            grpc.StatusCode.INVALID_ARGUMENT, "I1", f"{len(data)} bytes are not a {name}"
        ) from None


def rm_id_of(channel: int, message: Any) -> str:
    """The rmID that the first message of a stream names; it may be empty."""
    if channel != CALLBACK:
        rm_id: str = message.rmID
        return rm_id
    if message.WhichOneof("answer") != "hello":
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, "I4", "the first answer must be hello")
    return str(message.hello.rmID)


class Stream:
    """``submit`` hands a request to the scheduler. ``on_half_close`` is called after the last
    request, ``on_hello`` when the RM has announced its callbacks."""

    def __init__(
        self,
        channel: int,
        session: Session,
        context: Context,
        limits: Limits,
        *,
        submit: Callable[[Any, Outcome], None],
        on_half_close: Callable[[Stream], None],
        on_hello: Callable[[Session], Awaitable[None]],
    ) -> None:
        self.channel = channel
        self.session = session
        self._context = context
        self._limits = limits
        self._submit = submit
        self._on_half_close = on_half_close
        self._on_hello = on_hello
        #: whether the stream ends as soon as no message waits
        self._draining = False
        self._flow_control = FlowControl(
            limits.window, limits.window_items, self._on_refusal, self._on_failure
        )
        self._ended: asyncio.Future[StatusError | None] = asyncio.get_running_loop().create_future()

    def end(self, status: StatusError | None) -> None:
        """End the stream with this status; ``None`` is success."""
        if not self._ended.done():
            self._ended.set_result(status)

    def drain(self) -> None:
        """End the stream with success as soon as all waiting messages are written."""
        self._draining = True
        self.session.mailbox.wake(self.channel)

    @property
    def is_current(self) -> bool:
        """Whether this is the current stream of its channel, and its session has not ended."""
        return self.session.ended is None and self.session.streams.get(self.channel) is self

    async def run(self, first: Any | None) -> StatusError | None:
        """Run until the stream ends, and return its status. ``first`` is the message that has been
        read already to learn the rmID."""
        tasks = [asyncio.create_task(self._read(first)), asyncio.create_task(self._write())]
        parts: list[asyncio.Future[Any]] = [self._ended, *tasks]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and (error := task.exception()) is not None:
                    if isinstance(error, StatusError):
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
        """Read requests one after the other, no faster than the scheduler processes them."""
        session = self.session
        while True:
            if message is None:
                await session.mailbox.wait_until_keeping_up()
                try:
                    data = await self._context.read()
                except grpc.aio.BaseError:  # connection lost: gRPC cancels this task soon
                    await self._ended
                    return
                if data is grpc.aio.EOF:
                    break
                message = parse(MESSAGE_OF[self.channel], data)
                wait = session.requests.take(monotonic_ns())
                if wait > 0:
                    await asyncio.sleep(wait / SECOND)
            if self.channel == CALLBACK:
                await self._handle_answer(message)
            else:
                await self._handle_request(message)
            message = None
        await self._flow_control.empty()
        # gRPC reports a broken stream as half-closed first, and then cancels this task
        await asyncio.sleep(_CANCEL_GRACE_S)
        self._on_half_close(self)
        await self._ended  # responses of the scheduler still go out

    async def _handle_request(self, message: Any) -> None:
        session = self.session
        items = count(message)
        if (wait := session.items.take(monotonic_ns(), items)) > 0:  # also if they are too many
            await asyncio.sleep(wait / SECOND)
        if items > self._limits.items:
            name, most = type(message).__name__, self._limits.items
            reason = f"{items} items in one {name}, at most {most}"
            if session.mailbox.is_in_order:
                session.count_request(self.channel)
                self._send_refusal(message, f"{name}.: {reason}")
                return
            raise StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, "I11", reason)
        if message.rmID != session.rm_id:
            if message.rmID:
                raise StatusError(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "I11",
                    f"this stream is of resource manager {session.rm_id!r}, not {message.rmID!r}",
                )
            message.rmID = session.rm_id
        if session.pending_registration is not None:
            await session.registration_settled()
        if not self.is_current or session.leaving:
            await self._ended
            return
        session.count_request(self.channel)
        if not items:
            return  # the message only names the resource manager
        if session.client_clock:
            self._hold_for_step(message)
            return
        self._invalidate_answers(message)
        flow_control = self._flow_control
        try:
            self._submit(message, flow_control.send(message, items))
        except RuntimeError as error:  # the scheduler has been stopped
            raise StatusError(grpc.StatusCode.UNAVAILABLE, "I8", str(error)) from None
        if flow_control.error is not None:
            raise self._status_of(flow_control.error)
        await flow_control.room()

    def _on_refusal(self, error: BaseException, message: Any) -> BaseException | None:
        """The scheduler refused a request; called in its thread. An RM with ordered messages learns
        of it in Callbacks, and its streams stay open: if they ended, its other requests would have
        to be sent again."""
        if self.session.mailbox.is_in_order and isinstance(error, RequestError):
            if not status_of(error).register_again:
                self._send_refusal(message, str(error))
                return None
        return error

    def _send_refusal(self, message: Any, reason: str) -> None:
        self.session.mailbox.add_unnumbered(
            Callback(
                refused=Refused(
                    channel=self.channel,  # type: ignore[arg-type]
                    request=message.SerializeToString(),
                    reason=reason,
                )
            )
        )

    def _on_failure(self) -> None:
        if self._flow_control.error is not None:
            self.end(self._status_of(self._flow_control.error))

    def _status_of(self, error: BaseException) -> StatusError:
        """The status for an error of the scheduler."""
        if not isinstance(error, RequestError):
            return StatusError(grpc.StatusCode.UNAVAILABLE, "I8", f"{error}")
        status = status_of(error)
        if status.register_again:
            self.session.end(status)
        return status

    def _hold_for_step(self, message: Any) -> None:
        """Keep the request until a step of the client's clock names it."""
        session = self.session
        session.inbound[self.channel].append(message)
        session.inbound_bytes += message.ByteSize()
        session.request_arrived.set()
        if session.inbound_bytes > self._limits.backlog_bytes:
            raise StatusError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "Step",
                f"more than {self._limits.backlog_bytes} bytes of requests wait for a step",
            )

    def _invalidate_answers(self, message: Any) -> None:
        """Invalidate the answers about asks and nodes that this request mentions."""
        questions = self.session.questions
        if questions.predicates is None:
            return  # the RM has no predicates
        if self.channel == NODE:
            for node in message.nodes:
                questions.node_changed(node.nodeID)
        elif self.channel == ALLOCATION:
            releases = message.releases
            for changed in (
                *message.asks,
                *message.allocations,
                *releases.allocationAsksToRelease,
                *(each for each in releases.allocationsToRelease if not each.UUID),
            ):
                questions.ask_changed(changed.allocationKey)

    async def _handle_answer(self, message: Any) -> None:
        """Handle an answer of the Callbacks stream."""
        session = self.session
        if not self.is_current:
            await self._ended
            return
        session.received[self.channel] += 1
        kind = message.WhichOneof("answer")
        if kind == "hello":
            if message.hello.rmID not in ("", session.rm_id):
                raise StatusError(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "I4",
                    f"this stream is of resource manager {session.rm_id!r}",
                )
            await self._handle_hello(message.hello)
        elif kind == "predicates":
            session.questions.predicates_answered(message.predicates)
        elif kind == "preemptionPredicates":
            session.questions.preemption_answered(message.preemptionPredicates)
        elif kind == "stateDump":
            session.questions.state_dump_answered(message.stateDump)
        elif kind == "received":
            session.mailbox.confirm(message.received)
        else:
            raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, "I4", "an answer without content")

    async def _handle_hello(self, hello: Any) -> None:
        hello.rmID = self.session.rm_id
        self.session.announce_callbacks(hello)
        await self._on_hello(self.session)

    # -- out -------------------------------------------------------------------------------------

    async def _write(self) -> None:
        mailbox, channel = self.session.mailbox, self.channel
        while self.is_current and not self._ended.done():
            data = mailbox.take(channel)
            if data is None and self._draining:
                self.end(None)
            elif data is None:
                await mailbox.wait(channel)
            else:
                try:
                    await self._context.write(data)
                except grpc.aio.BaseError:  # connection lost: gRPC cancels this task soon
                    break
        await self._ended
