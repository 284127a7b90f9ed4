"""One round of decisions in one partition (5.2), and the state that lasts until its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quadriga.core.resources.demand import EVERY_BIT, Level

if TYPE_CHECKING:
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.kernel import Kernel


class Round:
    """A round makes at most one decision. Demand found impossible is skipped for the rest of the round."""

    __slots__ = ("_left_out", "attempts", "kernel", "partition")

    def __init__(self, kernel: Kernel, partition: Partition) -> None:
        self.kernel = kernel
        self.partition = partition
        #: attempts to preempt, by leaf (2.8)
        self.attempts: dict[Queue, int] | None = None
        self._left_out: list[Callable[[], None]] | None = None

    def count_attempt(self, leaf: Queue) -> int:
        """Count one more preemption attempt in this leaf, and return their number."""
        if self.attempts is None:
            self.attempts = {}
        tries = self.attempts[leaf] = self.attempts.get(leaf, 0) + 1
        return tries

    def leave_out(self, level: Level, bits: int) -> None:
        """Block this demand below the level until the round ends."""
        bits &= ~level.blocked
        level.block(bits)

        def bring_back() -> None:
            if level.blocked != EVERY_BIT:
                level.unblock(bits)

        self._bring_back_later(bring_back)

    def stay_on_reserved_nodes(self, group: AskGroup) -> None:
        """Search no other nodes for the reserving asks of this group until the round ends."""
        waiting = self.partition.waiting
        group.exhausted_this_round = True
        waiting.refresh_group(group)

        def bring_back() -> None:
            group.exhausted_this_round = False
            waiting.refresh_group(group)

        self._bring_back_later(bring_back)

    def _bring_back_later(self, bring_back: Callable[[], None]) -> None:
        if self._left_out is None:
            self._left_out = []
        self._left_out.append(bring_back)

    def end(self) -> None:
        """Unblock what was left out."""
        if self._left_out is not None:
            for bring_back in self._left_out:
                bring_back()
            self._left_out = None
