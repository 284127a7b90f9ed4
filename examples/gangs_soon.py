"""How long a gang waits that is submitted every day and needs 8 of 20 busy nodes, by what is configured.

The other jobs, of one node each, keep 85 % of the nodes busy. docs/gangs.md says what the rows mean:

    python examples/gangs_soon.py [DAYS]
"""

import sys
from random import Random

from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload

NODES, GANG, HOUR = 20, 8, 3600
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {%s}
        queues:
          - name: rest
          - name: soon
            %s
"""
EARLY = "gang.gather.after: 10m"
GUARANTEED = "resources: {guaranteed: {vcore: 8}}"
#: what the row is called -> root's properties, the queue of the gangs, and whether run times are told
ROWS = {
    "defaults": ("", "", False),
    "gang.gather.after: 10m": (EARLY, "", False),
    "the same, run times told": (EARLY, "", True),
    "priority.offset: 10": ("", "properties: {priority.offset: 10}", False),
    "a guarantee and preemption": ("", GUARANTEED, False),
}


def busy(days: int) -> Workload:
    random = Random(1)
    node = {"vcore": 1000}
    jobs: list[Job] = []
    at, end = 0.0, days * 24 * HOUR
    while at < end:
        run = 600 + int(random.expovariate(1 / (3 * HOUR)))
        told = int(run * random.uniform(1, 2))
        jobs.append(Job(f"job-{len(jobs)}", int(at), run, "ann", "rest", (Member(1, node),), told))
        at += random.expovariate(0.85 * NODES / (600 + 3 * HOUR))
    for day in range(days):
        submit = (day * 24 + 9) * HOUR
        jobs.append(Job(f"gang-{day}", submit, HOUR, "sue", "soon", (Member(GANG, node),), HOUR))
    jobs.sort(key=lambda job: job.submit_s)
    nodes = tuple(NodeSpec(f"node-{at:02}", node) for at in range(NODES))
    return Workload("busy", nodes, (QueueSpec("rest"), QueueSpec("soon")), tuple(jobs), (), end, "")


def main() -> None:
    workload = busy(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    print(
        f"{'waits in h':28} {'gangs: mean':>12} {'longest':>8} {'others: mean':>13} {'preempted':>10}"
    )
    for name, (root, queue, told) in ROWS.items():
        options = SimulationOptions(
            config=CONFIG % (root, queue), expected_runtime=told, placeholder_timeout_s=-1
        )
        report = Simulation(workload, options).run()
        waits: dict[str, list[float]] = {"rest": [], "soon": []}
        for fate in report.fates:
            waits[fate.job.queue].append(fate.started / 1e9 / HOUR - fate.job.submit_s / HOUR)
        gangs, others = waits["soon"], waits["rest"]
        mean = sum(others) / len(others)
        preempted = report.data["quality"]["preemptions"]
        print(
            f"{name:28} {sum(gangs) / len(gangs):12.2f} {max(gangs):8.2f} {mean:13.2f} {preempted:10}"
        )


if __name__ == "__main__":
    main()
