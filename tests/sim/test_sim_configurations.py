"""Any valid queue configuration can be simulated: placement rules, limits, dynamic queues and all."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from quadriga.core.config import QueueConfig, load
from quadriga.sim import ConfigurationRefused, Simulation, SimulationOptions, first, render
from quadriga.sim.workload import QueueSpec, embedded
from tests.sim.by_hand import counts, job, queues_below_root, simulate, workload


def leaves(queue: QueueConfig) -> list[str]:
    below = [path for child in queue.children for path in leaves(child)]
    return below or ([] if queue.parent else [queue.path])


# -- where jobs go ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queues", "rules", "queue"),
    [
        ("[{name: q}]", "", "root.q"),
        ("[{name: a, queues: [{name: Q}, {name: r}]}]", "", "root.a.q"),
        ("[{name: a}]", "{name: provided, create: true}", "root.q"),
        (
            "[{name: a, parent: true}]",
            "{name: user, create: true, parent: {name: fixed, value: a}}",
            "root.a.ann",
        ),
        ("[{name: a}]", "{name: tag, value: namespace, create: true}", "root.q"),
        ("[{name: default}]", "", "root.default"),
        ("[{name: x}]", "{name: fixed, value: root.x}", "root.x"),
    ],
)
def test_a_job_finds_its_queue(queues: str, rules: str, queue: str) -> None:
    config = queues_below_root(queues, f", placementrules: [{rules}]" if rules else "")
    report = simulate(workload((4,), job("a", 0, 10), job("b", 1, 10, (2, 1))), config=config)
    assert counts(report) == {"total": 2, "completed": 2}
    assert {fate.queue for fate in report.fates} == {queue}
    waits = report.data["waits"]["queues"]
    assert list(waits) == [queue]
    assert waits[queue]["simulated"]["count"] == 2
    assert waits[queue]["gangs"]["simulated"]["count"] == 1


def test_without_a_queue_a_job_is_rejected_with_the_reason() -> None:
    config = queues_below_root("[{name: a, queues: [{name: q}]}, {name: b, queues: [{name: q}]}]")
    report = simulate(workload((4,), *(job(str(n), n, 10) for n in range(7))), config=config)
    assert counts(report) == {"total": 7, "rejected": 7}
    assert "root.q does not exist" in report.data["rejected"][0]["reasons"][0]
    assert report.data["rejected"][0]["reasons"] == [report.fates[0].reasons[0]]
    text = render(report, measure=False)
    assert "Rejected jobs: 7\n  0, 1, 2, 3, 4 and 2 more\n" in text
    assert text.startswith("7 of 7 jobs were rejected")
    assert text.split("\n", 1)[1].count("does not exist, and create is false") == 1


def test_a_queue_map_says_where_jobs_go() -> None:
    config = queues_below_root("[{name: a, queues: [{name: b}, {name: c}]}]")
    queues = (QueueSpec("q", original="Q one"), QueueSpec("r"))
    work = workload((4,), job("a", 0, 10), job("b", 0, 10, queue="r"), queues=queues)
    for queue_map, expected in (
        ((("q", "root.a.b"), ("r", "root.a.c")), {"root.a.b", "root.a.c"}),
        ((("Q one", "root.a.b"), ("*", "root.a.c")), {"root.a.b", "root.a.c"}),
        ((("*", "root.a.c"),), {"root.a.c"}),
    ):
        report = simulate(work, config=config, queue_map=queue_map)
        assert {fate.queue for fate in report.fates} == expected
    with pytest.raises(ConfigurationRefused, match="'s', which is none of the workload's queues"):
        simulate(work, config=config, queue_map=(("s", "root.a.b"),))


def test_a_user_map_says_who_submits() -> None:
    config = (
        "partitions: [{queues: [{name: q, submitacl: 'sue dev',"
        " limits: [{users: [sue], maxapplications: 1}]}]}]"
    )
    work = workload((4,), job("a", 0, 10), job("b", 0, 10, user="bob"))
    assert counts(simulate(work, config=config)) == {"total": 2, "rejected": 2}
    allowed = simulate(work, config=config, user_map=(("ann", "sue"), ("*", "tom:dev,ops")))
    assert counts(allowed) == {"total": 2, "completed": 2}
    with pytest.raises(ConfigurationRefused, match="'tim', who is none of the workload's users"):
        simulate(work, config=config, user_map=(("tim", "sue"),))


def test_the_default_partition_or_the_first_is_used_and_no_text_is_the_default() -> None:
    one = "{name: %s, queues: [{name: q, submitacl: '*'}]}"
    for names, used in ((("gpu", "default"), "default"), (("gpu", "cpu"), "gpu")):
        config = f"partitions: [{', '.join(one % name for name in names)}]"
        simulation = Simulation(
            workload((4,), job("a", 0, 10)), SimulationOptions(config=config, check=True)
        )
        assert counts(simulation.run()) == {"total": 1, "completed": 1}
        assert list(simulation.scheduler.partition(used).nodes) == ["n1"]
    work = workload((4,), job("a", 0, 10))
    assert {fate.queue for fate in simulate(work, config="\n").fates} == {"root.q"}
    with pytest.raises(ConfigurationRefused, match="no partition"):
        simulate(work, config="partitions: []")


# -- what a configuration does ---------------------------------------------------------------------


def test_limits_hold_jobs_back() -> None:
    config = queues_below_root(
        "[{name: q, limits: [{users: [ann], maxapplications: 1},"
        " {users: ['*'], maxresources: {vcore: 2}}]}]"
    )
    jobs = [job(f"{user}-{n}", 0, 100, user=user) for user in ("ann", "bob") for n in range(4)]
    report = simulate(workload((16,), *jobs), config=config)
    assert counts(report) == {"total": 8, "completed": 8}
    instants: dict[str, set[int]] = {"ann": set(), "bob": set()}
    for fate in report.fates:
        instants[fate.job.user].add(fate.started)
    assert {user: len(starts) for user, starts in instants.items()} == {"ann": 4, "bob": 2}


@pytest.mark.parametrize("gang", [False, True])
def test_a_job_that_is_pushed_out_begins_again(gang: bool) -> None:
    config = queues_below_root(
        "[{name: q, resources: {guaranteed: {vcore: 1, memory: 1Gi}}},"
        " {name: mine, resources: {guaranteed: {vcore: 3, memory: 3Gi}},"
        " properties: {preemption.delay: 1s}}]"
    )
    long = [job("long", 0, 1000, (4, 1))] if gang else [job(f"long-{n}", 0, 1000) for n in range(4)]
    short = job("short", 100, 50, (1, 3), queue="mine")
    report = simulate(workload((4,), *long, short), config=config)
    assert counts(report) == {"total": len(long) + 1, "completed": len(long) + 1}
    started = {fate.job.job_id: fate.started / 10**9 for fate in report.fates}
    assert 100 < started["short"] < 140
    late = [name for name, at in started.items() if at > started["short"] + 50]
    assert len(late) == (1 if gang else 3)  # from the beginning, when there is room again
    assert report.data["preemption"] == {"allocations": 3, "restarts": len(late)}
    text = render(report, measure=False)
    assert f"3 allocations were taken back, {len(late)} times a job began again" in text


def test_g7_a_gang_in_a_fair_queue_is_reported() -> None:
    config = queues_below_root("[{name: q, properties: {application.sort.policy: fair}}]")
    jobs = job("a", 0, 10), job("b", 0, 10, (2, 1)), job("c", 0, 10, (2, 1))
    report = simulate(workload((4,), *jobs), config=config)
    assert counts(report) == {"total": 3, "completed": 1, "rejected": 2}
    assert "b, c\n    queue root.q cannot run the application" in render(report, measure=False)


OWN = {
    "several top queues": "partitions: [{queues: [{name: a, submitacl: '*'}, {name: b}]}]",
    "everything": """
        partitions:
        - name: default
          placementrules:
          - {name: provided}
          - name: user
            create: true
            filter: {type: deny, users: [user-01]}
            parent: {name: tag, value: namespace, create: true,
                     parent: {name: fixed, value: root.teams}}
          - {name: fixed, value: root.rest}
          limits: [{users: ['*'], maxresources: {vcore: 300}, maxapplications: 60}]
          nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2, memory: 1}}
          queues:
          - name: root
            submitacl: '*'
            properties: {application.unschedasks.backoff: 3}
            queues:
            - name: teams
              parent: true
              maxapplications: 90
              resources: {guaranteed: {vcore: 50}, max: {vcore: 500, memory: 4Ti}}
              childtemplate:
                maxapplications: 9
                properties: {application.sort.policy: stateaware}
                resources: {max: {vcore: 200}}
            - name: rest
              properties: {priority.policy: fence, priority.offset: 5}
              limits: [{groups: [user-01, '*'], maxapplications: 4}]
        """,
    "stateaware": queues_below_root(
        "[{name: default, properties: {application.sort.policy: stateaware}}]"
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_own_configurations_run_to_the_end(name: str) -> None:
    jobs = simulate(first(embedded(days=3), None, 120), config=OWN[name]).data["jobs"]
    assert jobs["failed"] == 0
    assert jobs["completed"] + jobs["rejected"] == 120
    assert jobs["completed"] > 60 or name == "several top queues"


# -- real ones -------------------------------------------------------------------------------------


def test_every_valid_configuration_of_the_index_runs(shared: Path) -> None:
    """As it is, and with the workload's queues mapped to its leaves and its users to an admin."""
    work = first(embedded(days=1), None, 12)
    jobs = tuple(replace(job, runtime_s=min(600, job.runtime_s)) for job in work.jobs)
    work = replace(work, jobs=jobs)
    folder = shared / "data" / "queue-configs"
    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as rows:
        files = [row["file"] for row in csv.DictReader(rows) if row["verdict"] == "valid"]
    completed = 0
    for file in files:
        text = (folder / file).read_text(encoding="utf-8")
        assert simulate(work, config=text, check=False).data["jobs"]["total"] == 12
        partitions = load(text).partitions
        paths = leaves(partitions[0].root) if partitions else []
        if paths:
            where = tuple((q.name, paths[n % len(paths)]) for n, q in enumerate(work.queues))
            report = simulate(work, config=text, queue_map=where, user_map=(("*", "admin:admin"),))
            completed += report.data["jobs"]["completed"]
    assert len(files) == 60
    assert completed > 100
