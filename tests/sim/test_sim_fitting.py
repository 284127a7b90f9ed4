"""Whether a job could run on the empty cluster: examples, and a count of all placements."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.sim import fitting
from quadriga.sim.fitting import Quota, obstacle
from quadriga.sim.workload import Member


def cores(*sizes: int) -> list[dict[str, int]]:
    return [{"vcore": size} for size in sizes]


def gang(*groups: tuple[int, int]) -> tuple[Member, ...]:
    """``(2, 3)``: two pods of three cores."""
    return tuple(Member(count, {"vcore": size}) for count, size in groups)


@pytest.mark.parametrize(
    ("members", "nodes", "said"),
    [
        (gang((1, 4)), (4,), ""),
        (gang((1, 5)), (4, 4), "no node of the empty cluster has vcore=5"),
        (gang((1, 1)), (), "no node of the empty cluster has vcore=1"),
        (gang((3, 4)), (4, 9), ""),
        # nine cores are free, in pieces of one
        (gang((3, 4)), (7, 7, 3), "the empty cluster has room for 2 of 3 pods with vcore=4"),
        (gang((1, 2), (2, 2)), (4, 2), ""),
        (gang((1, 3), (2, 2)), (4, 2), "it needs vcore=7, and the empty cluster has vcore=6"),
        # the total fits, each size alone fits, but not both
        (gang((2, 3), (1, 4)), (5, 5), "its 3 pods of 2 sizes do not fit the empty cluster together"),
        # the tightest node for the large pod is the wrong one for the others
        (gang((1, 4), (1, 5), (3, 3)), (9, 9), ""),
        (gang((1, 0)), (1,), ""),
    ],
)  # fmt: skip
def test_examples(members: tuple[Member, ...], nodes: tuple[int, ...], said: str) -> None:
    assert obstacle(members, cores(*nodes)) == said


def test_quotas_bound_the_sum_of_all_pods() -> None:
    members, nodes = gang((2, 3)), cores(4, 4)
    wide = Quota("queue root.a", {"vcore": 6, "memory": 0})
    assert obstacle(members, nodes, [wide]) == ""
    tight = Quota("the limit of user ann in root", {"vcore": 5})
    assert obstacle(members, nodes, [wide, tight]) == (
        "it needs vcore=6, and the limit of user ann in root allows vcore=5"
    )


def test_a_search_without_result_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = gang((2, 3), (1, 4)), cores(5, 5)
    assert obstacle(*impossible)
    monkeypatch.setattr(fitting, "_SEARCH_LIMIT", -2)
    assert obstacle(*impossible) == ""


def test_thousands_of_pods_on_a_thousand_nodes() -> None:
    nodes = cores(*([8] * 1000))
    assert obstacle(gang((1000, 5), (1000, 3)), nodes) == ""
    assert obstacle(gang((1001, 5), (1000, 1)), nodes).endswith("1000 of 1001 pods with vcore=5")


amount = st.integers(0, 4)


@given(
    nodes=st.lists(st.tuples(amount, amount), max_size=3),
    groups=st.lists(st.tuples(st.integers(1, 2), amount, amount), min_size=1, max_size=3),
)
def test_the_answer_is_that_of_all_placements(nodes: Any, groups: Any) -> None:
    members = tuple(Member(count, {"vcore": v, "memory": m}) for count, v, m in groups)
    pods = [(v, m) for count, v, m in groups for _ in range(count)]

    def fits(where: tuple[int, ...]) -> bool:
        return all(
            sum(pod[kind] for pod, at in zip(pods, where, strict=True) if at == node) <= has
            for node, capacity in enumerate(nodes)
            for kind, has in enumerate(capacity)
        )

    possible = any(fits(where) for where in product(range(len(nodes)), repeat=len(pods)))
    capacities = [{"vcore": v, "memory": m} for v, m in nodes]
    assert (obstacle(members, capacities) == "") == possible
