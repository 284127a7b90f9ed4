"""The recorded gang flows: they are those of the design document, in both orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadriga.cli.main import main
from quadriga.diagrams import Message, sequence
from quadriga.sim.flows import FLOWS, record

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flows.md"


def labels(name: str, order: str = "design") -> list[str]:
    return [exchange.label for exchange in record(name, order)]


def test_g1_the_start_flow_replaces_each_placeholder_after_its_confirmation() -> None:
    said = labels("gang-start")
    for number, member in enumerate(("driver", "worker-1", "worker-2")):
        confirmed = said.index(f"release gang/ph-{number}-0 PLACEHOLDER_REPLACED")
        assert said[confirmed + 1] == f"new gang/{member}-0 on n1"


def test_g47_the_hard_timeout_flow_tells_asks_then_allocations_then_the_state() -> None:
    said = labels("hard-timeout")
    at = said.index("released ask gang/ph-2 TIMEOUT")
    assert said[at : at + 4] == [
        "released ask gang/ph-2 TIMEOUT",
        "released gang/ph-0-0 TIMEOUT",
        "released gang/ph-1-0 TIMEOUT",
        "gang Killing (ResourceReservationTimeout)",
    ]
    assert said[-1] == "gang Killed (killed)"


def test_x8_the_k8shim_order_tells_the_state_first() -> None:
    said = labels("hard-timeout", "k8shim")
    state = said.index("gang Killing (ResourceReservationTimeout)")
    assert said[state + 1] == "released ask gang/ph-2 TIMEOUT"


def test_g52_the_clean_up_flow_ends_when_the_last_leftover_is_confirmed() -> None:
    said = labels("clean-up")
    assert said[-2:] == ["release gang/ph-2-0 TIMEOUT", "gang Completed (complete)"]


@pytest.mark.parametrize("name", FLOWS)
def test_the_page_shows_the_flow_as_it_runs(name: str) -> None:
    drawn = sequence([Message(*exchange) for exchange in record(name)], "mermaid")
    assert f"```mermaid\n{drawn}```" in PAGE.read_text(encoding="utf-8"), (
        f"docs/flows.md is out of date: quadriga draw --flow {name}"
    )


def test_the_command_draws_a_flow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "--flow", "gang-start", "--format", "text"]) == 0
    assert "PLACEHOLDER_REPLACED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["--flow", "no"], ["--flow", "clean-up", "--format", "png"], ["ask", "--flow", "x"]],
)
def test_the_command_refuses_what_it_cannot_draw(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["draw", *arguments]) == 2
    assert capsys.readouterr().err.startswith("quadriga: draw: ")
