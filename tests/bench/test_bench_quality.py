"""``python -m bench quality``: our settings and the references in one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench._references import REFERENCES
from bench._settings import SETTINGS, Setting
from bench.quality import main
from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import embedded

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
    main(
        ["--days", "1", "--json", "--policy", "packing", "--property", "gang.admission=incremental"]
    )
    packing, given = json.loads(capsys.readouterr().out)
    assert [packing["policy"], given["policy"]] == ["packing", "given"]
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
    main(["--limit", "1", "--policy", "sideways", "--property", "gang.admission=half", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out) == []
    assert "sideways: left out: no node order is named sideways" in err
    assert "given: left out: gang.admission: 'half' is none of" in err


def test_a_misspelled_policy_or_property_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="no policy is named 'nobody'"):
        main(["--policy", "nobody"])
    with pytest.raises(SystemExit):
        main(["--property", "gang.hold"])
    assert "'gang.hold' is not NAME=VALUE" in capsys.readouterr().err


def test_the_policies_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    assert capsys.readouterr().out.split("\n") == [*SETTINGS, *REFERENCES, ""]
