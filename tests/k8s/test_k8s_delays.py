"""Q16: how long inputs wait is measured, and what is looked at is named."""

from __future__ import annotations

import pytest

from quadriga.fsm.table import SECOND
from quadriga.k8s.driver.inbox import Inbox, described
from quadriga.k8s.objects import Metadata, Node, Pod
from quadriga.k8s.shim.inputs import BindEnded, Changed, CoreAnswered, CreateEnded, Input, Synced
from quadriga.si import AllocationResponse


async def test_q16_the_inbox_measures_how_long_inputs_wait() -> None:
    now = 0
    inbox = Inbox(clock=lambda: now)
    assert inbox.delay() == 0
    inbox.put(Synced())
    now = 2 * SECOND
    inbox.put_from_thread(Synced())
    now = 3 * SECOND
    assert inbox.delay() == 3 * SECOND
    assert len(inbox.take(1)) == 1
    assert inbox.delay() == SECOND
    inbox.take(5)
    assert inbox.delay() == 0
    assert (inbox.taken, inbox.waited) == (2, 4 * SECOND)


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        (Changed("ADDED", Pod(Metadata("p", "team"))), "pod team/p (ADDED)"),
        (Changed("DELETED", Node(Metadata("n1"))), "node n1 (DELETED)"),
        (CoreAnswered(AllocationResponse()), "AllocationResponse of the core"),
        (BindEnded("u", "bound"), "the end of the bind of pod u"),
        (CreateEnded("app", "g", "tg-1", "created"), "placeholder tg-1 of application app"),
        (Synced(), "Synced"),
        ("timers", "timers"),
    ],
)
def test_q16_the_watchdog_names_the_object(heard: Input, text: str) -> None:
    assert described(heard) == text
