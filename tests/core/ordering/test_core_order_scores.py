"""5.7: the lowest score, and among equals the first node, whatever has changed before."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_side import tree

from quadriga.core.ordering import best_nodes, scores
from quadriga.core.ordering.best_nodes import BestNodes
from quadriga.core.ordering.node_index import NodeIndex
from quadriga.core.ordering.scores import Scores
from quadriga.sim.scripted.script import Script

pytestmark = pytest.mark.interpreted

FEW = st.sampled_from((0.0, 0.25, 0.5, inf))
#: a node, and its score
CHANGE = st.tuples(st.integers(0, 19), FEW)


def lowest(values: list[float]) -> int:
    best = min(values, default=inf)
    return values.index(best) if best != inf else -1


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "_SMALL", 5)
    monkeypatch.setattr(best_nodes, "_LEAST", 3)
    monkeypatch.setattr(best_nodes, "_MANY", 4)


@given(st.lists(FEW, max_size=20), st.lists(st.tuples(st.integers(0, 19), FEW), max_size=40))
def test_the_first_lowest_is_chosen(values: list[float], changes: list[tuple[int, float]]) -> None:
    column = Scores(np.array(values, dtype=np.float64))
    assert column.first() == lowest(values)
    for place, value in changes:
        if place < len(values):
            column.each[place] = values[place] = value
            assert column.first() == lowest(values)
    assert list(column.values) == values


class Scored:
    """As much of a node as the front looks at."""

    def __init__(self, score: float) -> None:
        self.score = score


@given(
    st.lists(FEW, max_size=20),
    st.lists(st.one_of(st.none(), CHANGE, st.lists(CHANGE, min_size=1, max_size=3)), max_size=40),
)
def test_the_first_of_all_is_known_or_looked_for(
    values: list[float], changes: list[tuple[int, float] | list[tuple[int, float]] | None]
) -> None:
    """After arbitrary changes, new nodes (lists), and looks (``None``) that use up what was known."""
    nodes: list[Any] = [Scored(value) for value in values]
    known = BestNodes()
    for change in changes:
        if isinstance(change, list):
            fresh = sorted((min(place, len(nodes)), score) for place, score in change)
            known.insert([place for place, _ in fresh], [score for _, score in fresh])
            for place, score in fresh[::-1]:
                nodes.insert(place, Scored(score))
            continue
        if change is not None:
            place, score = change
            if place < len(nodes):
                nodes[place].score = score
                if score <= known.bound:
                    known.put(score, place)
            continue
        scores_now = [node.score for node in nodes]
        first = known.first(nodes)
        if first is None and not known.whole:
            known.fill(np.array(scores_now, dtype=np.float64))
            first = known.first(nodes)
        place = lowest(scores_now)
        assert first is (nodes[place] if place >= 0 else None)


@pytest.mark.parametrize("policy", ["fair", "binpacking", "bestfit"])
def test_blocks_and_a_short_log_decide_alike(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are forgotten because the log is long are made anew when they are asked for."""

    def decided() -> list[str]:
        rm = Script(tree("a", partition=f"nodesortpolicy: {{type: {policy}}}"))
        for at in range(17):
            rm.node(f"n{at:02}", memory=50 + 10 * (at % 4), vcore=40)
        rm.app("app", queue="root.a")
        said = []
        for turn in range(12):
            for size in (1, 2, 7):
                rm.ask("app", f"{turn}-{size}", memory=size, vcore=1, repeat=1 + turn % 3)
            said += rm.schedule()
        return said

    blocks = decided()
    monkeypatch.setattr(scores, "_SMALL", 10**6)
    assert decided() == blocks
    monkeypatch.setattr(
        NodeIndex, "_log_limit", property(lambda n: 3, lambda n, value: None), raising=False
    )
    assert decided() == blocks
    assert any("new" in line for line in blocks)
