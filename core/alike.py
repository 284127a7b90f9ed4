"""Asks that arrive in rows: each like the one before, but for its key.

Applications ask for their pods with many asks that say the same. The first of a row is read and
taken up as any ask (``asking``); those that follow are recognised by the bytes of their messages. They
join its group, and are counted as pending together at the end of the row. What is said and written
of them is what would have been, had each been taken up alone.
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

    __slots__ = ("_count", "_first", "_kernel", "_rest")

    def __init__(self, kernel: Kernel, first: Ask, message: AllocationAsk) -> None:
        self._kernel = kernel
        self._first = first
        self._count = 0
        self._rest = _rest_of(message, first.ask_key) if _is_plain(first) else None

    def take(self, message: AllocationAsk) -> bool:
        """Take up the ask if it is one more of the row."""
        rest = self._rest
        if rest is None:
            return False
        key = message.allocationKey
        first, kernel = self._first, self._kernel
        app = first.app
        if not key or key in app.asks or _rest_of(message, key) != rest:
            return False
        partition = app.partition
        partition.arrivals += 1
        partition.news += 1
        ask = first.like(key, partition.arrivals, kernel.now)
        app.asks[key] = ask
        kernel.fire(ASK, ask, life.SUBMIT)
        if (log := partition.rm.events) is not None:
            happenings.ask_added(log, ask)
        partition.unhinted[ask] = None
        group = first.group
        assert group is not None
        group.append(ask)
        self._count += 1
        return True

    def end(self) -> None:
        """Count those of the row as pending."""
        if self._count:
            first = self._first
            more = self._count * first.pending
            books.expect(first, more)
            if first.placeholder:
                group = first.app.task_groups[first.task_group]
                group.count += more
                group.pending += more
            self._count = 0


def _is_plain(ask: Ask) -> bool:
    """Whether one more of these changes nothing but the length of the group it waits in."""
    group = ask.group
    return (
        group is not None
        and not ask.allow_preempt_other
        and (group.reserve_timer is not None or group.reservable)
        and APPLICATION.idles(ask.app.state, app_life.ASK)
    )


def _rest_of(message: AllocationAsk, key: str) -> bytes | None:
    """The message without its key; ``None`` if it does not begin with a short one."""
    wire, length = message.SerializeToString(), len(key)
    if length < _SHORT_KEY and wire[0] == _KEY_TAG and wire[1] == length:
        return wire[length + 2 :]
    return None
