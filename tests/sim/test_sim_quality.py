"""The figures of a schedule: worked examples, and fragmentation beside a plain count."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.sim.fragmentation import fragmentation
from quadriga.sim.quality import Holding, JobRecord, bounded_slowdown, jain, quality
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload

SECOND = 1_000_000_000


def record(name: str, queue: str, submit: int, start: int, end: int, cores: int = 1) -> JobRecord:
    """Times in s; -1 stays -1."""
    start, end = (time * SECOND if time >= 0 else -1 for time in (start, end))
    return JobRecord(name, queue, submit * SECOND, start, end, cores * 1000)


def held(node: str, cores: int, since: int, until: int) -> Holding:
    return Holding(node, {"vcore": cores * 1000}, since * SECOND, until * SECOND)


def cluster(nodes: tuple[int, ...], *pods: tuple[int, int]) -> Workload:
    """Nodes with these cores, and a job of one (number, cores) group for each of `pods`."""
    jobs = [Job(str(n), 0, 1, "ann", "q", (Member(c, _cores(s)),)) for n, (c, s) in enumerate(pods)]
    specs = [NodeSpec(f"n{n}", _cores(size)) for n, size in enumerate(nodes, 1)]
    return Workload("by hand", tuple(specs), (QueueSpec("q"),), tuple(jobs), (), 1, "a test")


def _cores(number: int) -> dict[str, int]:
    return {"vcore": number * 1000}


def test_the_figures_of_three_jobs() -> None:
    records = [
        record("a", "q", 10, 10, 110, cores=2),
        record("b", "q", 10, 110, 160, cores=4),
        record("c", "r", 60, 60, 61),
        record("never", "r", 0, -1, -1),
    ]
    figures = quality(cluster((4,), (1, 1)), records, [], preemptions=3)
    assert (figures.total, figures.completed, figures.preemptions) == (4, 3, 3)
    assert figures.mean_wait == pytest.approx(100 / 3, abs=0.001)
    assert (figures.median_wait, figures.p95_wait, figures.longest_wait) == (0, 100, 100)
    # a and c wait for nothing; b needs 150 s for 50
    assert figures.slowdown == pytest.approx((1 + 3 + 1) / 3, abs=0.001)
    assert figures.makespan == 160  # from the first submission
    assert figures.utilisation == pytest.approx((200 + 200 + 1) / (4 * 160), abs=1e-6)
    assert figures.fairness == pytest.approx((2 + 1) ** 2 / (2 * (4 + 1)))
    assert json.loads(json.dumps(figures.data())) == figures.data()


def test_without_completed_jobs_there_are_no_waits() -> None:
    figures = quality(cluster((4,)), [record("never", "q", 0, -1, -1)], [])
    assert (figures.completed, figures.total, figures.makespan, figures.utilisation) == (0, 1, 0, 0)
    assert figures.mean_wait is figures.longest_wait is figures.slowdown is figures.fairness is None
    assert quality(cluster(()), [], []).total == 0


def test_the_order_of_records_and_holdings_does_not_matter() -> None:
    records = [record(str(n), "qr"[n % 2], n, 3 * n, 3 * n + n % 7 + 1) for n in range(50)]
    holdings = [held("n1", 1, 3 * n, 3 * n + n % 7 + 1) for n in range(50)]
    workload = cluster((4,), (5, 1), (2, 3))
    assert quality(workload, records, holdings) == quality(workload, records[::-1], holdings[::-1])


@pytest.mark.parametrize(
    ("submit", "start", "end", "slowdown"),
    [(0, 0, 100, 1), (0, 100, 200, 2), (0, 9, 10, 1), (0, 99, 100, 10), (5, 5, 5, 1)],
)
def test_a_slowdown_is_bounded_below_and_for_short_runs(
    submit: int, start: int, end: int, slowdown: float
) -> None:
    assert bounded_slowdown(record("a", "q", submit, start, end)) == slowdown


def test_jains_index() -> None:
    assert jain([7, 7, 7]) == 1
    assert jain([0, 0, 0, 9]) == 0.25
    assert jain([]) is None


pieces = st.tuples(
    st.integers(0, 2), st.integers(1, 2), st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)
)


@given(
    sizes=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=3),
    held=st.lists(pieces, max_size=12),
    waiting=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 8)), max_size=4),
    pods=st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5
    ),
)
def test_fragmentation_is_what_a_plain_count_gives(
    sizes: Any, held: Any, waiting: Any, pods: Any
) -> None:
    nodes = tuple(NodeSpec(f"n{n}", {"vcore": c, "memory": m}) for n, (c, m) in enumerate(sizes))
    members = tuple(Member(n, {"vcore": c, "memory": m}) for n, c, m in pods)
    workload = Workload(
        "", nodes, (QueueSpec("q"),), (Job("j", 0, 1, "ann", "q", members),), (), 1, ""
    )
    holdings = [
        Holding(f"n{node}", {"vcore": c, "memory": m}, since, since + length)
        for node, c, m, since, length in held
    ]
    spans = [(since, since + length) for since, length in waiting]
    expected = _count(workload, holdings, spans)
    assert fragmentation(workload, holdings, spans) == pytest.approx(expected)


def _count(workload: Workload, holdings: list[Holding], spans: list[tuple[int, int]]) -> float:
    """The same from instant to instant and node by node."""
    times = sorted({0, 60, *(t for h in holdings for t in (h.since, h.until)), *sum(spans, ())})
    lost = waited = 0.0
    for begin, end in pairwise(times):
        if not any(since <= begin < until for since, until in spans):
            continue
        waited += end - begin
        for node in workload.nodes:
            free = dict(node.resources)
            for holding in holdings:
                if holding.node == node.name and holding.since <= begin < holding.until:
                    for name, amount in holding.resources.items():
                        free[name] -= amount
            empty = now = 0
            for member in workload.jobs[0].members:
                empty += member.count * _fits(member, node.resources)
                now += member.count * _fits(member, free)
            if empty:
                lost += free["vcore"] * (empty - now) / empty * (end - begin)
    capacity = workload.capacity()["vcore"]
    return lost / (capacity * waited) if capacity and waited else 0.0


def _fits(member: Member, room: dict[str, int]) -> bool:
    return all(amount <= room[name] for name, amount in member.resources.items())
