"""The report: the same bytes every time, as data and as text; and the journal."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quadriga.core.config import load
from quadriga.sim import (
    JournalError,
    Report,
    Simulation,
    SimulationError,
    SimulationOptions,
    queue_configuration,
    read_journal,
    render,
    write_journal,
)
from quadriga.sim.workload import NodeSpec, QueueSpec, Workload
from tests.sim.by_hand import job, simulate, workload


def mixed() -> Workload:
    jobs = [job(str(n), n * 7, 60 + n, (1 + n % 4, 1 + n % 2)) for n in range(40)]
    return workload((4, 4, 4), *jobs, job("huge", 300, 10, (1, 9)))


@cache
def of_mixed() -> Report:
    return Simulation(mixed()).run()


def section(report: Report, title: str) -> str:
    return render(report, measure=False).split(f"\n{title}\n")[1].split("\n\n")[0]


def test_v10_two_runs_give_the_same_bytes() -> None:
    options = SimulationOptions(lose=0.2, repeat=0.2, seed=3)
    one, other = (Simulation(mixed(), options).run() for _ in range(2))
    assert one.json() == other.json()
    assert "measured" not in json.loads(one.json())


def test_checking_and_recording_change_nothing() -> None:
    watched = Simulation(mixed(), SimulationOptions(check=True, journal=True)).run()
    assert of_mixed().json() == watched.json()


def test_measured_figures_are_kept_apart() -> None:
    told = json.loads(of_mixed().json(measure=True))
    assert set(told.pop("measured")) == {
        "wall_s", "decisions_per_s", "peak_memory_bytes", "invariants_checked",
    }  # fmt: skip
    assert told == json.loads(of_mixed().json())


@pytest.mark.parametrize(
    ("asked", "in_force"), [(0, 900), (60, 60), (0.25, 0.25), (0.0001, 900), (-1, None)]
)
def test_x17_the_placeholder_timeout_in_the_report_is_the_one_in_force(
    asked: float, in_force: float | None
) -> None:
    told = simulate(workload((4,), job("a", 0, 10)), placeholder_timeout_s=asked)
    assert json.loads(told.json())["options"]["placeholder_timeout_s"] == in_force


def test_the_scheduler_gives_a_gang_up_when_the_report_says() -> None:
    """900 s is what is in force where nothing was asked for."""
    work = workload((4, 4), job("busy", 0, 5_000), job("gang", 10, 60, (2, 4)))
    data = json.loads(simulate(work, gang_admission="incremental").json())
    assert data["options"]["placeholder_timeout_s"] == 900
    assert data["gangs"]["soft_timeouts"] == 1


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
    assert waits["idle"]["simulated"]["count"] == waits["q"]["gangs"]["simulated"]["count"] == 0
    lines = section(report, "Waits").splitlines()
    assert lines[0].split() == ["jobs", "mean", "p50", "p75", "p90", "p95", "p99", "max"]
    assert [line[:12].rstrip() for line in lines[2:]] == [
        "  all jobs", "    recorded", "    gangs", "  queue q", "    recorded", "  queue r", "    gangs",
    ]  # fmt: skip


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
    options = SimulationOptions(
        lose=0.2, repeat=0.2, seed=3, placeholder_timeout_s=90, ask_form=form
    )
    simulation = Simulation(mixed(), options)
    simulation.run()
    usage = simulation.usage
    held = simulation.manager.held_until(usage.until)
    assert sum(each.resources["vcore"] * (each.until - each.since) for each in held) == usage.area
    assert {each.node for each in held} == {"n1", "n2", "n3"}


@pytest.mark.parametrize("unicode", [True, False])
def test_text_for_people(unicode: bool) -> None:
    text = render(of_mixed(), measure=False, unicode=unicode)
    assert text.isascii() != unicode
    for title in ("Jobs", "Gangs", "Waits", "Utilisation", "Messages", "Unschedulable jobs"):
        assert f"\n{title}" in text
    assert "huge" in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    assert "Measured" in render(of_mixed())


def test_many_jobs_that_end_alike_are_told_once() -> None:
    report = simulate(workload((4,), *(job(f"big-{n}", n, 10, (1, 9)) for n in range(9))))
    assert "big-0, big-1, big-2, big-3, big-4 and 4 more" in render(report, measure=False)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    jobs = [job(str(n), n, 1) for n in range(250)]
    Simulation(workload((4,), *jobs), progress=lambda *now: told.append(now)).run()
    assert [total for _, total in told] == [250, 250]
    assert told == sorted(told)


def test_a_violated_invariant_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(workload((4,), job("a", 0, 10)))
    monkeypatch.setattr(type(simulation.scheduler), "check", lambda self: ["V2: node n1 is wrong"])
    with pytest.raises(SimulationError, match="V2: node n1 is wrong") as stopped:
        simulation.run()
    assert stopped.value.violations == ("V2: node n1 is wrong",)


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    simulation = Simulation(mixed(), SimulationOptions(journal=True))
    simulation.run()
    path = tmp_path / "run.jsonl"
    written = write_journal(path, simulation.scheduler.journal)
    lines = list(read_journal(path))
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
    with pytest.raises(JournalError, match=r"run\.jsonl"):
        list(read_journal(path))


def configured(workload: Workload, policy: str = "fifo", node_sort: str = "fair") -> Any:
    text = queue_configuration(workload, policy=policy, node_sort=node_sort)
    (partition,) = load(text).partitions
    return partition


def test_a_queue_configuration_with_quotas_and_without_queues() -> None:
    queues = (QueueSpec("no", {"vcore": 1500, "memory": 7}), QueueSpec("2012", max={"vcore": 1}))
    partition = configured(workload((4,), queues=queues), "fair", "binpacking")
    first, second = partition.root.children
    assert (first.name, first.guaranteed, first.max) == ("no", {"vcore": 1500, "memory": 7}, None)
    assert (second.name, second.guaranteed, second.max) == ("2012", None, {"vcore": 1})
    assert first.raw_properties["application.sort.policy"] == "fair"
    assert configured(replace(workload((4,)), queues=()))


def test_a_queue_configuration_counts_gpus_if_nodes_have_some() -> None:
    plain = workload((4,))
    assert "resourceweights" not in queue_configuration(plain, policy="fifo", node_sort="fair")
    node = NodeSpec("g1", {"vcore": 8000, "memory": 8, "nvidia.com/gpu": 8})
    partition = configured(replace(plain, nodes=(*plain.nodes, node)), node_sort="bestfit")
    assert partition.resource_weights == {"memory": 1, "vcore": 1, "nvidia.com/gpu": 1}
    assert partition.node_sort_policy == "bestfit"
