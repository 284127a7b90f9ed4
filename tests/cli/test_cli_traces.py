"""``quadriga simulate --trace`` with traces of all formats, and the commands of docs/traces.md."""

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "traces.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = dict(
    re.findall(r"^<!-- run: (.*?) -->\n```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
)
MAPPINGS = {
    path.name: path.read_text(encoding="utf-8")
    for path in (PAGE.parents[1] / "examples" / "mappings").glob("*.yaml")
}

#: invented lines in the columns of the real files
SACCT = """\
JobID|User|Account|Partition|QOS|Submit|Start|End|ElapsedRaw|Timelimit|ReqCPUS|ReqMem|NNodes|ReqTRES|AllocTRES|State
7|ann|bio|main|normal|2024-03-01T12:00:00|2024-03-01T12:00:10|2024-03-01T12:01:10|60|01:00:00|4|16G|1|cpu=4,mem=16G,node=1|cpu=4,mem=16G,node=1|COMPLETED
7.batch|||||2024-03-01T12:00:10|2024-03-01T12:00:10|2024-03-01T12:01:10|60||4||1||cpu=4,mem=16G,node=1|COMPLETED
8_1|bob|chem|main|normal|2024-03-01T12:00:05|2024-03-01T12:00:15|2024-03-01T12:01:10|55|UNLIMITED|24|4Gn|2|||TIMEOUT
9|bob|chem|main|normal|2024-03-01T12:00:06|Unknown|Unknown|0|1-00:00:00|8|4000Mc|2|||CANCELLED by 7
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-a,4000,8192,1,1000,,LS,Succeeded,100,400,110
pod-b,2500,4096,0,0,,BE,Failed,150,250,150
pod-c,2000,4096,1,500,V100M16|V100M32,BE,Pending,160,260,
"""
MACHINES = """\
sn,cpu_milli,memory_mib,gpu,model
node-x,32000,131072,2,V100M16
node-y,16000,65536,0,
"""
TASKS = """\
M1,3,j_1,1,Terminated,100,160,100,0.5
R2_1,1,j_1,1,Terminated,160,200,50,
task_x,1,j_2,2,Failed,160,200,50,0.1
"""
TASK_EVENTS = """\
600000000,,11,0,,0,ann,2,9,0.25,0.1,0.001,0
600500000,,11,0,5,1,ann,2,9,0.25,0.1,0.001,0
700000000,,11,0,5,2,ann,2,9,0.25,0.1,0.001,0
700000000,,11,0,,0,ann,2,9,0.25,0.1,0.001,0
710000000,,11,0,6,1,ann,2,9,0.25,0.1,0.001,0
800000000,,11,0,6,4,ann,2,9,0.25,0.1,0.001,0
900000000,,12,3,,0,bob,0,0,0.5,0.5,0.001,0
9223372036854775807,,12,3,6,4,bob,0,0,0.5,0.5,0.001,0
"""
INSTANCE_EVENTS = """\
time,type,collection_id,instance_index,collection_type,priority,cpus,memory
1000000,0,7,0,0,200,0.01,0.02
1200000,3,7,0,0,200,0.01,0.02
2000000,0,9,0,1,200,0.5,0.5
61200000,6,7,0,0,200,0.01,0.02
"""
FILES = {
    "jobs.txt": SACCT,
    "openb_pod_list_default.csv": PODS,
    "openb_node_list_all_node.csv": MACHINES,
    "batch_task.csv": TASKS,
    "part-00000-of-00500.csv.gz": TASK_EVENTS,
    "instance_events.csv": INSTANCE_EVENTS,
}

