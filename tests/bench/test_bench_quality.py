"""``python -m bench quality``: our settings and the references in one table."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench._references import REFERENCES, schedule
from bench._support.settings import SETTINGS, Setting
from bench.quality import main
from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload, embedded
from tests.bench.reference_twin import Twin

TRACE = "; MaxNodes: 2\n; MaxProcs: 4\n1 0 -1 100 2 -1 -1 2 -1 -1 1 1 -1 -1 1 -1 -1 -1\n"


def test_each_workload_has_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "small.swf"
    trace.write_text(TRACE)
    main(["--trace", str(trace), "--limit", "20", "--policy", "default", "--policy", "[ab]q"])
    out, err = capsys.readouterr()
    tables = [table.splitlines() for table in out.strip().split("\n\n")]
    assert [lines[0] for lines in tables] == [
        "embedded: 20 jobs, 44 nodes", "small: 1 jobs, 2 nodes",
    ]  # fmt: skip
    for lines, jobs in zip(tables, ("20 of 20", "1 of 1"), strict=True):
        assert [line.split("  ")[1] for line in lines[3:]] == [
            "ours: default", "(a)q first come first served", "(b)q first fit",
        ]  # fmt: skip
        assert all(jobs in line for line in lines[3:])
    assert "small, bq: done" in err


def test_a_table_can_be_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--limit", "5", "--policy", "b", "--markdown"])
    title, _, *lines = capsys.readouterr().out.strip().splitlines()
    assert title == "embedded: 5 jobs, 44 nodes"
    assert [line.split(" | ")[0] for line in lines] == ["| waits in s", "| ---", "| (b) first fit"]
    assert len({line.count("|") for line in lines}) == 1


def test_json_has_the_figures_of_the_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    main("--days 1 --json --policy packing --property gang.admission=incremental".split())
    packing, given = json.loads(capsys.readouterr().out)
    assert [packing["policy"], given["policy"]] == ["packing", "packing, given"]
    figures = (
        Simulation(embedded(1), SimulationOptions(node_sort="binpacking")).run().data["quality"]
    )
    assert {name: packing[name] for name in figures} == figures
    assert given["completed"] == packing["total"]


def test_a_jitter_changes_the_workload_a_little(capsys: pytest.CaptureFixture[str]) -> None:
    """And the same jitter is the same workload."""
    main(["--days", "1", "--policy", "b", "--jitter", "1", "--jitter", "2", "--jitter", "1"])
    tables = [table.splitlines() for table in capsys.readouterr().out.strip().split("\n\n")]
    assert [lines[0].split(":")[0] for lines in tables] == [
        "embedded, jitter 1", "embedded, jitter 2", "embedded, jitter 1",
    ]  # fmt: skip
    assert tables[0] == tables[2] != tables[1]
    whole = len(embedded(1).jobs)
    for lines in tables:
        assert 0.9 * whole < int(lines[0].split(": ")[1].split(" ")[0].replace(",", "")) < whole


def test_a_setting_that_does_not_exist_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SETTINGS, "sideways", Setting({"node_sort": "sideways"}))
    monkeypatch.setitem(SETTINGS, "half", Setting())
    policies = ["--policy", "sideways", "--policy", "half"]
    main(["--limit", "1", *policies, "--property", "gang.admission=half", "--json", "--days", "1"])
    out, err = capsys.readouterr()
    assert [row["policy"] for row in json.loads(out)] == ["half"]
    assert "sideways: left out: no node order is named sideways" in err
    assert "half, given: left out: gang.admission: 'half' is none of" in err


def test_policies_are_listed_and_misspelled_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="no policy is named 'nobody'"):
        main(["--policy", "nobody"])
    with pytest.raises(SystemExit):
        main(["--property", "gang.hold"])
    assert "'gang.hold' is not NAME=VALUE" in capsys.readouterr().err
    main(["--list"])
    assert capsys.readouterr().out.split("\n") == [*SETTINGS, *REFERENCES, ""]


# -- the references, each beside a twin without shortcuts --------------------------------------------


SECOND = 1_000_000_000


def cores(vcores: int, memory: int = 0) -> dict[str, int]:
    return {"vcore": vcores, "memory": memory}


def workload(nodes: list[Any], queues: list[QueueSpec], jobs: list[Job]) -> Workload:
    specs = tuple(NodeSpec(f"n{number}", size) for number, size in enumerate(nodes, 1))
    ordered = tuple(sorted(jobs, key=lambda job: job.submit_s))
    return Workload("by hand", specs, tuple(queues), ordered, (), 1, "a test")


def starts(cluster: Workload, name: str) -> list[int]:
    _, records = schedule(cluster, name)
    return [r.started // SECOND if r.started >= 0 else -1 for r in records]


sizes = st.builds(cores, st.integers(0, 4), st.integers(0, 4))
members = st.builds(Member, st.integers(1, 4), sizes)
amounts = st.none() | st.builds(cores, st.integers(1, 12), st.integers(1, 12))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    nodes = draw(
        st.lists(st.builds(cores, st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=4)
    )
    queues = [
        QueueSpec(f"q{number}", draw(amounts), draw(amounts))
        for number in range(draw(st.integers(1, 3)))
    ]
    jobs = [
        Job(
            str(number),
            draw(st.integers(0, 20)),
            draw(st.integers(1, 40)),
            "ann",
            draw(st.sampled_from(queues)).name,
            tuple(draw(st.lists(members, min_size=1, max_size=2))),
            walltime_s=draw(st.none() | st.integers(1, 60)),
        )
        for number in range(draw(st.integers(1, 14)))
    ]
    return workload(nodes, queues, jobs)


@pytest.mark.parametrize("name", REFERENCES)
@given(cluster=workloads())
def test_a_reference_starts_jobs_when_its_twin_does(name: str, cluster: Workload) -> None:
    """Every job ends that fits the empty cluster, and no node is too full."""
    holdings, records = schedule(cluster, name)
    started = Twin(cluster, name).run()
    assert [record.started for record in records] == started
    assert [record.ended >= 0 for record in records] == [start >= 0 for start in started]
    for node in cluster.nodes:
        held = [holding for holding in holdings if holding.node == node.name]
        for resource, capacity in node.resources.items():
            for now in {holding.since for holding in held}:
                used = sum(h.resources.get(resource, 0) for h in held if h.since <= now < h.until)
                assert used <= capacity


def test_they_start_pods_and_gangs_when_the_simulated_resource_manager_does() -> None:
    """On an empty cluster the whole difference is in the latencies."""
    jobs = [
        Job("one", 0, 10, "ann", "q", (Member(1, cores(1000, 1)),)),
        Job("gang", 5, 10, "ann", "q", (Member(2, cores(1000, 1)),)),
        Job("next", 6, 10, "ann", "q", (Member(1, cores(4000, 1)),)),
    ]
    cluster = workload([cores(4000, 64)], [QueueSpec("q")], jobs)
    fates = {fate.job.job_id: fate.started // SECOND for fate in Simulation(cluster).run().fates}
    assert starts(cluster, "b") == [fates["one"], fates["gang"], fates["next"]] == [1, 9, 21]


# four cores, all busy until 101: the first two jobs of every example
BUSY = [Job(f"busy-{n}", 0, 100, "ann", "q", (Member(1, cores(2)),)) for n in range(2)]
TWO_NODES = [cores(3), cores(3)]
LATE = 1 + 100 + 1  # a start, the run, the confirmation


def job(name: str, submit: int, run: int, *groups: tuple[int, int], **more: Any) -> Job:
    members = tuple(Member(count, cores(size)) for count, size in groups)
    return Job(name, submit, run, "ann", more.pop("queue", "q"), members, **more)


@pytest.mark.parametrize(
    ("name", "first", "small"),
    [("a", LATE + 1, LATE + 1), ("b", 11, 12), ("c", 11, 12), ("d", 11, 12), ("e", 11, LATE + 1)],
)
def test_who_passes_a_job_that_does_not_fit(name: str, first: int, small: int) -> None:
    """`wide` needs a whole node; one core is free on each."""
    jobs = [
        *BUSY,
        job("wide", 10, 50, (1, 3)),
        job("first", 10, 300, (1, 1), walltime_s=300),
        job("small", 11, 50, (1, 1), walltime_s=50),
    ]
    cluster = workload(TWO_NODES, [QueueSpec("q")], jobs)
    found = dict(zip([each.job_id for each in cluster.jobs], starts(cluster, name), strict=True))
    assert (found["first"], found["small"], found["wide"]) == (first, small, LATE + 1)
