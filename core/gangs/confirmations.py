"""Confirmations of one message together: gang members take over their placeholders (G30, G31, G33).

A resource manager confirms many releases at once. Most of them only exchange a placeholder for an equal
allocation on the same node. A run of these is recorded and announced as a whole, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from quadriga.core.gangs.replacement import confirm_replacement
from quadriga.core.model import accounting, usage
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps.gang import placeholder_gone
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation


def confirm_replacements(
    kernel: Kernel, placeholders: Iterable[Allocation], confirm: allocation_fsm.Trigger
) -> list[Allocation]:
    """Confirm the replacement of these placeholders, in this order. Return those whose confirmation was
    awaited."""
    confirmed = []
    together: list[Allocation] = []
    for placeholder in placeholders:
        if placeholder.state not in allocation_fsm.ASKED_BACK:
            continue
        confirmed.append(placeholder)
        if not _exchanges_only(placeholder):
            _confirm_together(kernel, together, confirm)
            together.clear()
            confirm_replacement(kernel, placeholder, confirm)
        elif together and together[0].node.partition is not placeholder.node.partition:
            _confirm_together(kernel, together, confirm)
            together = [placeholder]
        else:
            together.append(placeholder)
    _confirm_together(kernel, together, confirm)
    return confirmed


def _exchanges_only(placeholder: Allocation) -> bool:
    """Whether the confirmation only exchanges the placeholder for an equal allocation on its node, and
    nothing else follows."""
    real, node = placeholder.partner, placeholder.node
    if real is None or real.node is not node or real.vector != placeholder.vector:
        return False
    ask, app = real.ask, real.ask.app
    return (
        node.open
        and not real.growth
        and ask.pending == 1
        and not ask.terms.run_limit
        and bool(app.allocations)
        and app.state in application_fsm.COUNTED
        and APPLICATION.idles(app.state, application_fsm.RUN)
    )


def _confirm_together(
    kernel: Kernel, placeholders: list[Allocation], confirm: allocation_fsm.Trigger
) -> None:
    """As ``confirm_replacement`` for each of these, where ``_exchanges_only`` holds."""
    if not placeholders:
        return
    now = kernel.now
    partition = placeholders[0].node.partition
    observer, hints = partition.rm.observer, partition.hints.asks
    reals: list[Allocation] = []
    gone = kernel.fire_all(ALLOCATION, placeholders, confirm)
    for placeholder in placeholders:
        real = placeholder.partner
        assert real is not None
        placeholder.partner = real.partner = None
        ask, app = real.ask, real.ask.app
        app.released += 1
        accounting.replace_on_node(placeholder, real)
        accounting.replace(placeholder, real, lands=True)
        usage.ended(placeholder, now)
        group = app.gang.task_groups[placeholder.ask.kind.task_group]
        group.placeholder_created_at[real.uuid] = placeholder.created
        ask.planned = None
        real.created = now
        reals.append(real)
    landed = kernel.fire_all(ALLOCATION, reals, allocation_fsm.ALLOCATE)
    served = kernel.fire_all(ASK, [real.ask for real in reals], ask_fsm.ALLOCATE)
    changes = chain.from_iterable(zip(gone, landed, served, strict=True))
    kernel.journal.add_all(now, changes, kernel.cause)
    for placeholder, real in zip(placeholders, reals, strict=True):
        ask = real.ask
        ask.pending -= 1
        del ask.app.asks[ask.ask_key]
        hints.pop(ask, None)
        placeholder_gone(kernel, placeholder, replaced=True)
        observer.replaced(placeholder, real)
    kernel.outbox.allocated(reals)
