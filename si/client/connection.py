"""One connection of a resource manager to the scheduler: four streams, and what goes through them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc
from grpc.aio import EOF

from quadriga.si.client.answers import Ask, answer, hello
from quadriga.si.client.errors import most_bytes, said_by
from quadriga.si.client.line import Metadata
from quadriga.si.client.registration import Registration
from quadriga.si.client.streams import STREAMS
from quadriga.si.extension.extension_pb2 import (
    CALLBACK,
    Callback,
    CallbackAnswer,
    Channel,
    Refused,
)
from quadriga.si.wire import RECEIVED, counted, counts

__all__ = ["Connection", "Lost"]

_CALLBACKS: Final = "/quadriga.v1.Extension/Callbacks"


class Lost(Exception):
    """The connection is over. `error` is what gRPC says of it, if it says anything."""

    def __init__(self, error: grpc.RpcError | None, why: str = "the scheduler ended it") -> None:
        super().__init__(error, why)
        self.error = error
        self.why = why if error is None else said_by(error)


class Connection:
    """`open` opens the streams; `run` goes on until the connection is lost.

    `heard` is called when messages may be taken from what comes in, `taken` when requests were taken
    by the scheduler, `refused` when it has refused one. `ask` calls a method of the
    callback.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        metadata: Metadata,
        registration: Registration,
        *,
        ask: Ask,
        heard: Callable[[], None],
        taken: Callable[[], None],
        refused: Callable[[Refused], None],
    ) -> None:
        self._channel = channel
        self._metadata = (*metadata, *registration.metadata)
        self._registration = registration
        self._outgoing = registration.outgoing
        self._incoming = registration.incoming
        self._ask = ask
        self._heard = heard
        self._taken = taken
        self._refused = refused
        self._something_to_say = asyncio.Event()
        self._replies: asyncio.Queue[CallbackAnswer] = asyncio.Queue()
        self._callbacks: Any = None
        self._calls: dict[Channel, Any] = {}

    async def open(self) -> None:
        """Go on where the last connection broke off. Raises `Lost`."""
        said = hello(self._registration.rm_id, self._registration.callback)
        said.received.CopyFrom(counts(self._incoming.received))
        try:
            self._callbacks = self._channel.stream_stream(
                _CALLBACKS, CallbackAnswer.SerializeToString, Callback.FromString
            )(metadata=self._of(CALLBACK))
            await self._callbacks.write(CallbackAnswer(hello=said))
            while (first := await self._callbacks.read()) is not EOF:
                if first.HasField("ready"):
                    break
                self._take_in(first)  # what was said while we were away
            else:
                raise Lost(await _status(self._callbacks))
            for stream in STREAMS:
                await self._open(stream)
        except grpc.RpcError as error:
            raise Lost(error) from None
        except asyncio.InvalidStateError:  # what grpc.aio makes of a write on a call that is over
            raise Lost(await _status(self._callbacks)) from None

    async def run(self) -> None:
        """Talk until the connection is lost. Raises `Lost`; what was not said stays where it was."""
        work = (self._say(), self._reply(), self._hear_callbacks(), *map(self._hear, STREAMS))
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            raise _worst([error for task in done if (error := task.exception()) is not None])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.close()

    def close(self) -> None:
        """End the streams, as a client that is gone would."""
        for call in (self._callbacks, *self._calls.values()):
            if call is not None:
                call.cancel()
        self._incoming.lose()

    def say(self) -> None:
        """There is something to say."""
        self._something_to_say.set()

    def confirm(self, delivered: Mapping[Channel, int]) -> None:
        """So much was heard, and need not be kept any longer."""
        self._replies.put_nowait(CallbackAnswer(received=counts(delivered)))

    # -- streams ---------------------------------------------------------------------------------

    def _of(self, stream: Channel) -> Metadata:
        return (*self._metadata, (RECEIVED, str(self._incoming.received[stream])))

    async def _open(self, stream: Channel) -> None:
        row = STREAMS[stream]
        call: Any = self._channel.stream_stream(row.method, None, row.read)(
            metadata=self._of(stream)
        )
        self._calls[stream] = call
        told = dict([*(await call.initial_metadata() or ())])
        if RECEIVED not in told:  # it was not bound, and says why in its status
            raise Lost(await _status(call))
        self._outgoing.resume(stream, int(told[RECEIVED]))
        too_large = self._registration.too_large
        if too_large is not None and too_large[0] == stream:
            self._registration.too_large = None
            self._give_up(*too_large)
        self._taken()
        self.say()

    def _give_up(self, stream: Channel, most: int) -> None:
        """What is too large would end the stream again and again."""
        name = STREAMS[stream].request.__name__
        for data in self._outgoing.forgo(stream, most):
            said = f"{name}.: has {len(data)} bytes, the scheduler lets in {most} at once"
            self._refused(Refused(channel=stream, request=data, reason=said))

    # -- out -------------------------------------------------------------------------------------

    async def _say(self) -> None:
        while True:
            self._something_to_say.clear()
            try:
                while (said := self._outgoing.next()) is not None:
                    await self._calls[said.stream].write(said.data)
            except (grpc.RpcError, asyncio.InvalidStateError):
                pass  # whoever listens to this stream knows more
            await self._something_to_say.wait()

    async def _reply(self) -> None:
        try:
            while True:
                await self._callbacks.write(await self._replies.get())
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # likewise

    # -- in --------------------------------------------------------------------------------------

    async def _hear(self, stream: Channel) -> None:
        call = self._calls[stream]
        try:
            while (message := await call.read()) is not EOF:
                self._incoming.arrive(stream, message)
                self._heard()
                await self._registration.room()
            raise Lost(await _status(call))
        except grpc.RpcError as error:
            if (most := most_bytes(error)) is not None:
                self._registration.too_large = stream, most
            raise Lost(error) from None

    async def _hear_callbacks(self) -> None:
        questions: set[asyncio.Task[None]] = set()
        try:
            while (said := await self._callbacks.read()) is not EOF:
                if not self._take_in(said):
                    # not here: while a question waits for its answer, other things are said
                    task = asyncio.create_task(self._answer(said))
                    questions.add(task)
                    task.add_done_callback(questions.discard)
            raise Lost(await _status(self._callbacks))
        except grpc.RpcError as error:
            raise Lost(error) from None
        finally:
            for task in questions:
                task.cancel()

    def _take_in(self, said: Callback) -> bool:
        """What needs no answer; whether it is that."""
        kind = said.WhichOneof("callback")
        if kind == "order":
            if not self._incoming.order(said.order.first, said.order.messages):
                raise Lost(None, "the order of messages has a gap")
        elif kind == "taken":
            self._outgoing.taken(counted(said.taken))
            self._taken()
            self.say()
        elif kind in ("events", "schedulingStates"):
            self._incoming.arrive(CALLBACK, said)
        elif kind == "refused":
            self._refused(said.refused)
        else:
            return False
        self._heard()
        return True

    async def _answer(self, question: Callback) -> None:
        told = await answer(question, self._registration.callback, self._ask)
        if told is not None:
            self._replies.put_nowait(told)


def _worst(errors: list[BaseException]) -> BaseException:
    """Of streams that end at once: a mistake of ours, then one that says more than that it is over."""

    def rank(error: BaseException) -> int:
        if not isinstance(error, Lost):
            return 0
        if not isinstance(error.error, grpc.aio.AioRpcError):
            return 3
        return 2 if error.error.code() is grpc.StatusCode.UNAVAILABLE else 1

    return min(errors, key=rank)


async def _status(call: Any) -> grpc.RpcError | None:
    """What a call that is over says of its end."""
    code = await call.code()
    if code is grpc.StatusCode.OK:
        return None
    return grpc.aio.AioRpcError(
        code,
        await call.initial_metadata(),
        await call.trailing_metadata(),
        details=await call.details(),
    )
