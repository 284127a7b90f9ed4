"""The reader of the openb folder, whose pods take shares of GPUs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload import GPU, Skipped, Workload, WorkloadError, open_workload, parse_nodes

Folder = Callable[..., Path]

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,4096,2,P100\nn2,8000,4096,0,\n".replace(
    ",0,\n", ",0,none\n"
)
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"


def read(folder: Folder, *pods: str) -> Workload:
    return open_workload(folder(nodes=NODES, pods=HEAD + "".join(f"{pod}\n" for pod in pods)))


def test_q14_a_share_is_in_milli_of_a_gpu_and_two_of_one_unit_run_together(folder: Folder) -> None:
    pods = [f"p{at},1000,10,1,{milli},0,100,0" for at, milli in enumerate((600, 600, 400, 500))]
    workload = read(folder, *pods, "w,1000,10,2,1000,0,100,0", "c,1000,10,0,0,5,9,")
    assert workload.shared == (GPU,) and workload.skipped == (
        Skipped("c", "it was never scheduled"),
    )
    assert [job.total().get(GPU) for job in workload.jobs] == [600, 600, 400, 500, 2000]
    assert [node.resources.get(GPU) for node in workload.nodes] == [2000, None]
    report = Simulation(workload, SimulationOptions(check=True)).run()
    waits = report.data["waits"]["simulated"]
    assert report.data["jobs"]["completed"] == 5 and waits["max"] >= 200
    other = open_workload(folder(), nodes=parse_nodes(["1x64vcore,8Gi,4gpu"]))
    assert other.nodes[0].resources[GPU] == 4000


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ("p,1,1,1,1001,0,9,0", "its share of a GPU is 1001, not within 1 and 1000"),
        ("p,1,1,1,0,0,9,0", "its share of a GPU is 0"),
        ("p,1,1,-1,0,0,9,0", "num_gpu is -1, less than 0"),
    ],
)
def test_a_pod_that_is_no_pod_is_named_by_its_line(folder: Folder, pod: str, reason: str) -> None:
    with pytest.raises(WorkloadError, match=reason):
        read(folder, pod)


def test_the_log_itself(shared: Path) -> None:
    workload = open_workload(shared / "data" / "traces" / "openb-2023")
    assert (len(workload.nodes), workload.capacity()[GPU]) == (1213, 6_212_000)
    assert len(workload.jobs) + len(workload.skipped) == 8152
