"""The report: the same bytes every time, as data and as text; and the journal."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga import sim
from quadriga.core.config import load
from quadriga.sim.fragmentation import fragmentation
from quadriga.sim.reports.quality import (
    Holding,
    JobRecord,
    bounded_slowdown,
    distribution,
    jain,
    quality,
)
from quadriga.sim.reports.rendering import duration
from quadriga.sim.resource_manager import Clock
from quadriga.sim.usage import DAY, Usage
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload
from tests.sim.by_hand import job, simulate, workload


def mixed() -> Workload:
    jobs = [job(str(n), n * 7, 60 + n, (1 + n % 4, 1 + n % 2)) for n in range(40)]
    return workload((4, 4, 4), *jobs, job("huge", 300, 10, (1, 9)))


@cache
def of_mixed() -> sim.Report:
    return sim.Simulation(mixed()).run()


def section(report: sim.Report, title: str) -> str:
    return sim.render(report, measure=False).split(f"\n{title}\n")[1].split("\n\n")[0]


def test_v10_two_runs_give_the_same_bytes() -> None:
    options = sim.SimulationOptions(lose=0.2, repeat=0.2, seed=3)
    one, other = (sim.Simulation(mixed(), options).run() for _ in range(2))
    assert one.json() == other.json()
    assert "measured" not in json.loads(one.json())


def test_checking_and_recording_change_nothing_and_measured_figures_are_kept_apart() -> None:
    watched = sim.Simulation(mixed(), sim.SimulationOptions(check=True, journal=True)).run()
    assert of_mixed().json() == watched.json()
    told = json.loads(of_mixed().json(measure=True))
    assert set(told.pop("measured")) == {
        "wall_s", "decisions_per_s", "peak_memory_bytes", "invariants_checked",
    }  # fmt: skip
    assert told == json.loads(of_mixed().json())


@pytest.mark.parametrize(
    ("asked", "in_force"), [(0, 900), (60, 60), (0.25, 0.25), (0.0001, 900), (-1, None)]
)
def test_x17_the_report_has_the_timeout_in_force(asked: float, in_force: float | None) -> None:
    told = simulate(workload((4,), job("a", 0, 10)), placeholder_timeout_s=asked)
    assert json.loads(told.json())["options"]["placeholder_timeout_s"] == in_force


def test_waits_are_told_for_each_queue_with_gangs_apart() -> None:
    jobs = [
        job("a", 0, 100, recorded_wait_s=7),
        job("b", 0, 100),
        job("c", 1, 50, (2, 1), queue="r"),
        job("d", 2, 50, queue="r"),
    ]
    queues = QueueSpec("q"), QueueSpec("r"), QueueSpec("idle")
    report = simulate(workload((2,), *jobs, queues=queues))
    waits = report.data["waits"]["queues"]
    figures = ("mean", "p50", "p90", "max")
    assert [waits["q"]["simulated"][name] for name in ("count", *figures)] == [2, 1, 1, 1, 1]
    # c waits for both places, d for the end of c: 102 s and more
    assert waits["r"]["simulated"]["count"] == 2
    assert waits["r"]["gangs"]["simulated"]["count"] == 1
    assert 100 < waits["r"]["gangs"]["simulated"]["mean"] < waits["r"]["simulated"]["max"]
    assert waits["q"]["recorded"]["count"] == 1
    assert report.data["waits"]["recorded"]["mean"] == 7
    assert report.data["waits"]["gangs"]["recorded"] is None
    assert waits["idle"]["simulated"]["count"] == waits["q"]["gangs"]["simulated"]["count"] == 0
    lines = section(report, "Waits").splitlines()
    assert lines[0].split() == ["jobs", "mean", "p50", "p75", "p90", "p95", "p99", "max"]
    assert [line[:12].rstrip() for line in lines[2:]] == [
        "  all jobs", "    recorded", "    gangs", "  queue q", "    recorded", "  queue r", "    gangs",
    ]  # fmt: skip


def test_waits_are_told_by_width_and_by_user() -> None:
    jobs = (
        job("a", 0, 100, (2, 1)),
        job("b", 0, 100),
        job("c", 1, 50, (8, 1)),
        job("d", 2, 50, (1, 8)),
    )
    report = simulate(workload((8,), *jobs))
    waits = report.data["waits"]
    counts = {name: each["count"] for name, each in waits["widths"]["pods"].items()}
    assert counts == {"1": 2, "2-4": 1, "5-16": 1, "17-64": 0, "65+": 0}
    shares = {name: each["count"] for name, each in waits["widths"]["percent"].items()}
    assert shares == {"0-1": 0, "1-5": 0, "5-25": 2, "25-50": 0, "50+": 2}
    assert {user: each["count"] for user, each in waits["users"].items()} == {jobs[0].user: 4}
    widest = waits["widths"]["pods"]["5-16"]
    lines = [line.split() for line in section(report, "Waits by width").splitlines()]
    row = next(line for line in lines if line[:2] == ["5-16", "pods"])
    assert row[2:] == ["1", *[duration(widest["max"])] * 3]


def test_expected_run_times_are_compared_with_the_true_ones() -> None:
    times = [(100, 100), (1000, 100), (10, 1000), (None, 50)]
    jobs = [job(str(n), n, ran, walltime_s=told) for n, (told, ran) in enumerate(times)]
    report = simulate(workload((8,), *jobs), expected_runtime=True)
    assert report.data["scheduler"]["estimates"] == {"told": {"right": 1, "short": 1, "long": 1}}
    assert "run times told: 1 right, 1 short, 1 long" in section(report, "In the scheduler")


def test_the_figures_of_quality() -> None:
    """Two jobs run together, the third waits for both; the last one fits no node."""
    jobs = job("a", 0, 100, (1, 2)), job("b", 0, 50, (1, 2)), job("c", 10, 100, (1, 4))
    report = simulate(workload((4,), *jobs, job("huge", 20, 10, (1, 5))))
    figures, waits = report.data["quality"], report.data["waits"]["simulated"]
    assert (figures["completed"], figures["total"]) == (3, 4)
    assert figures["mean_wait"] == waits["mean"]
    assert (figures["median_wait"], figures["p95_wait"], figures["longest_wait"]) == (1, 93, 93)
    # c is submitted at 10, and starts when the end of a is known, at 102
    assert figures["makespan"] == 203
    assert figures["utilisation"] == round((2 * 100 + 2 * 50 + 4 * 100) / (4 * 203), 6)
    assert figures["slowdown"] == round((101 / 100 + 51 / 50 + 193 / 100) / 3, 3)
    assert (figures["fairness"], figures["preemptions"]) == (1, 0)
    # half the node is free from 52 on, and c, which waits, needs all of it; huge fits no node
    assert 0 < figures["fragmentation"] < 0.5
    text = section(report, "Quality")
    assert "completed         3 of 4 jobs" in text
    assert "wait of these     mean 31.7s, median 1s, p95 1m33s, longest 1m33s" in text
    assert "makespan          3m23s" in text


@pytest.mark.parametrize("form", ["ask", "allocation"])
def test_what_was_held_adds_up_to_the_usage(form: str) -> None:
    """The time and place of every allocation, with faults and jobs that hold on to the end."""
    options = sim.SimulationOptions(
        lose=0.2, repeat=0.2, seed=3, placeholder_timeout_s=90, ask_form=form
    )
    simulation = sim.Simulation(mixed(), options)
    simulation.run()
    usage = simulation.usage
    held = simulation.manager.held_until(usage.until)
    assert sum(each.resources["vcore"] * (each.until - each.since) for each in held) == usage.area
    assert {each.node for each in held} == {"n1", "n2", "n3"}


@pytest.mark.parametrize("unicode", [True, False])
def test_text_for_people(unicode: bool) -> None:
    text = sim.render(of_mixed(), measure=False, unicode=unicode)
    assert text.isascii() != unicode
    for title in ("Jobs", "Gangs", "Waits", "Utilisation", "Messages", "Unschedulable jobs"):
        assert f"\n{title}" in text
    assert "huge" in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    assert "Measured" in sim.render(of_mixed())


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    jobs = [job(str(n), n, 1) for n in range(250)]
    sim.Simulation(workload((4,), *jobs), progress=lambda *now: told.append(now)).run()
    assert [total for _, total in told] == [250, 250]
    assert told == sorted(told)


def test_a_violated_invariant_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = sim.Simulation(workload((4,), job("a", 0, 10)))
    monkeypatch.setattr(type(simulation.scheduler), "check", lambda self: ["V2: node n1 is wrong"])
    with pytest.raises(sim.SimulationError, match="V2: node n1 is wrong") as stopped:
        simulation.run()
    assert stopped.value.violations == ("V2: node n1 is wrong",)


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    simulation = sim.Simulation(mixed(), sim.SimulationOptions(journal=True))
    simulation.run()
    path = tmp_path / "run.jsonl"
    written = sim.write_journal(path, simulation.scheduler.journal)
    lines = list(sim.read_journal(path))
    assert len(lines) == written > 40
    assert [line.seq for line in lines] == sorted(line.seq for line in lines)
    story = [tuple(line) for line in lines if line.key == "application/0"]
    assert story == [tuple(line) for line in simulation.scheduler.story("application/0")]
    assert "Completed" in [line.target for line in lines if line.key == "application/0"]


@pytest.mark.parametrize(
    "wrong",
    [b"not json\n", b"[1]\n", b"{}\n", b'{"seq":1}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n",
     b'{"seq":0,"time":"x","key":"k","trigger":"","source":"","target":"","cause":""}\n'],
    ids=["text", "list", "empty", "part", "bytes", "deep", "time"],
)  # fmt: skip
def test_what_is_no_journal(tmp_path: Path, wrong: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(wrong)
    with pytest.raises(sim.JournalError, match=r"run\.jsonl"):
        list(sim.read_journal(path))


def configured(workload: Workload, policy: str = "fifo", node_sort: str = "fair") -> Any:
    text = sim.queue_configuration(workload, policy=policy, node_sort=node_sort)
    (partition,) = load(text).partitions
    return partition


def test_a_queue_configuration_with_quotas_without_queues_or_with_gpus() -> None:
    queues = (QueueSpec("no", {"vcore": 1500, "memory": 7}), QueueSpec("2012", max={"vcore": 1}))
    partition = configured(workload((4,), queues=queues), "fair", "binpacking")
    first, second = partition.root.children
    assert (first.name, first.guaranteed, first.max) == ("no", {"vcore": 1500, "memory": 7}, None)
    assert (second.name, second.guaranteed, second.max) == ("2012", None, {"vcore": 1})
    assert first.raw_properties["application.sort.policy"] == "fair"
    assert configured(replace(workload((4,)), queues=()))
    plain = workload((4,))
    assert "resourceweights" not in sim.queue_configuration(plain, policy="fifo", node_sort="fair")
    node = NodeSpec("g1", {"vcore": 8000, "memory": 8, "nvidia.com/gpu": 8})
    partition = configured(replace(plain, nodes=(*plain.nodes, node)), node_sort="bestfit")
    assert partition.resource_weights == {"memory": 1, "vcore": 1, "nvidia.com/gpu": 1}
    assert partition.node_sort_policy == "bestfit"


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


def test_without_completed_jobs_there_are_no_waits_and_order_does_not_matter() -> None:
    figures = quality(cluster((4,)), [record("never", "q", 0, -1, -1)], [])
    assert (figures.completed, figures.total, figures.makespan, figures.utilisation) == (0, 1, 0, 0)
    assert figures.mean_wait is figures.longest_wait is figures.slowdown is figures.fairness is None
    assert quality(cluster(()), [], []).total == 0
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
def test_fragmentation_is_a_plain_count(sizes: Any, held: Any, waiting: Any, pods: Any) -> None:
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


def test_actions_come_in_the_order_of_time_then_of_planning() -> None:
    clock, seen = Clock(), []
    for ns, name in ((5, "c"), (3, "a"), (5, "d"), (3, "b")):
        clock.after(ns, seen.append, name)
    clock.now = clock.planned[0][0]
    clock.run_due()
    assert (seen, clock.planned[0][0], clock.done) == (["a", "b"], 5, 2)
    clock.now = 5
    clock.run_due()
    assert seen == ["a", "b", "c", "d"]
    clock.run_due()
    assert (clock.planned, clock.done) == ([], 4)


def test_what_is_planned_for_now_is_done_now() -> None:
    clock, seen = Clock(), []

    def again(left: Any) -> None:
        seen.append(left)
        if left:
            clock.after(0, again, left - 1)

    clock.after(0, again, 2)
    clock.run_due()
    assert seen == [2, 1, 0]


def test_usage_is_integrated_over_days() -> None:
    usage = Usage("vcore")
    usage.change(DAY // 2, 4, False)
    usage.change(DAY * 2, 2, True)
    usage.change(DAY * 2, -1, False)
    usage.settle(DAY * 3)
    assert usage.days == [2 * DAY, 4 * DAY, 5 * DAY]
    assert (usage.area, usage.held_area, usage.until) == (11 * DAY, 2 * DAY, 3 * DAY)
    assert usage.peak == 5  # 6 was never there for any time


@given(st.lists(st.tuples(st.integers(0, 3 * DAY), st.integers(0, 9)), max_size=30))
def test_days_add_up_to_the_whole(changes: list[tuple[int, int]]) -> None:
    usage, now, area = Usage("vcore"), 0, 0
    for step, amount in changes:
        area += usage.allocated * step
        now += step
        usage.change(now, amount - usage.allocated, False)
    usage.settle(now)
    assert usage.area == area


def test_percentiles_are_of_the_nearest_rank() -> None:
    figures = distribution([n * SECOND for n in range(100, 0, -1)])
    assert [figures[f"p{p}"] for p in (50, 75, 90, 95, 99)] == [50, 75, 90, 95, 99]
    assert (figures["count"], figures["mean"], figures["max"]) == (100, 50.5, 100)
    assert distribution([]) == dict.fromkeys(figures) | {"count": 0}


@given(st.lists(st.integers(0, 10**17), min_size=1, max_size=50), st.randoms())
def test_figures_do_not_depend_on_the_order(waits: list[int], chance: Any) -> None:
    shuffled = list(waits)
    chance.shuffle(shuffled)
    assert distribution(shuffled) == distribution(waits)


def test_durations_read_well() -> None:
    told = [duration(s) for s in (None, 0.0, 0.5, 59.9, 60, 370, 3600, 43_260, 90_000, 172_800)]
    assert told == [
        "-", "0s", "0.5s", "59.9s", "1m0s", "6m10s", "1h0m", "12h1m", "1d1h", "2d0h",
    ]  # fmt: skip
