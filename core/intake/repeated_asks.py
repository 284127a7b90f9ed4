"""Repeated asks: each differs from the one before in nothing but its key.

An application asks for its pods with many such asks in one request. The first of them is read and added
like any other ask. Those that follow are recognized by their bytes and are never decoded. Where the
repetition ends, they join the group of the first one and are counted as pending, all at once. Messages,
events and accounting are the same as if each ask had been added alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model import accounting
from quadriga.core.steps import gang

if TYPE_CHECKING:
    from quadriga.core.intake.fires import AskFires
    from quadriga.core.model.ask import Ask
    from quadriga.core.runtime.kernel import Kernel

#: the first byte of an encoded text or message in field 1, such as the ``allocationKey`` of an ask or of
#: an allocation; its length follows in one byte or more, then its content
_FIELD_1: Final = b"\n"[0]
#: the first byte of each of a request's ``asks`` (field 1), and of each of its ``allocations`` (field 4)
ASKS: Final = _FIELD_1
ALLOCATIONS: Final = b'"'[0]
#: lengths below this are encoded in one byte
_ONE_BYTE: Final = 128
#: the number of bytes before the key of a short ask: field and length of the ask, then of the key
_PREFIX: Final = 4


class EncodedAsks:
    """The encoded asks of a request, which stand in ``field``, the first field of the encoding.

    ``at`` is the position of the next ask.
    """

    __slots__ = ("at", "field", "wire")

    def __init__(self, wire: bytes, field: int) -> None:
        self.wire = wire + bytes(_PREFIX)  # so that the prefix after the last ask can be read
        self.field = field
        self.at = 0

    def read(self) -> bytes:
        """The content of the next ask; the position moves on to the one after it."""
        length, start = _length(self.wire, self.at + 1)
        self.at = start + length
        return self.wire[start : self.at]


def _length(wire: bytes, at: int) -> tuple[int, int]:
    """The length that is encoded at a position, seven bits a byte and the lowest first, and the position
    after it."""
    length = shift = 0
    while wire[at] >= _ONE_BYTE:
        length |= (wire[at] - _ONE_BYTE) << shift
        shift += 7
        at += 1
    return length | wire[at] << shift, at + 1


def add_repeated(
    kernel: Kernel, first: Ask, own: bytes, encoded: EncodedAsks, most: int, fires: AskFires
) -> int:
    """Add the asks that follow and repeat ``first``, which was added just now and whose content is
    ``own``. Returns their number, at most ``most``."""
    rest = _after_key(own) if _can_be_repeated(first, fires) else None
    if rest is None:
        return 0
    app = first.app
    partition, known, now = app.partition, app.asks, kernel.now
    seq = partition.waiting.arrivals
    wire, at, field = encoded.wire, encoded.at, encoded.field
    by_key, allocated_keys = first.terms.by_key, app.serial
    width, prefix = 0, b""
    asks = []
    for _ in range(most):
        start = at + _PREFIX
        if wire[at:start] != prefix:  # the key has another length than the one before
            width = wire[start - 1]
            prefix = _prefix(field, width, len(rest))
            if wire[at:start] != prefix:
                break
        tail = start + width
        end = tail + len(rest)
        if wire[tail:end] != rest:
            break
        key = wire[start:tail].decode()
        if key in known or (by_key and key in allocated_keys):
            break
        seq += 1
        at = end
        ask = known[key] = first.like(key, seq, now)
        asks.append(ask)
    partition.waiting.arrivals, encoded.at = seq, at
    if asks:
        _enter(kernel, first, asks, fires)
    return len(asks)


def _after_key(content: bytes) -> bytes | None:
    """The content of an ask after its key; ``None`` if it does not begin with the key."""
    if content[0] != _FIELD_1:
        return None
    length, at = _length(content, 1)
    return content[at + length :]


def _prefix(field: int, key: int, rest: int) -> bytes:
    """The bytes before a key of length ``key`` that ``rest`` bytes follow; empty if the ask is too long
    for a length of one byte."""
    length = 2 + key + rest
    return bytes((field, length, _FIELD_1, key)) if length < _ONE_BYTE else b""


def _can_be_repeated(ask: Ask, fires: AskFires) -> bool:
    """Whether one more such ask changes nothing but the length of the group in which it waits."""
    group = ask.group
    return (
        group is not None
        and not ask.terms.allow_preempt_other
        and (
            group.reserve_timer is not None
            or group.reservable
            or ask.app.partition.reservation_bounds.holds(group)
        )
        and fires.application.idles(ask.app.state, fires.asked)
    )


def _enter(kernel: Kernel, first: Ask, asks: list[Ask], fires: AskFires) -> None:
    """Let the repeated asks wait with the first one, and count them as pending."""
    partition, group = first.app.partition, first.group
    assert group is not None
    taken = kernel.fire_all(fires.ask, asks, fires.submit)
    kernel.journal.add_all(kernel.now, taken, kernel.cause)
    partition.rm.observer.asks_added(asks)
    group.extend(asks)
    partition.waiting.demand_epoch += len(asks)
    partition.hints.asks.update(dict.fromkeys(asks))
    more = len(asks) * first.pending
    accounting.add_pending(first, more)
    if first.kind.placeholder:
        gang.count_pending(first, more)
