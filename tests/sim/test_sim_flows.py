"""The recorded gang flows: they are those of the design document, in both orders."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from quadriga.diagrams import Message, sequence
from quadriga.fsm import Lifecycle
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK
from quadriga.sim.scripted.flows import FLOWS, record

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flows.md"


TIMES_OUT = "gang Killing (ResourceReservationTimeout)"


@pytest.mark.parametrize(
    ("name", "order", "follow"),
    [
        # each placeholder is replaced after its confirmation
        *(
            pytest.param(
                *("gang-start", "design"),
                [f"release gang/ph-{n}-0 PLACEHOLDER_REPLACED", f"new gang/{member}-0 on n1"],
                id=f"g1-{member}",
            )
            for n, member in enumerate(("driver", "worker-1", "worker-2"))
        ),
        # asks, then allocations, then the state
        pytest.param(
            *("hard-timeout", "design"),
            [
                "released ask gang/ph-2 TIMEOUT",
                "released gang/ph-0-0 TIMEOUT",
                "released gang/ph-1-0 TIMEOUT",
                TIMES_OUT,
            ],
            id="g47",
        ),
        # the state first
        pytest.param(
            "hard-timeout", "k8shim", [TIMES_OUT, "released ask gang/ph-2 TIMEOUT"], id="x8"
        ),
        pytest.param("hard-timeout", "design", ["gang Killed (killed)", None], id="the end"),
        # it ends when the last leftover is confirmed
        pytest.param(
            *("clean-up", "design"),
            ["release gang/ph-2-0 TIMEOUT", "gang Completed (complete)", None],
            id="g52",
        ),
    ],
)
def test_a_flow_is_that_of_the_design(name: str, order: str, follow: list[str | None]) -> None:
    """These labels follow each other; None is the end."""
    said = [*(exchange.label for exchange in record(name, order)), None]
    at = said.index(follow[0])
    assert said[at : at + len(follow)] == follow


@pytest.mark.parametrize("name", FLOWS)
def test_the_page_shows_the_flow_as_it_runs(name: str) -> None:
    drawn = sequence([Message(*exchange) for exchange in record(name)], "mermaid")
    assert f"```mermaid\n{drawn}```" in PAGE.read_text(encoding="utf-8"), (
        f"docs/flows.md is out of date: quadriga draw --flow {name}"
    )


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
