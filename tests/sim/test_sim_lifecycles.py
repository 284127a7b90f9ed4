"""The tables of the simulated resource manager; tests/fsm/test_fsm_matrix.py fires every pair of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quadriga.fsm import Lifecycle
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK

RESERVED = "submit Submitted accept Accepted try_reserve Reserving"
# fmt: off
LIVES: dict[str, tuple[Lifecycle, str]] = {
    "a gang": (SHIM_APPLICATION, f"{RESERVED} update_reservation Reserving run Running complete Completed"),
    "a gang that goes on without placeholders": (
        SHIM_APPLICATION, f"{RESERVED} resume Resuming task_completed Resuming run Running"),
    "x8 releases before the update": (
        SHIM_APPLICATION, f"{RESERVED} release_ask Running release_allocation Running fail Failing fail Failed"),
    "a placeholder": (
        SHIM_TASK, "init Pending submit Scheduling allocate Allocated bind Bound kill Killing die Killed"
        " complete Completed"),
}
# fmt: on


@pytest.mark.parametrize("life", LIVES)
def test_a_life(life: str) -> None:
    lifecycle, story = LIVES[life]
    thing = SimpleNamespace(key="thing", state=lifecycle.initial)
    words = story.split()
    for trigger, state in zip(words[::2], words[1::2], strict=True):
        lifecycle.fire(thing, trigger)
        assert thing.state == state
