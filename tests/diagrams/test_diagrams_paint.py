"""Coverage and an entity's path, painted over a lifecycle."""

import json
from typing import Any

import pytest

from quadriga.base.times import SECOND
from quadriga.diagrams import FORMATS, DiagramError, Step, render, render_path
from quadriga.fsm import ALLOCATION, APPLICATION, ASK, RESOURCE_MANAGER, Lifecycle

#: text formats that show coverage beside DOT
SHOWN = ("mermaid", "plantuml", "md", "json")
GREEN, RED = "#1a7f37", "#c62828"


def coverage(lifecycle: Lifecycle, **counts: int) -> dict[str, Any]:
    names = ("line", "trigger", "source", "target")
    rows = [
        {n: getattr(row, n) for n in names} | {"guard": None, "count": counts.get(row.trigger, 0)}
        for row in lifecycle.rows
    ]
    return {lifecycle.name: {"rows": rows}}


def lines(drawn: str | bytes, start: str) -> list[str]:
    assert isinstance(drawn, str)
    return [line for line in drawn.splitlines() if line.startswith(f"  {start}")]


# -- coverage --------------------------------------------------------------------------------------


def test_taken_rows_are_green_with_their_count_and_others_red_and_dashed() -> None:
    drawn = render(ASK, "dot", coverage=coverage(ASK, submit=12))
    (submit,) = lines(drawn, "Initial -> Pending")
    (reject,) = lines(drawn, "Initial -> Rejected")
    assert f'color="{GREEN}"' in submit and "(12×)" in submit
    assert f'color="{RED}" style=dashed' in reject and "(0×)" in reject
    drawn = render(ASK, "dot", coverage={"ask": {"rows": []}})
    assert isinstance(drawn, str)
    assert GREEN not in drawn


def test_taken_and_missed_rows_do_not_share_an_arrow_and_those_that_stay_are_in_the_state() -> None:
    parked = lines(render(ASK, "dot", coverage=coverage(ASK, unpark=1)), "Parked -> Pending")
    assert [GREEN in line for line in parked] == [False, True]
    (state,) = lines(render(ASK, "dot", coverage=coverage(ASK, update=3)), "Parked [")
    assert f'<FONT COLOR="{GREEN}">update <B>(3×)</B></FONT>' in state


def test_the_stem_of_a_junction_is_green_when_any_branch_was_taken() -> None:
    plugin = coverage(APPLICATION)
    taken = next(r for r in plugin["application"]["rows"] if r["trigger"] == "kill")
    taken["count"] = 1
    drawn = render(APPLICATION, "dot", coverage=plugin)
    (stem,) = lines(drawn, f"line{taken['line']} -> Killing")
    assert GREEN in stem
    (branch,) = lines(drawn, f"Waiting -> line{taken['line']}")
    assert RED in branch


def test_coverage_of_another_table_is_refused() -> None:
    with pytest.raises(DiagramError, match="the coverage has no rows of ask, only application"):
        render(ASK, "dot", coverage=coverage(APPLICATION))
    stale = {"ask": {"rows": [{"line": 0, "trigger": "gone", "source": "Pending", "count": 1}]}}
    with pytest.raises(DiagramError, match="another ask: it has a row 0, gone from Pending"):
        render(ASK, "dot", coverage=stale)
    with pytest.raises(DiagramError, match="not a coverage record of ask: 'x'"):
        render(ASK, "dot", coverage={"ask": {"rows": ["x"]}})


@pytest.mark.parametrize("wrong", [3, {}, [], "ask", {"ask": {"rows": 5}}, {"ask": []}])
def test_what_is_no_coverage_is_refused(wrong: Any) -> None:
    with pytest.raises(DiagramError, match="not a coverage|no rows of ask, only"):
        render(ASK, "md", coverage=wrong)


def test_counts_in_every_format_that_shows_them() -> None:
    counts = coverage(ASK, submit=12, reject=3)
    drawn = {format: render(ASK, format, coverage=counts) for format in FORMATS if format in SHOWN}
    assert "    Initial --> Pending : (12×) submit\n" in drawn["mermaid"]
    assert (
        f"Initial -[{GREEN},bold]-> Pending : <color:{GREEN}><b>(12×)</b> submit</color>\n"
        in drawn["plantuml"]
    )
    assert f"Parked -[{RED},dashed]-> Pending" in drawn["plantuml"]
    assert "| # | Trigger | From | To | If | Effects | Why | Taken |" in drawn["md"]
    assert "| 1 | reject | Initial, Pending, Parked | Rejected | | | | 3, 3, 3 |" in drawn["md"]
    rows = json.loads(drawn["json"])["rows"]
    assert [row["count"] for row in rows[:4]] == [12, 3, 3, 3]
    assert "count" not in render(ASK, "json")


