"""Small workloads by hand: nodes and queues by name, jobs in a line."""

from typing import Any

from quadriga.sim import Report, Simulation, SimulationOptions
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload

GIB = 1024**3


def cores(vcores: int, memory: int = 1) -> dict[str, int]:
    """Cores and GiB in YuniKorn's units."""
    return {"vcore": vcores * 1000, "memory": memory * GIB}


def job(name: str, submit_s: int, runtime_s: int, *groups: tuple[int, int], **more: Any) -> Job:
    """``job("a", 0, 100, (2, 3))``: submitted at 0 s, runs 100 s, two pods of three cores."""
    members = tuple(Member(count, cores(size)) for count, size in groups or ((1, 1),))
    user, queue = more.pop("user", "ann"), more.pop("queue", "q")
    return Job(name, submit_s, runtime_s, user, queue, members, **more)


def workload(nodes: tuple[int, ...], *jobs: Job, queues: tuple[QueueSpec, ...] = ()) -> Workload:
    return Workload(
        name="by hand",
        nodes=tuple(NodeSpec(f"n{n}", cores(size, 64)) for n, size in enumerate(nodes, 1)),
        queues=queues or (QueueSpec("q"),),
        jobs=jobs,
        skipped=(),
        horizon_s=max((job.submit_s + 1 for job in jobs), default=0),
        source="a test",
    )


def simulate(workload: Workload, *, check: bool = True, **options: Any) -> Report:
    """Run it with every invariant checked at every step; every job must have its fate."""
    report = Simulation(workload, SimulationOptions(check=check, **options)).run()
    assert report.unaccounted == 0
    return report


def counts(report: Report) -> dict[str, int]:
    return {name: n for name, n in report.data["jobs"].items() if n}


def queues_below_root(queues: str, rest: str = "", *, properties: str = "{}") -> str:
    """A configuration in which everybody may submit to these queues; ``rest`` is the partition's."""
    root = f"name: root, submitacl: '*', properties: {properties}, queues: {queues}"
    return f"partitions: [{{name: default, queues: [{{{root}}}]{rest}}}]"


#: gangs gather at the same time, as in YuniKorn
INCREMENTAL = "{gang.admission: incremental}"
