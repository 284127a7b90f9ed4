"""The first gang, and the manifests of docs/frameworks.md: each starts whole, with the pods that its Jobs make."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from k8s_world import World, cluster

from quadriga.k8s import objects
from quadriga.k8s.shim import inputs
from tests.k8s.decoded import decoded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "frameworks.md"
EXAMPLES = PAGE.parents[1] / "examples" / "kubernetes"
SPARK = re.findall(
    r"^<!-- run: spark -->\n```yaml\n(.*?)^```$",
    PAGE.read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)
MANIFESTS = {"spark": SPARK[0]} | {
    name: (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8") for name in ("ray", "dask", "mpi")
}


def apply(world: World, jobs: list[dict[str, Any]]) -> list[str]:
    """As the Job controller does: the pods of each Job, one after the other. Returns their names."""
    names = []
    for job in jobs:
        template = job["spec"]["template"]
        for number in range(job["spec"].get("completions", 1)):
            name = f"{job['metadata']['name']}-{number}"
            metadata = {**template["metadata"], "name": name, "uid": name, "namespace": "default"}
            metadata |= {"resourceVersion": "1", "creationTimestamp": world.stamp()}
            whole = {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
            world.pods[name] = pod = decoded(objects.Pod, whole)
            world.inputs.append(inputs.Changed("ADDED", pod))
            names.append(name)
            world.run(1)
    return names


FIRST = EXAMPLES / "first-gang.yaml"


@pytest.mark.parametrize("name", [*MANIFESTS, "first gang"])
def test_a_gang_of_a_framework_starts_whole(name: str) -> None:
    if name in MANIFESTS:
        jobs, world = yaml.safe_load(MANIFESTS[name])["items"], cluster("2", nodes=2)
    else:
        jobs = [yaml.safe_load(FIRST.read_text(encoding="utf-8"))]
        world = cluster("100m", nodes=2)
    members = apply(world, jobs)
    world.run(60)
    assert {world.pods[each].spec.node_name for each in members} == {""}
    for number in range(8):
        world.add_node(f"more-{number}", cpu="2")
    world.run(60)
    assert world.phases() == {"Running": len(members)}
    assert all(world.pods[each].spec.node_name for each in members)
    assert world.placeholders == []
    assert [each for each in world.records if each.type == "Warning"] == []
    world.check()