def test_formats_that_cannot_paint_say_so() -> None:
    with pytest.raises(DiagramError, match="scxml cannot show coverage; these can: dot, mermaid"):
        render(ASK, "scxml", coverage=coverage(ASK))
    with pytest.raises(DiagramError, match="json cannot show a path; these can: dot, mermaid"):
        render_path(ASK, [], 0, "json")
    with pytest.raises(DiagramError, match="unknown format"):
        render_path(ASK, [], 0, "gif")


# -- a path ----------------------------------------------------------------------------------------

LIFE: tuple[Step, ...] = (
    (2 * SECOND, "ask", "New", "Accepted"),
    (5 * SECOND, "ask", "Accepted", "Accepted"),
    (32 * SECOND, "run", "Accepted", "Running"),
    (90 * SECOND, "wait", "Running", "Waiting"),
    (95 * SECOND, "ask", "Waiting", "Running"),
    (4000 * SECOND, "wait", "Running", "Waiting"),
)
NOW = 4012 * SECOND


def test_a_path_shows_times_order_and_the_current_state() -> None:
    drawn = render_path(APPLICATION, LIFE, NOW, "dot", born=0)
    (new,) = lines(drawn, "New [")
    (accepted,) = lines(drawn, "Accepted [")
    (waiting,) = lines(drawn, "Waiting [")
    (killed,) = lines(drawn, "Killed [")
    assert "<B>2 s</B>" in new
    assert "<B>30 s</B>" in accepted and "ask <B>(2)</B>" in accepted
    assert "<B>17 s, 2 times</B>" in waiting and "penwidth=3" in waiting
    assert "<B>Killed</B></FONT>" in killed
    (wait,) = lines(drawn, "Running -> Waiting")
    assert "wait <B>(4, 6)</B>" in wait


def test_a_path_without_a_birth_and_one_without_steps() -> None:
    (new,) = lines(render_path(APPLICATION, LIFE, NOW, "dot"), "New [")
    assert "penwidth" not in new and "12 <B>" not in new
    (new,) = lines(render_path(APPLICATION, [], 3 * SECOND, "dot", born=0), "New [")
    assert "penwidth=3" in new and "<B>3 s</B>" in new


# fmt: off
PATHS = {
    "mermaid": (
        "    Running --> Waiting : (4, 6) wait / stopped running, update\n",
        "    Waiting : 17 s, 2 times\n", "    class New,Accepted,Running walked\n", "    class Waiting current\n",
    ),
    "plantuml": (
        'state "Waiting" as Waiting #ffe9a8;line:0b57d0;line.bold\n', "\nWaiting : <b>17 s, 2 times</b>\n",
        'state "Killed" as Killed #ffffff;line:c3c9d1;text:9aa3ae\n',
        "\nRunning -[#0b57d0,bold]-> Waiting : <color:#0b57d0><b>(4, 6)</b> wait / ",
    ),
}
# fmt: on


@pytest.mark.parametrize("format", PATHS)
def test_a_path_in_other_formats(format: str) -> None:
    drawn = str(render_path(APPLICATION, LIFE, NOW, format, born=0))
    for part in PATHS[format]:
        assert part in drawn


def test_alternatives_that_look_the_same_and_rows_back_into_a_state_are_numbered() -> None:
    drawn = render_path(ALLOCATION, [(0, "allocate", "Planned", "Allocated")], 1, "dot")
    (arrow,) = lines(drawn, "Planned -> Allocated")
    assert arrow.count("<B>(1)</B>") == 2
    steps = [(0, "register", "Init", "Running"), (5, "register", "Running", "Running")]
    (loop,) = lines(render_path(RESOURCE_MANAGER, steps, 9, "dot"), "Running -> Running")
    assert "(2)" in loop


ASKED = (0, "ask", "New", "Accepted")
# fmt: off
IMPOSSIBLE: list[tuple[list[Step], int, str]] = [
    ([(0, "run", "New", "Running")],                        1, "New --run--> Running is not in the table"),
    ([(0, "ask", "Nowhere", "New")],                        1, "application has no state Nowhere"),
    ([ASKED, (1, "wait", "Running", "Waiting")],            2, "starts elsewhere than Accepted"),
    ([(5, *ASKED[1:]), (4, "run", "Accepted", "Running")],  9, "step 2 .* is earlier than what came before it"),
    ([(5, *ASKED[1:])],                                     4, "now is earlier than what came before it"),
]
# fmt: on


@pytest.mark.parametrize(("steps", "now", "message"), IMPOSSIBLE)
def test_an_impossible_path_is_refused(steps: list[Step], now: int, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        render_path(APPLICATION, steps, now, "dot")
