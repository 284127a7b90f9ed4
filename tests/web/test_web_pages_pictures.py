"""Where lifecycles are drawn on the pages: every state has a place of its own, every edge a way that
leads from one box to the other and through no third one."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest

from quadriga.fsm import LIFECYCLES
from quadriga.web.pages.pictures import BOX, PICTURES, drawn


@pytest.fixture(params=LIFECYCLES)
def picture(request: pytest.FixtureRequest) -> dict[str, Any]:
    return drawn(LIFECYCLES[request.param], PICTURES[request.param])


def inside(x: float, y: float, state: dict[str, Any], away: float = 0.0) -> bool:
    return abs(x - state["x"]) <= BOX[0] / 2 + away and abs(y - state["y"]) <= BOX[1] / 2 + away


def test_every_state_and_every_edge_of_the_table_is_drawn_and_nothing_else() -> None:
    assert set(PICTURES) == set(LIFECYCLES)
    for name, lifecycle in LIFECYCLES.items():
        edges = {(row.source, row.target) for row in lifecycle.rows if row.target is not None}
        assert set(PICTURES[name].ways) == edges
        assert set(PICTURES[name].places) == set(lifecycle.states)


def test_an_edge_says_its_triggers_and_a_state_how_long_it_lasts() -> None:
    application = drawn(LIFECYCLES["application"], PICTURES["application"])
    edges = {(edge["source"], edge["target"]): edge["triggers"] for edge in application["edges"]}
    lasts = {state["name"]: state["lasts"] for state in application["states"]}
    assert edges["Waiting", "Running"] == ["ask", "run"]
    assert lasts["Waiting"] == "at most 30 s, then complete"
    assert lasts["Running"] == "until wait"
    assert lasts["Killing"] == "at most 30 min"
    assert lasts["Expired"] == "for good"


def test_boxes_do_not_touch_and_stay_within_the_picture(picture: dict[str, Any]) -> None:
    for one, other in combinations(picture["states"], 2):
        apart = max(abs(one["x"] - other["x"]) / BOX[0], abs(one["y"] - other["y"]) / BOX[1])
        assert apart > 1.2, (one["name"], other["name"])
    points = [point for edge in picture["edges"] for point in edge["points"]]
    points += [
        [state["x"] + side * BOX[0] / 2, state["y"] + side * BOX[1] / 2]
        for state in picture["states"]
        for side in (-1, 1)
    ]
    assert all(0 < x < picture["width"] and 0 < y < picture["height"] for x, y in points)


def test_edges_are_upright_or_level_and_go_through_no_other_box(picture: dict[str, Any]) -> None:
    states = {state["name"]: state for state in picture["states"]}
    for edge in picture["edges"]:
        (first, last), ends = (
            (edge["points"][0], edge["points"][-1]),
            (edge["source"], edge["target"]),
        )
        assert inside(*first, states[ends[0]])
        assert inside(*last, states[ends[1]])
        for (x1, y1), (x2, y2) in pairwise(edge["points"]):
            assert x1 == x2 or y1 == y2, ends
            steps = int(max(abs(x2 - x1), abs(y2 - y1)) // 4) + 1
            for step in range(steps + 1):
                x, y = x1 + (x2 - x1) * step / steps, y1 + (y2 - y1) * step / steps
                through = [name for name, state in states.items() if inside(x, y, state, -1)]
                assert through == [], (ends, through)


def test_no_two_ways_begin_at_the_same_point_but_those_that_end_alike(
    picture: dict[str, Any],
) -> None:
    starts = [tuple(edge["points"][0]) for edge in picture["edges"]]
    assert len(set(starts)) == len(starts)
