"""One step of a client's clock: requests that have come in the streams, in the order that the client
names, at the instant that it names. What follows is put on the streams; the order is told."""

from __future__ import annotations

import asyncio
from collections import Counter

import grpc

from quadriga.si.api import RequestError
from quadriga.si.extension.extension_pb2 import Refusal, StepRequest, StepResponse
from quadriga.si.server.channels import SI_CHANNELS
from quadriga.si.server.driver import Driver
from quadriga.si.server.limits import Limits
from quadriga.si.server.owner import OneThread
from quadriga.si.server.session import Session
from quadriga.si.server.statuses import Ending, of_request
from quadriga.si.wire import Request

__all__ = ["step"]

#: ns; 146 years, so that what is added to it is still a number of the protocol
_LATEST = 2**62

_INVALID = grpc.StatusCode.INVALID_ARGUMENT


async def step(
    owner: OneThread, session: Session, request: StepRequest, limits: Limits
) -> StepResponse:
    """Raises `Ending` for a step that makes no sense; then nothing has happened."""
    if len(request.requests) > limits.step_requests:
        raise Ending(_INVALID, "Step", f"names more than {limits.step_requests} requests")
    if request.limit < 0:
        raise Ending(_INVALID, "Step", f"limit {request.limit} is negative")
    if request.now > _LATEST:
        raise Ending(_INVALID, "Step", f"now {request.now} is after {_LATEST} ns")
    requests = await _named(session, request)
    now, schedule = request.now, request.schedule

    def play(driver: Driver) -> StepResponse:
        refused = driver.play(
            now, requests, advance=request.advance, schedule=schedule, limit=request.limit or None
        )
        response = StepResponse(unfinished=schedule and driver.scheduler.unfinished)
        deadline = driver.scheduler.next_deadline()
        if deadline is not None and deadline <= _LATEST:
            response.nextDeadline = deadline
        for place, error in refused:
            response.refused.append(Refusal(place=place, reason=str(error)))
        return response

    try:
        # to its end, whoever still waits for it: requests were taken
        response = await asyncio.shield(asyncio.wrap_future(owner.call(play)))
    except RequestError as error:
        raise of_request(error) from None
    response.messages.extend(session.mailbox.take_order())  # type: ignore[arg-type]
    return response


async def _named(session: Session, request: StepRequest) -> list[Request]:
    """Take the requests from the streams, once all are there."""
    counts = Counter(request.requests)
    if strange := counts.keys() - {*SI_CHANNELS}:
        raise Ending(_INVALID, "Step", f"channel {min(strange)} has no requests")
    while any(len(session.inbound[kind]) < count for kind, count in counts.items()):
        if session.over is not None:
            raise session.over
        session.arrived.clear()
        await session.arrived.wait()
    if session.over is not None:
        raise session.over
    requests = [session.inbound[kind].popleft() for kind in request.requests]
    session.inbound_bytes -= sum(message.ByteSize() for message in requests)
    return requests
