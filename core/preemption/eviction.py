"""What preemption decides: allocations to evict, as data (2.8).

``scheduling.releasing`` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """Allocations that are asked back from the resource manager, in this order.

    ``cause`` is the ask that they make room for, or the queue whose max they exceed. ``message`` goes
    out with each release. ``node`` is to be reserved for the ask, if there is one.
    """

    victims: tuple[Allocation, ...]
    cause: Ask | Queue
    message: str
    node: Node | None = None
