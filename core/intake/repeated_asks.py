"""Asks that arrive in rows: each like the one before, but for its key.

Applications ask for their pods with many asks that say the same. The first of a row is read and
taken up as any ask (``asking``); those that follow are recognised by their bytes, and are never read
as messages. At the end of the row they join its group and are counted as pending, all together. What
is said and written of them is what would have been, had each been taken up alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model import accounting
from quadriga.core.scheduling import gang
from quadriga.fsm import APPLICATION, ASK
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["ALLOCATIONS", "ASKS", "Spelled", "take_row"]

#: a text or a message that is field 1, as ``allocationKey`` is in an ask and in an allocation, is this
#: byte, the length in one byte or more, and the bytes of the content
_FIELD_1: Final = b"\n"[0]
#: so begins each of the request's ``asks``, which is field 1, and of its ``allocations``, field 4
ASKS: Final = _FIELD_1
ALLOCATIONS: Final = b'"'[0]
#: lengths below this are spelled in one byte
_SHORT: Final = 128
#: so many bytes stand before a short key: the ask's field and length, and its own
_HEAD: Final = 4


class Spelled:
    """The asks of a request as they are spelled: in ``field``, which comes first in it; ``at`` is where
    the next one begins."""

    __slots__ = ("at", "field", "wire")

    def __init__(self, wire: bytes, field: int) -> None:
        self.wire = wire + bytes(_HEAD)  # so that one may look ahead
        self.field = field
        self.at = 0

    def read(self) -> bytes:
        """The next one."""
        length, begin = _length(self.wire, self.at + 1)
        self.at = begin + length
        return self.wire[begin : self.at]


def _length(wire: bytes, at: int) -> tuple[int, int]:
    """The length that is spelled here, seven bits in each byte, the lowest first; and where it ends."""
    length = shift = 0
    while wire[at] >= _SHORT:
        length |= (wire[at] - _SHORT) << shift
        shift += 7
        at += 1
    return length | wire[at] << shift, at + 1


def take_row(kernel: Kernel, first: Ask, own: bytes, spelled: Spelled, most: int) -> int:
    """Take up those that follow and are like ``first``, whose ``own`` bytes were read and which was taken
    up just now; how many these are, of ``most`` that are left."""
    rest = _without_key(own) if _is_plain(first) else None
    if rest is None:
        return 0
    app = first.app
    partition, known, now = app.partition, app.asks, kernel.now
    seq = partition.waiting.arrivals
    wire, at, field = spelled.wire, spelled.at, spelled.field
    by_key, given = first.terms.by_key, app.serial
    width, head = 0, b""
    asks = []
    for _ in range(most):
        begin = at + _HEAD
        if wire[at:begin] != head:  # a key of another length than the last one
            width = wire[begin - 1]
            head = _head_of(field, width, len(rest))
            if wire[at:begin] != head:
                break
        tail = begin + width
        end = tail + len(rest)
        if wire[tail:end] != rest:
            break
        key = wire[begin:tail].decode()
        if key in known or (by_key and key in given):
            break
        seq += 1
        at = end
        ask = known[key] = first.like(key, seq, now)
        asks.append(ask)
    partition.waiting.arrivals, spelled.at = seq, at
    if asks:
        _enter(kernel, first, asks)
    return len(asks)


def _without_key(spelled: bytes) -> bytes | None:
    """The bytes of an ask without its key; ``None`` if they do not begin with it."""
    if spelled[0] != _FIELD_1:
        return None
    length, at = _length(spelled, 1)
    return spelled[at + length :]


def _head_of(field: int, key: int, rest: int) -> bytes:
    """What stands before a key of this length, if so much follows it; empty where lengths are spelled in
    more than a byte."""
    length = 2 + key + rest
    return bytes((field, length, _FIELD_1, key)) if length < _SHORT else b""


def _is_plain(ask: Ask) -> bool:
    """Whether one more of these changes nothing but the length of the group it waits in."""
    group = ask.group
    return (
        group is not None
        and not ask.terms.allow_preempt_other
        and (group.reserve_timer is not None or group.reservable)
        and APPLICATION.idles(ask.app.state, application_fsm.ASK)
    )


def _enter(kernel: Kernel, first: Ask, asks: list[Ask]) -> None:
    """Those of the row wait with the first one, and are counted as pending."""
    partition, group = first.app.partition, first.group
    assert group is not None
    taken = kernel.fire_all(ASK, asks, ask_fsm.SUBMIT)
    kernel.journal.add_all(kernel.now, taken, kernel.cause)
    partition.rm.observer.asks_added(asks)
    group.extend(asks)
    partition.waiting.demand_epoch += len(asks)
    partition.hints.asks.update(dict.fromkeys(asks))
    more = len(asks) * first.pending
    accounting.add_pending(first, more)
    if first.placeholder:
        gang.expect(first, more)
