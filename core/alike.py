"""Asks that arrive in rows: each like the one before, but for its key.

Applications ask for their pods with many asks that say the same. The first of a row is read and
taken up as any ask (``asking``); those that follow are recognised by the bytes of their messages. At
the end of the row they join its group and are counted as pending, all together. What is said and
written of them is what would have been, had each been taken up alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core import books
from quadriga.core.events import happenings
from quadriga.fsm import APPLICATION, ASK
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as life

if TYPE_CHECKING:
    from quadriga.core.kernel import Kernel
    from quadriga.core.model.ask import Ask
    from quadriga.si import AllocationAsk

__all__ = ["Row"]

#: allocationKey is field 1 of the message: a tag byte, one byte for a length below 128, the key
_KEY_TAG: Final = b"\n"[0]
_SHORT_KEY: Final = 128


class Row:
    """The asks that follow ``first``, which was taken up from ``message`` just now."""

    __slots__ = ("_asks", "_first", "_kernel", "_message", "_rest")

    def __init__(self, kernel: Kernel, first: Ask, message: AllocationAsk) -> None:
        self._kernel = kernel
        self._first = first
        self._message: AllocationAsk | None = message if _is_plain(first) else None
        #: the message without its key; spelled when there is another to compare it with
        self._rest: bytes | None = None
        self._asks: list[Ask] = []

    def take(self, message: AllocationAsk) -> bool:
        """Take up the ask if it is one more of the row."""
        first, rest = self._first, self._rest
        if rest is None:
            if self._message is None:
                return False
            rest = self._rest = _rest_of(self._message, first.ask_key)
            self._message = None
            if rest is None:
                return False
        app, key = first.app, message.allocationKey
        if not key or key in app.asks or _rest_of(message, key) != rest:
            return False
        partition = app.partition
        partition.arrivals += 1
        ask = app.asks[key] = first.like(key, partition.arrivals, self._kernel.now)
        self._asks.append(ask)
        return True

    def end(self) -> None:
        """Those of the row wait with the first one, and are counted as pending."""
        first, asks, kernel = self._first, self._asks, self._kernel
        if not asks:
            return
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


def _is_plain(ask: Ask) -> bool:
    """Whether one more of these changes nothing but the length of the group it waits in."""
    group = ask.group
    return (
        group is not None
        and not ask.terms.allow_preempt_other
        and (group.reserve_timer is not None or group.reservable)
        and APPLICATION.idles(ask.app.state, app_life.ASK)
    )


def _rest_of(message: AllocationAsk, key: str) -> bytes | None:
    """The message without its key; ``None`` if it does not begin with a short one."""
    wire, length = message.SerializeToString(), len(key)
    if length < _SHORT_KEY and wire[0] == _KEY_TAG and wire[1] == length:
        return wire[length + 2 :]
    return None
