"""Faults put into the lifecycles are found, with the shortest way to them; docs/checking.md says what is so."""

import re
from pathlib import Path
from typing import Any

import pytest

from quadriga.fsm import ALLOCATION, APPLICATION, Lifecycle, checking, row
from quadriga.fsm.checking import Violation, check, replay
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import TASK
from tests.fsm.checking.gang_system import POD, gang_system
from tests.fsm.checking.shim_system import pod_system


def found(system: Any) -> Violation:
    with pytest.raises(Violation) as error:
        check(system)
    return error.value


def happenings(violation: Violation) -> list[str]:
    return [f"{each.sender} -> {each.receiver}: {each.label}" for each in violation.happenings]


def no_repetition() -> Lifecycle:
    """The row goes that requests a release again when its confirmation is late (S4)."""
    (again,) = (r for r in ALLOCATION.rows if r.guard is allocation_fsm.unconfirmed)
    return ALLOCATION.without(rows=(again,))


def inverted() -> Lifecycle:
    """An application is Killed only while something is left."""

    def nothing_left(app: Any, info: Any) -> bool:
        return not application_fsm.anything_left(app, info)

    (stays, killed) = APPLICATION.rows_from("Killing", "killed")
    return APPLICATION.replace(
        row("killed", "Killing", None, when=nothing_left, why=stays.why),
        row("killed", "Killing", "Killed", emit=killed.emit),
    )


def confirms_once() -> Lifecycle:
    """A pod that is gone does not answer a release that is repeated."""
    return POD.replace(row("stop", "Gone", None, why="it is gone"))


def unconfirmed() -> Lifecycle:
    """The end of a pod that the core has released is not confirmed."""
    return TASK.replace(row("ended", "Releasing", "Ended"))


def test_s4_a_release_is_requested_again_or_a_lost_one_is_waited_for_for_ever() -> None:
    violation = found(gang_system(allocation=no_repetition(), lose=1, in_flight=1))
    assert (violation.kind, violation.rule[:3]) == ("eventually", "G50")
    assert violation.happenings[-1].kind == "lost"
    assert "app -> placeholder: release(reason=timeout)" in happenings(violation)
    assert happenings(violation)[-1] == "placeholder -> placeholder pod: stop"
    check(gang_system(allocation=no_repetition(), in_flight=1))  # without a loss nobody would know


def test_g43_a_guard_that_is_inverted_lets_an_application_end_with_a_pod() -> None:
    violation = found(gang_system(inverted(), in_flight=1))
    assert (violation.kind, violation.rule[:3]) == ("always", "G43")
    assert "app -> app: killed" in happenings(violation)


def test_r3_a_confirmation_that_is_lost_is_repeated_with_the_release() -> None:
    violation = found(gang_system(pod=confirms_once(), lose=1, in_flight=1))
    assert (violation.kind, violation.rule[:3]) == ("eventually", "G50")
    assert happenings(violation)[-1] == "placeholder pod -> placeholder: confirm"


def test_k39_the_core_waits_for_ever_for_the_end_of_a_pod_that_it_has_released() -> None:
    violation = found(pod_system(unconfirmed()))
    assert (violation.kind, violation.rule[:3]) == ("eventually", "K37")
    replay(pod_system(), *violation.moves)
    with pytest.raises(Violation, match="K37"):
        replay(pod_system(unconfirmed()), *violation.moves)


def test_the_shim_relies_on_the_order_of_messages_to_the_core() -> None:
    """Where the withdrawal of an ask is overtaken by the next ask of the pod, the core drops that one."""
    violation = found(pod_system(reorder=1))
    assert (violation.kind, violation.rule[:3], len(violation.moves)) == ("eventually", "K37", 6)
    assert happenings(violation)[-2:] == ["task -> core: ask", "task -> core: drop_ask"]


def test_a_way_to_a_fault_is_a_test_that_fails_as_long_as_the_fault_is_there() -> None:
    violation = found(gang_system(inverted(), in_flight=1))
    replay(gang_system(in_flight=1), *violation.moves)
    with pytest.raises(Violation) as again:
        replay(gang_system(inverted(), in_flight=1), *violation.moves)
    assert str(again.value) == str(violation)
    namespace: dict[str, Any] = {}
    source = violation.as_test("tests.fsm.checking.faulty:SYSTEM")
    body = source.replace("from tests.fsm.checking.faulty import SYSTEM\n", "")
    namespace["SYSTEM"] = gang_system(in_flight=1)
    exec(compile(body, "made.py", "exec"), namespace)
    (made,) = (value for name, value in namespace.items() if name.startswith("test_"))
    made()
    namespace["SYSTEM"] = gang_system(inverted(), in_flight=1)
    with pytest.raises(Violation):
        made()


def test_a_way_to_a_fault_is_a_sequence_diagram() -> None:
    drawn = found(gang_system(pod=confirms_once(), lose=1, in_flight=1)).as_mermaid()
    lines = [line.strip() for line in drawn.splitlines()]
    assert lines[0] == "sequenceDiagram"
    assert any("-x" in line and line.endswith(": confirm") for line in lines)
    assert lines[-1].endswith("not reached any more: G50: the application is over, and no pod runs")
    names = [line.split()[1] for line in lines if line.startswith("participant")]
    assert len(names) == len(set(names)) > 3


@pytest.fixture(scope="module")
def page() -> str:
    path = Path(__file__).resolve().parents[3] / "docs" / "checking.md"
    if not path.is_file():
        pytest.skip("docs/ is part of a checkout only")
    return path.read_text(encoding="utf-8")


def test_the_program_of_the_page_runs_and_every_public_name_is_there(page: str) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "checking.md", "exec"), namespace)
    assert namespace["violation"].as_mermaid().startswith("sequenceDiagram\n")
    # What a rule, a reaction or a counterexample is given explains itself where it is used.
    given = {"Happening", "Message"}
    assert [n for n in checking.__all__ if n not in page and n not in given] == []
