"""One connection of a resource manager to the scheduler: its four streams, and the messages on
them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc
from grpc.aio import EOF

from quadriga.si.client.callbacks import Ask, answer, hello
from quadriga.si.client.channels import Metadata
from quadriga.si.client.errors import details_of, max_message_bytes
from quadriga.si.client.registration import Registration
from quadriga.si.client.streams import STREAMS
from quadriga.si.extension.extension_pb2 import CALLBACK, Callback, CallbackAnswer, Channel, Refused
from quadriga.si.wire import RECEIVED, from_counts, to_counts

_CALLBACKS: Final = "/quadriga.v1.Extension/Callbacks"


class ConnectionLost(Exception):
    """The connection is lost. `error` is gRPC's error, if there is one."""

    def __init__(self, error: grpc.RpcError | None, why: str = "the scheduler ended it") -> None:
        super().__init__(error, why)
        self.error = error
        self.why = why if error is None else details_of(error)


class Connection:
    """`open` opens the streams; `run` runs until the connection is lost.

    `on_messages` is called when messages have arrived, `on_taken` when the scheduler has taken
    requests, `on_refused` when it has refused one. `ask` calls a method of the callback.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        metadata: Metadata,
        registration: Registration,
        *,
        ask: Ask,
        on_messages: Callable[[], None],
        on_taken: Callable[[], None],
        on_refused: Callable[[Refused], None],
    ) -> None:
        self._channel = channel
        self._metadata = (*metadata, *registration.metadata)
        self._registration = registration
        self._outgoing = registration.outgoing
        self._incoming = registration.incoming
        self._ask = ask
        self._on_messages = on_messages
        self._on_taken = on_taken
        self._on_refused = on_refused
        self._wake_sender = asyncio.Event()
        self._replies: asyncio.Queue[CallbackAnswer] = asyncio.Queue()
        self._callbacks: Any = None
        self._calls: dict[Channel, Any] = {}

    async def open(self) -> None:
        """Open the streams and resume where the last connection broke. Raises `ConnectionLost`."""
        greeting = hello(self._registration.rm_id, self._registration.callback)
        greeting.received.CopyFrom(to_counts(self._incoming.received))
        try:
            self._callbacks = self._channel.stream_stream(
                _CALLBACKS, CallbackAnswer.SerializeToString, Callback.FromString
            )(metadata=self._of(CALLBACK))
            await self._callbacks.write(CallbackAnswer(hello=greeting))
            while (first := await self._callbacks.read()) is not EOF:
                if first.HasField("ready"):
                    break
                self._handle(first)  # messages that arose while the connection was lost
            else:
                raise ConnectionLost(await _status(self._callbacks))
            for stream in STREAMS:
                await self._open(stream)
        except grpc.RpcError as error:
            raise ConnectionLost(error) from None
        except asyncio.InvalidStateError:  # a write on a call that has ended
            raise ConnectionLost(await _status(self._callbacks)) from None

    async def run(self) -> None:
        """Exchange messages until the connection is lost. Raises `ConnectionLost`; requests that
        were not sent stay queued."""
        work = (
            self._send(),
            self._reply(),
            self._receive_callbacks(),
            *map(self._receive, STREAMS),
        )
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            raise _most_telling([error for task in done if (error := task.exception()) is not None])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.close()

    def close(self) -> None:
        """Cancel the streams."""
        for call in (self._callbacks, *self._calls.values()):
            if call is not None:
                call.cancel()
        self._incoming.lose()

    def wake(self) -> None:
        """Wake up the sender: a request is queued."""
        self._wake_sender.set()

    def confirm(self, delivered: Mapping[Channel, int]) -> None:
        """Confirm to the scheduler which messages have been delivered, so that it need not keep
        them."""
        self._replies.put_nowait(CallbackAnswer(received=to_counts(delivered)))

    # -- streams ---------------------------------------------------------------------------------

    def _of(self, stream: Channel) -> Metadata:
        return (*self._metadata, (RECEIVED, str(self._incoming.received[stream])))

    async def _open(self, stream: Channel) -> None:
        row = STREAMS[stream]
        call: Any = self._channel.stream_stream(row.method, None, row.read)(
            metadata=self._of(stream)
        )
        self._calls[stream] = call
        metadata = dict([*(await call.initial_metadata() or ())])
        if RECEIVED not in metadata:  # the stream was refused; its status tells why
            raise ConnectionLost(await _status(call))
        self._outgoing.resume(stream, int(metadata[RECEIVED]))
        too_large = self._registration.too_large
        if too_large is not None and too_large[0] == stream:
            self._registration.too_large = None
            self._drop_too_large(*too_large)
        self._on_taken()
        self.wake()

    def _drop_too_large(self, stream: Channel, limit: int) -> None:
        """Drop requests that are too large for the server: each of them would end the stream
        again."""
        name = STREAMS[stream].request.__name__
        for data in self._outgoing.drop_larger_than(stream, limit):
            reason = f"{name}.: has {len(data)} bytes, the scheduler lets in {limit} at once"
            self._on_refused(Refused(channel=stream, request=data, reason=reason))

    # -- out -------------------------------------------------------------------------------------

    async def _send(self) -> None:
        while True:
            self._wake_sender.clear()
            try:
                while (request := self._outgoing.next()) is not None:
                    await self._calls[request.stream].write(request.data)
            except (grpc.RpcError, asyncio.InvalidStateError):
                pass  # the reader of this stream reports the error
            await self._wake_sender.wait()

    async def _reply(self) -> None:
        try:
            while True:
                await self._callbacks.write(await self._replies.get())
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # the reader of this stream reports the error

    # -- in --------------------------------------------------------------------------------------

    async def _receive(self, stream: Channel) -> None:
        call = self._calls[stream]
        try:
            while (message := await call.read()) is not EOF:
                self._incoming.arrive(stream, message)
                self._on_messages()
                await self._registration.room()
            raise ConnectionLost(await _status(call))
        except grpc.RpcError as error:
            if (limit := max_message_bytes(error)) is not None:
                self._registration.too_large = stream, limit
            raise ConnectionLost(error) from None

    async def _receive_callbacks(self) -> None:
        questions: set[asyncio.Task[None]] = set()
        try:
            while (message := await self._callbacks.read()) is not EOF:
                if not self._handle(message):
                    # in a task of its own: other messages arrive while a question waits for its
                    # answer
                    task = asyncio.create_task(self._answer(message))
                    questions.add(task)
                    task.add_done_callback(questions.discard)
            raise ConnectionLost(await _status(self._callbacks))
        except grpc.RpcError as error:
            raise ConnectionLost(error) from None
        finally:
            for task in questions:
                task.cancel()

    def _handle(self, message: Callback) -> bool:
        """Handle a message that needs no answer. Return False for a question."""
        kind = message.WhichOneof("callback")
        if kind == "order":
            if not self._incoming.order(message.order.first, message.order.messages):
                raise ConnectionLost(None, "the order of messages has a gap")
        elif kind == "taken":
            self._outgoing.taken(from_counts(message.taken))
            self._on_taken()
            self.wake()
        elif kind in ("events", "schedulingStates"):
            self._incoming.arrive(CALLBACK, message)
        elif kind == "refused":
            self._on_refused(message.refused)
        else:
            return False
        self._on_messages()
        return True

    async def _answer(self, question: Callback) -> None:
        reply = await answer(question, self._registration.callback, self._ask)
        if reply is not None:
            self._replies.put_nowait(reply)


def _most_telling(errors: list[BaseException]) -> BaseException:
    """The most informative of several errors: a programming error first, then an error that says
    more than that the connection has ended."""

    def rank(error: BaseException) -> int:
        if not isinstance(error, ConnectionLost):
            return 0
        if not isinstance(error.error, grpc.aio.AioRpcError):
            return 3
        return 2 if error.error.code() is grpc.StatusCode.UNAVAILABLE else 1

    return min(errors, key=rank)


async def _status(call: Any) -> grpc.RpcError | None:
    """The status of a call that has ended."""
    code = await call.code()
    if code is grpc.StatusCode.OK:
        return None
    return grpc.aio.AioRpcError(
        code,
        await call.initial_metadata(),
        await call.trailing_metadata(),
        details=await call.details(),
    )
