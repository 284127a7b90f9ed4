"""Q16: how long inputs wait is measured, and a process in which they wait for seconds is not ready."""

from __future__ import annotations

import asyncio

import pytest

from quadriga.fsm.table import SECOND
from quadriga.k8s.driver.health import Health, health_of
from quadriga.k8s.driver.inbox import Inbox, described
from quadriga.k8s.objects import Metadata, Node, Pod
from quadriga.k8s.shim.inputs import BindEnded, Changed, CoreAnswered, CreateEnded, Input, Synced
from quadriga.si import AllocationResponse


def test_q16_the_inbox_measures_how_long_inputs_wait() -> None:
    now = 0

    async def measured() -> Inbox:
        nonlocal now
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
        return inbox

    inbox = asyncio.run(measured())
    assert (inbox.taken, inbox.waited) == (2, 4 * SECOND)


def health(delay: int = 0, stuck: str = "") -> Health:
    return health_of(
        now=0,
        turned_at=0,
        leads=True,
        unsynced=(),
        serves=True,
        stopped="",
        stuck=stuck,
        delay=delay,
        longest=5 * SECOND,
    )


def test_q16_a_shim_whose_inputs_wait_for_seconds_is_alive_and_not_ready() -> None:
    assert health(delay=5 * SECOND).ready
    said = health(delay=8 * SECOND)
    assert (said.alive, said.ready) == (True, False)
    assert said.reasons == ("a change or an answer has waited for 8.0 s",)
    named = "its loop has been at pod a/b (ADDED) for 6.0 s"
    assert health(stuck=named).reasons == (named,)


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
