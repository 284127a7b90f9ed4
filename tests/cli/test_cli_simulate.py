"""``quadriga simulate`` and what is left of a run: JSON, journal, story."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from quadriga.core import Scheduler


def test_a_trace_is_recognised_and_reported(quadriga: Any, trace: Path) -> None:
    done = quadriga("simulate", "--trace", trace, "--check")
    assert done.code == 0
    assert done.err == ""  # no progress in a pipe
    assert "small: " in done.out and "completed" in done.out
    assert "Measured" in done.out


def test_json_is_the_same_every_time(quadriga: Any, trace: Path, tmp_path: Path) -> None:
    """But for measurements."""
    one, other = (quadriga("simulate", "--trace", trace, "--json") for _ in range(2))
    assert one == other
    report = json.loads(one.out)
    assert report["jobs"]["completed"] == report["jobs"]["total"] == 30
    assert report["gangs"]["total"] == 6
    assert "measured" not in report
    path = tmp_path / "report.json"
    done = quadriga("simulate", "--trace", trace, "--json", path, "--measure", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads(path.read_text())["measured"]["wall_s"] > 0


def test_the_model_in_small(quadriga: Any) -> None:
    """The seed makes a difference."""
    small = ("simulate", "--days", 1, "--limit", 20, "--cluster", 0.1, "--scale", 0.5, "--json")
    one, other = (json.loads(quadriga(*small, "--seed", seed).out) for seed in (1, 2))
    assert one["jobs"]["total"] <= 20
    assert one["waits"] != other["waits"]


@pytest.mark.parametrize(
    "options",
    [
        ("--policy", "stateaware"),
        ("--policy", "expected"),
        ("--node-sort", "binpacking"),
        ("--no-reservations",),
        ("--gang-style", "Hard", "--placeholder-timeout", "30"),
        ("--placeholder-timeout", "-1"),
        ("--message-order", "k8shim"),
        ("--ask-form", "allocation"),
        ("--latency-start", "0", "--latency-release", "0", "--latency-confirm", "0"),
        ("--lose", "0.2", "--repeat", "0.2"),
        ("--days", "1"),
    ],
    ids=" ".join,
)
def test_every_option_runs(quadriga: Any, trace: Path, options: tuple[str, ...]) -> None:
    done = quadriga("simulate", "--trace", trace, "--check", "--json", *options)
    assert done.code == 0
    jobs = json.loads(done.out)["jobs"]
    assert sum(n for name, n in jobs.items() if name != "total") == jobs["total"] == 30


def test_a_configuration_of_ones_own(quadriga: Any, trace: Path, tmp_path: Path) -> None:
    printed = quadriga("simulate", "--trace", trace, "--print-config", "--policy", "fair")
    assert printed.code == 0
    assert "application.sort.policy: fair" in printed.out
    path = tmp_path / "queues.yaml"
    path.write_text(printed.out.replace("fair\n            ", "fifo\n            "))
    done = quadriga("simulate", "--trace", trace, "--config", path, "--json")
    assert done.code == 1  # fair rejects the gangs
    assert json.loads(done.out)["options"]["config"] == "given"


@pytest.mark.parametrize("quiet", [True, False])
def test_rejected_jobs_come_first_and_fail_the_run(quadriga: Any, trace: Path, quiet: bool) -> None:
    run = ("simulate", "--trace", trace, "--policy", "fair")
    done = quadriga(*run, "--quiet") if quiet else quadriga(*run)
    line = "6 of 30 jobs were rejected, and nothing else here is about them; the first: queue root.queue-1 cannot run"
    assert done.code == 1
    assert f"quadriga: {line}" in done.err
    assert done.out.startswith(line) is not quiet


def test_every_job_is_a_line_of_csv(quadriga: Any, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    done = quadriga("simulate", "--trace", trace, "--jobs", path, "--json")
    assert done.code == 0
    with path.open(encoding="utf-8", newline="") as file:
        jobs = list(csv.DictReader(file))
    told = json.loads(done.out)
    assert len(jobs) == told["jobs"]["total"] == 30
    assert {job["outcome"] for job in jobs} == {"completed"}
    assert all(float(j["submitted_s"]) < float(j["started_s"]) < float(j["ended_s"]) for j in jobs)
    assert [len(job["nodes"].split()) for job in jobs if job["pods"] == "2"] == [2] * 6
    waits = [float(job["started_s"]) - float(job["submitted_s"]) for job in jobs]
    assert max(waits) == told["waits"]["simulated"]["max"]
    waited_for = {job["waited_for"] for job, wait in zip(jobs, waits, strict=True) if wait > 10}
    assert waited_for == {"room on nodes"}


def test_story_of_a_run(
    quadriga: Any, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "run.jsonl"
    run = ("simulate", "--trace", trace, "--journal", journal)
    assert quadriga(*run, "--quiet").code == 0
    done = quadriga("story", "application/5", "--journal", journal)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "application/5"
    assert "New" in lines[1]
    assert "Completed" in done.out
    for name, said in (
        ("5", "near it: application/5"),
        ("aplication/5", "application/5"),
        ("zzzzzz", ""),
    ):
        unknown = quadriga("story", name, "--journal", journal)
        assert (unknown.code, unknown.out) == (2, "")
        assert said in unknown.err
    # a violated invariant leaves the journal
    journal.unlink()
    monkeypatch.setattr(Scheduler, "check", lambda self: ["V1: wrong"])
    wrong = quadriga(*run)
    assert (wrong.code, wrong.out) == (1, "")
    assert "V1: wrong" in wrong.err
    assert journal.stat().st_size


def test_a_story_cannot_steer_the_terminal(quadriga: Any, tmp_path: Path) -> None:
    line = {"seq": 0, "time": 90_061_500_000_000, "key": "node/a", "trigger": "\x1b[2J",
            "source": "New", "target": "New", "cause": "a\nb"}  # fmt: skip
    journal = tmp_path / "run.jsonl"
    journal.write_text(json.dumps(line) + "\n")
    done = quadriga("story", "node/a", "--journal", journal)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert len(done.out.splitlines()) == 2
    assert "1 d 01:01:01.500" in done.out and "stays" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--trace", "{tmp}/nothing"),
        ("simulate", "--trace", "{tmp}"),
        ("simulate", "--trace", "{trace}", "--scale", "2"),
        ("simulate", "--trace", "{trace}", "--limit", "0"),
        ("simulate", "--days", "0"),
        ("simulate", "--limit", "x"),
        ("simulate", "--policy", "random"),
        ("simulate", "--latency-start", "-1"),
        ("simulate", "--lose", "2"),
        ("simulate", "--config", "{tmp}/nothing.yaml"),
        ("simulate", "--config", "{tmp}"),
        ("simulate", "--config", "{binary}"),
        ("simulate", "--trace", "{trace}", "--config", "{bad}"),
        ("simulate", "--config", "{bad}", "--policy", "fifo"),
        ("simulate", "--trace", "{trace}", "--journal", "{tmp}/no/journal"),
        ("simulate", "--trace", "{trace}", "--json", "{tmp}/no/report"),
        ("story", "application/1", "--journal", "{tmp}/nothing"),
        ("story", "application/1", "--journal", "{bad}"),
        ("story", "application/1", "--journal", "{empty}"),
        ("story", "application/1"),
    ],
    ids=" ".join,
)
def test_wrong_input_is_one_line_and_code_2(
    quadriga: Any, trace: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    places = {"tmp": tmp_path, "trace": trace}
    for name, data in ("bad", b"partitions: [1, 2]\n"), ("empty", b""), ("binary", b"\xff\xfe\x00"):
        places[name] = tmp_path / name
        places[name].write_bytes(data)
    done = quadriga(*(argument.format(**places) for argument in arguments))
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("quadriga")
    assert "Traceback" not in done.err
    if not done.err.startswith("usage:"):
        assert len(done.err.splitlines()) == 1


FOREIGN = """\
partitions:
- name: default
  queues:
  - name: prod
    submitacl: sue
    queues: [{name: short}, {name: long}]
