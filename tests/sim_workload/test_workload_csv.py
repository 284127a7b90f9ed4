"""CSV traces with a mapping file."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import (
    GPU,
    MEMORY,
    VCORE,
    Member,
    NodesNeeded,
    NodeSpec,
    Skipped,
    Workload,
    WorkloadError,
    open_workload,
    parse_nodes,
    read_csv,
)

GIB = 1024**3
NODES = parse_nodes(["2x8vcore,32Gi"])

Read = Callable[..., Workload]

#: a mapping of the columns id, submit, run and cpu
PLAIN = {"id": "id", "submit": "submit", "runtime": "run", "vcore": "cpu"}
HEAD = "id,submit,run,cpu\n"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """``read(text, job={...})`` reads the text; the keys replace those of the plain mapping."""

    def run(text: str, job: dict[str, Any] | None = None, **keys: Any) -> Workload:
        given = {name: keys.pop(name) for name in ("nodes", "bad_lines") if name in keys}
        fields = {**PLAIN, **(job or {})}
        mapping = {**keys, "job": {key: v for key, v in fields.items() if v is not None}}
        if "nodes_of_mapping" in mapping:
            mapping["nodes"] = mapping.pop("nodes_of_mapping")
        path = tmp_path / "trace.csv"
        path.write_text(text, encoding="utf-8")
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
        return read_csv(path, tmp_path / "map.yaml", **{"nodes": NODES, **given})

    return run


def test_a_table_becomes_a_workload(read: Read) -> None:
    workload = read(
        "who,id,submit,begin,finish,cpu,mem,gpus,limit,team,lane,how\n"
        "ann,b,110,120,180,2,2048,1,90,bio,A.b,ok\n"
        'bob,"a",100,105,135.5,0.25,512,0,,,,\n',
        job={
            "runtime": None,
            "start": "begin",
            "end": "finish",
            "user": "who",
            "group": "team",
            "queue": "lane",
            "status": "how",
            "estimate": "limit",
            "gpu": "gpus",
            "memory": {"column": "mem", "unit": "Mi"},
        },
    )
    assert (workload.name, workload.source) == ("trace", "trace.csv, read with map.yaml")
    assert workload.nodes == NODES
    assert [(each.name, each.original) for each in workload.queues] == [
        ("a-b", "A.b"), ("default", "default"),
    ]  # fmt: skip
    assert (workload.horizon_s, workload.start_unix_s) == (11, None)
    first, second = workload.jobs
    assert (first.job_id, first.submit_s, first.runtime_s, first.user) == ("a", 0, 31, "bob")
    assert first.members == (Member(1, {VCORE: 250, MEMORY: GIB // 2}),)
    assert (first.walltime_s, first.group, first.status) == (None, None, None)
    assert first.recorded_wait_s == 5
    assert (second.submit_s, second.runtime_s, second.queue) == (10, 60, "a-b")
    assert second.members == (Member(1, {VCORE: 2000, MEMORY: 2 * GIB, GPU: 1}),)
    assert (second.walltime_s, second.group, second.status) == (90, "bio", "ok")


def test_constants_defaults_names_and_factors(read: Read) -> None:
    workload = read(
        "id,submit,run,cpu,kind\na,0,2,50,1\nb,1,2,,9\nc,2,2,nan,\n",
        job={
            "vcore": {"column": "cpu", "scale": 0.01, "default": 200},
            "memory": {"value": 3, "unit": "Gi"},
            "runtime": {"column": "run", "unit": "min"},
            "queue": {"column": "kind", "names": {1: "batch"}, "default": "rest"},
            "user": {"value": "all"},
            "resources": {"example.com/fpga": {"value": 2}},
        },
    )
    assert [job.members[0].resources[VCORE] for job in workload.jobs] == [500, 2000, 2000]
    assert {job.members[0].resources[MEMORY] for job in workload.jobs} == {3 * GIB}
    assert {job.members[0].resources["example.com/fpga"] for job in workload.jobs} == {2}
    assert {job.runtime_s for job in workload.jobs} == {120}
    assert [job.queue for job in workload.jobs] == ["batch", "9", "rest"]
    assert {job.user for job in workload.jobs} == {"all"}


def test_pods_are_a_gang_and_copies_are_not(read: Read) -> None:
    text = "id,submit,run,cpu,n\na,0,9,1,3\n"
    (gang,) = read(text, job={"pods": "n"}).jobs
    assert gang.members == (Member(3, {VCORE: 1000}),)
    copies = read(text, job={"copies": "n"}).jobs
    assert [job.job_id for job in copies] == ["a-1", "a-2", "a-3"]
    assert all(job.members == (Member(1, {VCORE: 1000}),) for job in copies)


def test_ids_are_joined_or_made_and_a_few_lines_cannot_stand_for_too_many_jobs(read: Read) -> None:
    text = "id,submit,run,cpu,part\na,0,9,1,x\n,1,9,1,y\n"
    joined = read(text, job={"id": ["id", "part"]}).jobs
    assert [job.job_id for job in joined] == ["a.x", "y"]
    assert [job.job_id for job in read(text).jobs] == ["a", "line-3"]
    assert [job.job_id for job in read(text, job={"id": None}).jobs] == ["line-2", "line-3"]
    text = "id,submit,run,cpu,n\n" + "a,0,9,1,1000000\n" * 6
    with pytest.raises(WorkloadError, match=r"trace.csv:7: more than 5000000 jobs"):
        read(text, job={"copies": "n"})


@pytest.mark.parametrize(
    ("time", "first", "second"),
    [
        ("s", "100", "160.9"),
        ("ms", "100000", "160000"),
        ("us", "1e8", "160000000"),
        ("iso", "2024-03-01T12:00:00", "2024-03-01T13:01:00+01:00"),
        ("%d.%m.%Y %H:%M", "01.03.2024 12:00", "01.03.2024 12:01"),
    ],
)
def test_times_in_all_their_forms(read: Read, time: str, first: str, second: str) -> None:
    workload = read(
        f"id,submit,run,cpu\nb,{second},0-00:01:05,1\na,{first},1:30,1\n",
        time=time,
        job={"runtime": {"column": "run", "unit": "clock"}},
    )
    found = [(job.job_id, job.submit_s, job.runtime_s) for job in workload.jobs]
    assert found == [("a", 0, 90), ("b", 60, 65)]
    dated = time in ("iso", "%d.%m.%Y %H:%M")
    assert workload.start_unix_s == (1_709_294_400 if dated else None)


def test_a_field_may_have_its_own_unit_and_the_start_stand_for_the_submission(read: Read) -> None:
    (job,) = read(
        HEAD + "a,2024-03-01,90,1\n",
        time="iso",
        job={"runtime": "run", "estimate": {"column": "run", "unit": "min"}},
    ).jobs
    assert (job.runtime_s, job.walltime_s) == (90, 5400)
    (job,) = read(HEAD + "a,50,9,1\n", job={"submit": None, "start": "submit"}).jobs
    assert (job.submit_s, job.runtime_s, job.recorded_wait_s) == (0, 9, None)


def test_only_lines_that_meet_the_conditions_count(read: Read) -> None:
    text = HEAD + "a,0,9,1\nb,1,9,2\nc,2,9,3\nd,3,9,\ne,x,y,z\n"

    def ids(*where: dict[str, Any]) -> list[str]:
        workload = read(text, where=list(where), bad_lines=9)
        return [job.job_id for job in workload.jobs]

    assert ids() == ["a", "b", "c"]
    assert ids({"column": "id", "is": ["a", "c", "e"]}) == ["a", "c"]
    assert ids({"column": "id", "not": "b"}) == ["a", "c"]
    assert ids({"column": "cpu", "min": 2}) == ["b", "c"]
    assert ids({"column": "cpu", "max": 2.5}, {"column": "id", "not": ["a"]}) == ["b"]
    excluded = read(text, where=[{"column": "id", "not": "e"}])
    assert excluded.bad_lines == ()
    assert excluded.skipped == (Skipped("d", "it asks for nothing"),)
    (bad,) = read(text, where=[{"column": "cpu", "min": 1}]).bad_lines
    assert (bad.line, bad.column, bad.reason) == (6, "cpu", "'z' is not a number")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,,9,1", "its submission is not known"),
        ("x,5,NULL,1", "its runtime is not known"),
        ("x,5,0,1", "its runtime is 0 s"),
        ("x,5,-3,1", "its runtime is -3 s"),
        ("x,5,9,0", "it asks for nothing"),
    ],
)
def test_what_cannot_run_is_skipped_with_the_reason(read: Read, row: str, reason: str) -> None:
    workload = read(HEAD + "a,0,9,1\n" + row)
    assert (workload.skipped, workload.bad_lines) == ((Skipped("x", reason),), ())


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ("x,soon,9,1", "submit", "'soon' is not a number"),
        ("x,5,inf,1", "run", "'inf' is not a number"),
        ("x,5,1e999999,1", "run", "'1e999999' is too large"),
        ("x,5,5e9,1", "run", "5000000000 s is more than 4000000000 s"),
        ("x,5,9,-1", "cpu", "-1000 is less than 0"),
        ("x,5,9,1e15", "cpu", "1000000000000000000 is more than 10000000000000000"),
        ("x,9e9,9,1", "the time of submission", "9000000000 s is more than 4000000000 s"),
        ("x,5,9", "", "3 fields where the header has 4"),
        ('x,5,9,"1', "", "its quotes do not match"),
    ],
)
def test_a_bad_line_is_told_with_its_column(read: Read, row: str, column: str, reason: str) -> None:
    workload = read(HEAD + "a,0,9,1\n" + row + "\n")
    (bad,) = workload.bad_lines
    assert (bad.line, bad.column) == (3, column)
    assert bad.reason.startswith(reason)
    assert [job.job_id for job in workload.jobs] == ["a"]


def test_bad_lines_are_skipped_up_to_a_bound(read: Read, tmp_path: Path) -> None:
    text = HEAD + "a,0,9,1\n" + "x,soon,9,1\n" * 4
    assert [bad.line for bad in read(text, bad_lines=4).bad_lines] == [3, 4, 5, 6]
    with pytest.raises(WorkloadError) as caught:
        read(text, bad_lines=3)
    told = "; ".join(f"line {line}: submit: 'soon' is not a number" for line in (3, 4, 5))
    assert str(caught.value) == f"{tmp_path / 'trace.csv'}: more than 3 bad lines: {told}; ..."
    with pytest.raises(WorkloadError, match=r"trace.csv:3: submit: 'soon' is not a number$"):
        read(text, bad_lines=0)
    with pytest.raises(WorkloadError, match=r"no line has the format: line 2: .*; line 3: "):
        read(HEAD + "x,soon,9,1\n" * 2)
    with pytest.raises(ValueError, match="less than 0"):
        read(text, bad_lines=-1)


EVENTS: dict[str, Any] = {
    "columns": ["time", "kind", "id", "cpu"],
    "events": {"column": "kind", "time": "time", "submit": 0, "start": 1, "end": [2, "killed"]},
    "job": {"id": "id", "submit": None, "runtime": None, "vcore": "cpu"},
}


def test_events_become_jobs_also_without_starts(read: Read) -> None:
    workload = read(
        "10,0,a,2\n11,0,b,1\n12,1,a,2\n13,9,a,4\n15,2,a,2\n20,0,a,3\n21,1,a,3\n29,killed,a,3\n",
        **EVENTS,
    )
    found = [(j.job_id, j.submit_s, j.recorded_wait_s, j.runtime_s) for j in workload.jobs]
    assert found == [("a", 0, 2, 3), ("a", 10, 1, 8)]
    assert [job.members[0].resources[VCORE] for job in workload.jobs] == [2000, 3000]
    assert workload.skipped == (Skipped("b", "its end is not in the file"),)
    events = {key: value for key, value in EVENTS["events"].items() if key != "start"}
    (job,) = read("10,0,a,2\n15,2,a,2\n", **{**EVENTS, "events": events}).jobs
    assert (job.submit_s, job.runtime_s, job.recorded_wait_s) == (0, 5, None)


def test_events_that_do_not_belong_together_or_have_no_id_are_left_out(read: Read) -> None:
    workload = read(
        "9,2,a,1\n10,0,a,1\n11,0,a,1\n12,2,a,1\n13,0,a,1\n14,1,a,1\n15,2,a,1\n", **EVENTS
    )
    assert workload.skipped == (
        Skipped("a", "its end in line 1 follows no submission"),
        Skipped("a", "it is submitted again in line 3 before its end"),
        Skipped("a", "its runtime is not known"),
    )
    assert [(job.submit_s, job.runtime_s) for job in workload.jobs] == [(0, 1)]
    assert workload.horizon_s == 1
    workload = read("10,0,a,1\n11,1,,1\n,1,a,1\n12,1,a,1\n13,2,a,1\n", **EVENTS)
    assert [(bad.line, bad.column, bad.reason) for bad in workload.bad_lines] == [
        (2, "id", "it is empty"),
        (3, "time", "it is empty"),
    ]
    assert len(workload.jobs) == 1


def test_nodes_of_the_mapping(read: Read, tmp_path: Path) -> None:
    text = HEAD + "a,0,9,1\n"
    assert read(text, nodes=None, nodes_of_mapping=["2x8vcore,32Gi"]).nodes == NODES
    assert read(text, nodes_of_mapping="1x1vcore").nodes == NODES, "given ones replace them"
    with pytest.raises(NodesNeeded, match=r"map.yaml does not tell the nodes: give the nodes"):
        read(text, nodes=None)
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(b"n,cpu,mem\nx,4,9\ny,2.5,\n"))
    table = {"file": "nodes.csv.gz", "vcore": "cpu", "memory": {"column": "mem", "unit": "Gi"}}
    expected = ({VCORE: 4000, MEMORY: 9 * GIB}, {VCORE: 2500})
    assert read(text, nodes=None, nodes_of_mapping=table).nodes == (
        NodeSpec("node-1", expected[0]),
        NodeSpec("node-2", expected[1]),
    )
    named = read(text, nodes=None, nodes_of_mapping={**table, "name": "n"}).nodes
    assert [node.name for node in named] == ["x", "y"]


@pytest.mark.parametrize(("required", "ends"), [("", 60), ("rack", 120)])
def test_q13_gangs_of_a_trace_run_in_one_rack(
    read: Read, tmp_path: Path, required: str, ends: int
) -> None:
    """Both gangs fit the cluster together, but only one of the racks has room for all three pods of one."""
    (tmp_path / "nodes.csv").write_text("cpu,r\n4,a\n4,b\n4,b\n", encoding="utf-8")
    table = {"file": "nodes.csv", "vcore": "cpu", "labels": {"rack": "r"}}
    job = {"pods": {"value": "3"}, "topology_required": {"value": required}}
    workload = read(HEAD + "g,0,60,2\nh,0,60,2\n", job, nodes_of_mapping=table, nodes=None)
    assert workload.nodes == parse_nodes(["1x4vcore@rack=a", "2x4vcore@rack=b"])
    queues = "[{name: root, submitacl: '*', queues: [{name: default}]}]"
    config = f"partitions: [{{name: default, topology: [rack], queues: {queues}}}]"
    found = Simulation(workload, SimulationOptions(config=config)).run().data
    assert found["jobs"]["completed"] == 2
    assert ends <= found["virtual"]["ended_s"] < ends + 30
    with pytest.raises(ValueError, match="'rack' is not a new label such as rack=r1"):
        parse_nodes(["1x4vcore@rack"])


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ("n,cpu\nx,4\nx,4\n", r"nodes.csv:3: n: 'x' is listed twice"),
        ("n,cpu\n,4\n", r"nodes.csv:2: n: '' is empty"),
        ("n,cpu\nx,much\n", r"nodes.csv:2: cpu: 'much' is not a number"),
        ("n,cpu\nx\n", r"nodes.csv:2: 1 fields where the header has 2"),
        ("name,cpu\nx,4\n", r"map.yaml: nodes.name: nodes.csv has no column 'n'"),
    ],
)
def test_node_tables_must_be_good(read: Read, tmp_path: Path, nodes: str, complaint: str) -> None:
    (tmp_path / "nodes.csv").write_text(nodes)
    table = {"file": "nodes.csv", "name": "n", "vcore": "cpu"}
    with pytest.raises(WorkloadError, match=complaint):
        read(HEAD + "a,0,9,1\n", nodes=None, nodes_of_mapping=table)


def test_other_delimiters_and_headers(read: Read) -> None:
    text = "\ufeff id ; submit;run;cpu\na;0;9;1\n"
    assert read(text, delimiter=";").jobs == read(HEAD + "a,0,9,1\n").jobs
    bare = read("a\t0\t9\t1\n", delimiter="\t", columns=["id", "submit", "run", "cpu"])
    assert bare.jobs == read(HEAD + "a,0,9,1\n").jobs


#: "..." stands for the usual fields of a job, and "--" for those without its vcores
WRONG_MAPPINGS = [
    ("job: {vcore: cpu, submit: s, runtime: r", "map.yaml:2: not YAML: "),
    ("- 1", "map.yaml: not keys with values; known keys are columns, "),
    ("jobs: {}", "jobs: no such key; known are columns, "),
    ("job: {cpu: cpu}", "job.cpu: no such key; known are id, "),
    ("job: {vcore: cpu}", "job.submit: is needed, or job.start"),
    ("job: {vcore: cpu, submit: s}", "job.runtime: is needed, or job.start and job.end"),
    ("job: {--}", "job: no resource: one of vcore, memory, gpu, "),
    ("{time: weeks, job: {}}", "time: there is no unit 'weeks'; known are ns, us, "),
    ("{delimiter: '||', job: {}}", "delimiter: '||' is not one character"),
    ("{columns: [a, a], job: {vcore: a, submit: a, runtime: a}}", "columns: two columns have"),
    ("job: {vcore: {unit: m}, --}", "job.vcore: either column or value"),
    ("job: {vcore: {column: c, unit: Gi}, --}", "job.vcore.unit: there is no"),
    ("job: {gpu: {column: c, unit: m}, --}", "this field has no unit"),
    ("job: {vcore: {column: c, scale: 0}, --}", "job.vcore.scale: 0 is not "),
    ("job: {vcore: {column: c, scale: x}, --}", "'x' is not a number"),
    ("job: {vcore: [a, b], --}", "job.vcore: not keys with values"),
    ("job: {user: {column: }, ...}", "job.user.column: it is empty"),
    ("job: {user: {column: [u]}, ...}", "user.column: not a text"),
    ("job: {user: no, ...}", "trace.csv has no column"),
    ("job: {vcore: c, vcore: d, --}", "job.vcore: "),
    ("job: {user: {column: u, names: [1]}, ...}", "job.user.names: "),
    ("job: {resources: {a/b: x, a/b2: [1]}, --}", "job.resources.a/b2: "),
    ("job: {resources: {vcore: c}, ...}", "vcore: the resource is "),
    ("job: {resources: 3, ...}", "job.resources: not names of "),
    ("{where: {column: c}, job: {...}}", "where: not a list"),
    ("{where: [{column: c}], job: {...}}", "where[0]: a column and"),
    ("{nodes: [2x2], job: {...}}", "nodes: '2x2': '2' is not an "),
    ("{nodes: {vcore: c}, job: {...}}", "nodes.file: is needed"),
    ("{nodes: {file: f}, job: {...}}", "nodes: no resource"),
    ("{events: {column: c}, job: {vcore: c}}", "events.time: is needed"),
    (
        "{events: {column: c, time: t, submit: 0, end: 1}, job: {vcore: c}}",
        "job.id: is needed: it tells which events belong together",
    ),
    (
        "{events: {column: c, time: t, submit: 0, end: 1}, job: {id: i, vcore: c, end: e}}",
        "job.end: comes from the events",
    ),
    ("job: {...}", "job.submit: trace.csv has no column 's'"),
    (
        "{where: [{column: x, is: 1}], job: {vcore: cpu, submit: submit, runtime: run}}",
        "where[0].column: trace.csv has no column 'x'",
    ),
    ("[" * 300, "map.yaml:1: "),
    ("job: &a [*a]", "map.yaml:1: "),
    ("#" * 70_000, "longer than 65536 bytes"),
]


@pytest.mark.parametrize(("mapping", "complaint"), WRONG_MAPPINGS)
def test_a_wrong_mapping_is_told_in_one_line(tmp_path: Path, mapping: str, complaint: str) -> None:
    mapping = mapping.replace("...", "vcore: c, --").replace("--", "submit: s, runtime: r")
    (tmp_path / "trace.csv").write_text(HEAD + "a,0,9,1\n")
    (tmp_path / "map.yaml").write_text(mapping + "\n")
    with pytest.raises(WorkloadError) as caught:
        read_csv(tmp_path / "trace.csv", tmp_path / "map.yaml", nodes=NODES)
    assert str(caught.value).startswith(f"{tmp_path / 'map.yaml'}:")
    assert complaint in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_mapping_says_what_the_queues_are(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(HEAD)
    with pytest.raises(WorkloadError, match="a mapping already says what the queues are"):
        open_workload(tmp_path / "trace.csv", mapping=tmp_path / "map.yaml", queue_by="user")
    with pytest.raises(WorkloadError, match=r"map.yaml: cannot be read: No such file"):
        open_workload(tmp_path / "trace.csv", mapping=tmp_path / "map.yaml")
