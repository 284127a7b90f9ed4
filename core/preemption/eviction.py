"""Victims are asked back: the one place where allocations are chosen to go (2.8), and the one where
an ask is told that nobody can go for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.events import producers
from quadriga.core.model import accounting
from quadriga.core.scheduling import gang
from quadriga.fsm import allocation as life

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["found_nobody", "take"]


def take(kernel: Kernel, victims: Iterable[Allocation], text: str, cause: Ask | Queue) -> None:
    """Ask the resource manager for the victims back. Nothing is free before it confirms (2.8).

    ``cause``: the ask that they make room for, or the queue whose quota they exceed.
    """
    for victim in victims:
        if (log := victim.node.partition.rm.events) is not None:
            producers.preempted(log, victim, cause)
        gang.release(kernel, victim, life.PREEMPTION, text)
        accounting.preempt(victim)


def found_nobody(kernel: Kernel, ask: Ask, why: str) -> None:
    """Preemption was tried for the ask, and this is why it was of no use."""
    ask.preempt_outcome = why
