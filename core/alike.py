"""Asks that arrive in rows: each like the one before, but for its key.

Applications ask for their pods with many asks that say the same. The first of a row is read and
taken up as any ask (``asking``); those that follow are recognised by their bytes, and are never read
as messages. At the end of the row they join its group and are counted as pending, all together. What
is said and written of them is what would have been, had each been taken up alone.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from quadriga.core import books
from quadriga.core.events import happenings
from quadriga.fsm import APPLICATION, ASK
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as life

if TYPE_CHECKING:
    from quadriga.core.kernel import Kernel
    from quadriga.core.model.ask import Ask
    from quadriga.si import AllocationRequest

__all__ = ["spell_asks", "take_row"]

#: a text or a message that is field 1, as ``asks`` is in the request and ``allocationKey`` in an ask,
#: is this byte, the length in one byte or more, and the bytes of the content
_FIELD_1: Final = b"\n"[0]
#: lengths below this are spelled in one byte
_SHORT: Final = 128


def spell_asks(request: AllocationRequest) -> list[bytes]:
    """The bytes of each ask."""
    wire, at = request.SerializeToString(), 0
    found = []
    for _ in range(len(request.asks)):
        assert wire[at] == _FIELD_1
        length, at = wire[at + 1], at + 2
        if length >= _SHORT:
            length, at = _length(wire, at - 1)
        found.append(wire[at : at + length])
        at += length
    return found


def _length(wire: bytes, at: int) -> tuple[int, int]:
    """The length that is spelled here, seven bits in each byte, the lowest first; and where it ends."""
    length = shift = 0
    while wire[at] >= _SHORT:
        length |= (wire[at] - _SHORT) << shift
        shift += 7
        at += 1
    return length | wire[at] << shift, at + 1


def take_row(kernel: Kernel, first: Ask, spelled: list[bytes], at: int) -> int:
    """Take up those that stand from ``at`` on and are like ``first``, which stands before them and was
    taken up just now; how many these are."""
    rest = _without_key(spelled[at - 1]) if _is_plain(first) else None
    if rest is None:
        return 0
    app = first.app
    partition, known, now = app.partition, app.asks, kernel.now
    asks = []
    for each in islice(spelled, at, None):
        length = len(each) - len(rest) - 2
        if not 0 < length < _SHORT or not each.endswith(rest):
            break
        if each[0] != _FIELD_1 or each[1] != length:
            break
        key = each[2 : 2 + length].decode()
        if key in known:
            break
        partition.arrivals += 1
        ask = known[key] = first.like(key, partition.arrivals, now)
        asks.append(ask)
    if asks:
        _enter(kernel, first, asks)
    return len(asks)


def _without_key(spelled: bytes) -> bytes | None:
    """The bytes of an ask without its key; ``None`` if they do not begin with it."""
    if spelled[0] != _FIELD_1:
        return None
    length, at = _length(spelled, 1)
    return spelled[at + length :]


def _is_plain(ask: Ask) -> bool:
    """Whether one more of these changes nothing but the length of the group it waits in."""
    group = ask.group
    return (
        group is not None
        and not ask.terms.allow_preempt_other
        and (group.reserve_timer is not None or group.reservable)
        and APPLICATION.idles(ask.app.state, app_life.ASK)
    )


def _enter(kernel: Kernel, first: Ask, asks: list[Ask]) -> None:
    """Those of the row wait with the first one, and are counted as pending."""
    partition, group = first.app.partition, first.group
    assert group is not None
    taken = kernel.fire_all(ASK, asks, life.SUBMIT)
    kernel.journal.add_all(kernel.now, taken, kernel.cause)
    if (log := partition.rm.events) is not None:
        happenings.asks_added(log, asks)
    group.extend(asks)
    partition.news += len(asks)
    partition.unhinted.update(dict.fromkeys(asks))
    more = len(asks) * first.pending
    books.expect(first, more)
    if first.placeholder:
        tasks = first.app.task_groups[first.task_group]
        tasks.count += more
        tasks.pending += more
