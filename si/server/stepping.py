"""One step of a client's clock: process requests that came on the streams, at an instant and in an
order that the client names.

The resulting messages go out on the streams; the response names their order.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import grpc

from quadriga.si.api import RequestError
from quadriga.si.extension.extension_pb2 import Refusal, StepRequest, StepResponse
from quadriga.si.server.channels import SI_CHANNELS
from quadriga.si.server.driver import Driver
from quadriga.si.server.limits import Limits
from quadriga.si.server.session import Session
from quadriga.si.server.single_thread import SingleThreadDriver
from quadriga.si.server.status import StatusError, status_of
from quadriga.si.wire import Request

#: ns, 146 years: the sum of an instant and a timeout still fits the protocol
_LATEST = 2**62

_INVALID = grpc.StatusCode.INVALID_ARGUMENT


async def step(
    owner: SingleThreadDriver, session: Session, request: StepRequest, limits: Limits
) -> StepResponse:
    """Make one step. Raises `StatusError` for an invalid one, which changes nothing."""
    if len(request.requests) > limits.step_requests:
        raise StatusError(_INVALID, "Step", f"names more than {limits.step_requests} requests")
    if request.limit < 0:
        raise StatusError(_INVALID, "Step", f"limit {request.limit} is negative")
    if request.now > _LATEST:
        raise StatusError(_INVALID, "Step", f"now {request.now} is after {_LATEST} ns")
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
        # the step is completed even if the caller stops waiting: its requests have been taken
        response = await asyncio.shield(asyncio.wrap_future(owner.call(play)))
    except RequestError as error:
        raise status_of(error) from None
    response.messages.extend(session.mailbox.take_order())  # type: ignore[arg-type]
    return response


async def _named(session: Session, request: StepRequest) -> list[Request]:
    """Take the named requests from the session, once all of them have arrived."""
    counts = Counter(request.requests)
    if strange := counts.keys() - {*SI_CHANNELS}:
        raise StatusError(_INVALID, "Step", f"channel {min(strange)} has no requests")
    while any(len(session.inbound[channel]) < count for channel, count in counts.items()):
        if session.ended is not None:
            raise session.ended
        session.request_arrived.clear()
        await session.request_arrived.wait()
    if session.ended is not None:
        raise session.ended
    requests = [session.inbound[channel].popleft() for channel in request.requests]
    session.inbound_bytes -= sum(message.ByteSize() for message in requests)
    return requests