"""


def test_a_configuration_of_another_trace(quadriga: Any, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "foreign.yaml"
    path.write_text(FOREIGN, encoding="utf-8")
    run = ("simulate", "--trace", trace, "--config", path)
    refused = quadriga(*run)
    assert refused.code == 1
    assert "--queue-map and --user-map say" in refused.err
    assert "Rejected jobs: 30" in refused.out
    let_in = quadriga(*run, "--queue-map", "*=root.prod.short", "--user-map", "*=sue", "--json")
    assert let_in.err == ""
    report = json.loads(let_in.out)
    assert report["jobs"]["completed"] == 30
    assert list(report["waits"]["queues"]) == ["root.prod.short"]
    assert report["options"]["user_map"] == {"*": "sue"}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (FOREIGN, ("--queue-map", "root.prod.short"), "write --queue-map TRACE=INSTEAD"),
        (FOREIGN, ("--queue-map", "x=root.prod.short"), "which is none of the workload's queues"),
        (FOREIGN, ("--user-map", "x=sue"), "who is none of the workload's users"),
        ("partitions: []", (), "no partition to run in"),
        ("partitions: [{queues: [{name: a!}]}]", (), "partitions[0].queues[0].name"),
    ],
)
def test_what_cannot_be_simulated_is_wrong_input(
    quadriga: Any, trace: Path, tmp_path: Path, text: str, options: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text, encoding="utf-8")
    done = quadriga("simulate", "--trace", trace, "--config", path, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
