"""Where lifecycles are drawn: neither boxes, labels nor lines get into each other's way."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from quadriga.fsm import LIFECYCLES
from quadriga.web.pages.data.lifecycles import layouts, picture

Box = tuple[float, float, float, float]  # centre, width and height


@pytest.fixture(params=LIFECYCLES)
def drawn(request: pytest.FixtureRequest) -> dict[str, Any]:
    return picture(LIFECYCLES[request.param])


def boxes(drawn: dict[str, Any]) -> dict[str, Box]:
    width, height = drawn["box"]
    return {state["name"]: (state["x"], state["y"], width, height) for state in drawn["states"]}


def inside(x: float, y: float, box: Box, away: float = 0.0) -> bool:
    return abs(x - box[0]) <= box[2] / 2 + away and abs(y - box[1]) <= box[3] / 2 + away


def meet(one: Box, other: Box) -> bool:
    across, down = abs(one[0] - other[0]), abs(one[1] - other[1])
    return across < (one[2] + other[2]) / 2 and down < (one[3] + other[3]) / 2


def along(edge: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Points of an edge, at most a few pixels apart, and its tip."""
    path = edge["path"]
    for at in range(0, len(path) - 1, 3):
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = path[at : at + 4]
        for step in range(101):
            t = step / 100
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3
    yield tuple(edge["tip"])


def test_every_state_and_edge_is_drawn_with_its_triggers_and_how_long_it_lasts() -> None:
    assert set(layouts()) == set(LIFECYCLES)
    for name, lifecycle in LIFECYCLES.items():
        edges = {(row.source, row.target) for row in lifecycle.rows if row.target is not None}
        drawn = [(edge["source"], edge["target"]) for edge in layouts()[name]["edges"]]
        assert len(drawn) == len(set(drawn))
        assert set(drawn) == edges
        assert [state["name"] for state in layouts()[name]["states"]] == list(lifecycle.states)
    application = picture(LIFECYCLES["application"])
    edges = {(edge["source"], edge["target"]): edge["triggers"] for edge in application["edges"]}
    lasts = {state["name"]: state["lasts"] for state in application["states"]}
    assert edges["Waiting", "Running"] == ["ask", "run"]
    assert (lasts["Waiting"], lasts["Running"]) == ("at most 30 s, then complete", "until wait")
    assert (lasts["Killing"], lasts["Expired"]) == ("at most 30 min", "for good")


def test_boxes_do_not_touch_and_stay_within_the_picture(drawn: dict[str, Any]) -> None:
    width, height = drawn["box"]
    for one, other in combinations(drawn["states"], 2):
        apart = max(abs(one["x"] - other["x"]) / width, abs(one["y"] - other["y"]) / height)
        assert apart > 1.2, (one["name"], other["name"])
    points = [point for edge in drawn["edges"] for point in along(edge)]
    areas = [*boxes(drawn).values(), *(tuple(edge["label"]) for edge in drawn["edges"])]
    points += [(x + side * w / 2, y + side * h / 2) for x, y, w, h in areas for side in (-1, 1)]
    assert all(0 < x < drawn["width"] and 0 < y < drawn["height"] for x, y in points)


def test_edges_lead_from_box_to_box_and_through_no_other_one(drawn: dict[str, Any]) -> None:
    """No two ways begin at the same point but those that end alike."""
    starts = [tuple(edge["path"][0]) for edge in drawn["edges"]]
    assert len(set(starts)) == len(starts)
    states = boxes(drawn)
    for edge in drawn["edges"]:
        ends = edge["source"], edge["target"]
        assert len(edge["path"]) % 3 == 1
        assert inside(*edge["path"][0], states[ends[0]], 1)
        assert inside(*edge["tip"], states[ends[1]], 1)
        for x, y in along(edge):
            through = [name for name, box in states.items() if inside(x, y, box, -1)]
            assert through == [], (ends, through)


def test_labels_stand_beside_their_edge_and_meet_nothing(drawn: dict[str, Any]) -> None:
    """They have its triggers."""
    labels = {(edge["source"], edge["target"]): tuple(edge["label"]) for edge in drawn["edges"]}
    for one, other in combinations(labels, 2):
        assert not meet(labels[one], labels[other]), (one, other)
    for ends, label in labels.items():
        assert [name for name, box in boxes(drawn).items() if meet(label, box)] == [], ends
    for edge in drawn["edges"]:
        said = " ".join(edge["lines"])
        assert said == ", ".join(each.replace("_", " ").strip() for each in edge["triggers"])
        x, y, width, height = edge["label"]
        near = (x, y, width + 40, height + 40)
        assert any(inside(*point, near) for point in along(edge)), (edge["source"], edge["target"])