#: (completed, skipped), and the queues
EXPECTED: dict[str, tuple[tuple[int, int], list[str]]] = {
    "sacct": ((2, 1), ["bio", "chem"]),
    "openb": ((2, 1), ["be", "ls"]),
    "batch_task": ((4, 0), ["batch"]),
    "task_events": ((2, 1), ["service"]),
    "instance_events": ((1, 0), ["cell-a"]),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample files and the mappings of the page, in the current folder."""
    for name, text in {**FILES, **MAPPINGS}.items():
        content = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", EXPECTED)
def test_commands_of_the_page_run(quadriga: Any, folder: Path, name: str) -> None:
    program, *words = shlex.split(COMMANDS[name])
    assert program == "quadriga"
    shown = quadriga(*words)
    assert (shown.code, shown.err) == (0, "")
    done = quadriga(*words, "--check", "--json")
    report = json.loads(done.out)
    completed, skipped = EXPECTED[name][0]
    assert (report["jobs"]["completed"], report["jobs"]["skipped"]) == (completed, skipped)
    assert report["jobs"]["total"] == completed + skipped
    assert list(report["waits"]["queues"]) == EXPECTED[name][1]


def test_every_example_and_option_of_the_page_exists(quadriga: Any) -> None:
    assert set(COMMANDS) == set(EXPECTED)
    assert {f"{name}.yaml" for name in EXPECTED if name != "sacct"} == set(MAPPINGS)
    named = set(re.findall(r"`(--[a-z-]+)", TEXT))
    assert "--mapping" in named
    assert named <= set(re.findall(r"--[a-z-]+", quadriga("simulate", "--help").out))


def test_bad_lines_are_listed_and_counted(quadriga: Any, trace: Path) -> None:
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join([*lines, "31 0 x", *["y"] * 11]) + "\n")
    done = quadriga("simulate", "--trace", trace, "--json")
    assert done.code == 0
    report = json.loads(done.out)
    assert (report["jobs"]["completed"], report["jobs"]["skipped"]) == (30, 12)
    reason = "3 fields where the format has 18"
    assert report["skipped"][0] == {"job": "line 33", "reasons": [reason]}
    told = done.err.splitlines()
    assert told[0] == f"quadriga: {trace}:33: {reason}"
    assert len(told) == 11
    assert told[-1] == "quadriga: bad lines skipped: 12 (the first 10 are listed)"
    refused = quadriga("simulate", "--trace", trace, "--bad-lines", 11)
    assert refused.code == 2
    assert "more than 11 bad lines: line 33: 3 fields" in refused.err


def test_nodes_replace_those_of_the_trace_and_queues_are_by_partition(
    quadriga: Any, folder: Path, trace: Path
) -> None:
    run = ("simulate", "--trace", trace, "--nodes", "2x8vcore", "--nodes", "1x2vcore", "--json")
    workload = json.loads(quadriga(*run).out)["workload"]
    assert (workload["nodes"], workload["capacity"]) == (3, {"vcore": 18_000})
    jobs = ("simulate", "--trace", "jobs.txt", "--nodes", "2x16vcore", "--print-config")
    assert '- name: "main"' in quadriga(*jobs).out
    assert '- name: "normal"' in quadriga(*jobs, "--queue-by", "qos").out


@pytest.mark.parametrize("nodes", ["", " --nodes 1x256vcore"], ids=["nodes", "pool"])
def test_a_pool_of_equal_nodes_costs_what_the_page_says(quadriga: Any, nodes: str) -> None:
    (line,) = re.findall(rf"^quadriga (simulate --trace \S+{nodes})  +# (.+)$", TEXT, re.MULTILINE)
    words = [str(PAGE.parents[1] / each) if "/" in each else each for each in line[0].split()]
    report = json.loads(quadriga(*words, "--json").out)
    assert report["quality"]["completed"] == 150
    gangs, wait = report["gangs"]["total"] or "no", report["quality"]["mean_wait"]
    told = f"{report['decisions']['total']} decisions, {gangs} gang{'s' if nodes == '' else ''}"
    assert line[1] == f"{told}, mean wait {wait:,.0f} s"


def test_estimates_are_sent_only_if_asked_for(
    quadriga: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quadriga.core import Scheduler

    tags: dict[str, dict[str, str]] = {}
    groups: dict[str, list[str]] = {}
    apply = Scheduler.apply

    def watched(self: Scheduler, message: Any, now: int) -> Any:
        for added in getattr(message, "new", ()):
            tags[added.applicationID] = dict(added.tags)
            groups[added.applicationID] = list(added.ugi.groups)
        return apply(self, message, now)

    monkeypatch.setattr(Scheduler, "apply", watched)
    run = ("simulate", "--trace", "jobs.txt", "--nodes", "2x16vcore", "--json")
    plain = json.loads(quadriga(*run).out)
    assert tags == {"7": {}, "8_1": {}}
    assert groups == {"7": ["ann", "bio"], "8_1": ["bob", "chem"]}
    assert "expected_runtime" not in plain["options"]
    told = json.loads(quadriga(*run, "--expected-runtime").out)
    assert tags == {"7": {"expected.runtime": "3600"}, "8_1": {}}
    assert told["options"]["expected_runtime"] is True


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--trace", "jobs.txt"), "give the nodes (--nodes 100x64vcore,256Gi)"),
        (("--nodes", "2x8vcore"), "--nodes is for a trace, which --trace names"),
        (("--bad-lines", "3"), "--bad-lines is for a trace"),
        (("--queue-by", "qos"), "--queue-by is for a trace"),
        (("--mapping", "openb.yaml"), "--mapping is for a trace"),
        (("--trace", "jobs.txt", "--nodes", "many"), "'many' is not a group of nodes"),
        (("--trace", "jobs.txt", "--nodes", "1x1vcore", "--bad-lines", "-1"), "less than 0"),
        (("--trace", "jobs.txt", "--nodes", "1x1vcore", "--queue-by", "x"), "queues cannot be"),
        (("--trace", "batch_task.csv", "--mapping", "none.yaml"), "none.yaml: cannot be read"),
        (("--trace", "batch_task.csv"), "not a workload: understood are"),
        (("--trace", "jobs.txt", "--mapping", "batch_task.yaml"), "give the nodes"),
    ],
)
def test_wrong_options_are_one_line_and_code_2(
    quadriga: Any, folder: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = quadriga("simulate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
