"""Replacements in a batch: gang members take over placeholders one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.gangs.replacement import Replacement, carry_out, replace
from quadriga.core.resources.shapes import REPLACE
from quadriga.core.scheduling.batch_walk import Forks, next_leaf

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.kernel import Kernel


def replace_in_batch(kernel: Kernel, partition: Partition, most: int) -> int:
    """Replace up to ``most`` placeholders; return how many were replaced.

    A replacement changes no share. So in each leaf the same group of asks stays first until none of its
    asks waits for a placeholder.
    """
    root = partition.root
    forks: Forks = {}
    groups: dict[Queue, AskGroup] = {}
    planned: list[Replacement] = []
    made = 0
    try:
        while made < most and root.demand & REPLACE:
            leaf, demand = next_leaf(forks, root, REPLACE)
            group = groups.get(leaf)
            if group is None:
                app: Application = leaf.best(demand)
                group = app.best(REPLACE)
                if any(g.demand & REPLACE for g in app.groups.values() if g is not group):
                    break
                groups[leaf] = group
            if not replace(kernel, group.head, planned):
                break
            made += 1
            if not group.demand & REPLACE:  # the order may have changed in every queue above
                forks.clear()
                del groups[leaf]
    finally:
        carry_out(kernel, planned)
    return made
