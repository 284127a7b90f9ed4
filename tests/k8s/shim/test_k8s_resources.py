"""What a pod needs and a node offers (K82 to K85, K94)."""

from typing import Any

from quadriga.k8s.conversion.quantities import INT64_MAX
from quadriga.k8s.conversion.resources import of_pod, problem_of
from tests.k8s.decoded import container, pod

MI = 1 << 20


def needs(**spec: Any) -> dict[str, int]:
    status = spec.pop("status", None)
    return of_pod(pod(spec=spec, status=status))


def test_k82_cpu_is_vcore_in_thousandths_and_all_others_are_rounded_up() -> None:
    requests = {
        "cpu": "1500u",
        "memory": "1.5Ki",
        "nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "ephemeral-storage": "1500m",
    }
    assert needs(containers=[container(**requests)]) == {
        "vcore": 2,
        "memory": 1536,
        "nvidia.com/gpu": 2,
        "hugepages-2Mi": 4 * MI,
        "ephemeral-storage": 2,
        "pods": 1,
    }


def test_k82_k83_containers_are_added_without_limits_and_number_of_pods() -> None:
    both = [container("a", cpu="1", memory="1Mi"), container("b", cpu="250m")]
    assert needs(containers=both) == {"vcore": 1250, "memory": MI, "pods": 1}
    limited = {"name": "main", "resources": {"limits": {"cpu": "4"}, "requests": {"pods": "7"}}}
    for containers in ([limited], [{"name": "main", "resources": {}}], []):
        assert needs(containers=containers) == {"pods": 1}
    assert needs() == {"pods": 1}


def test_k83_a_resource_that_only_an_init_container_asks_for_counts_within_int64() -> None:
    found = needs(
        containers=[container(cpu="1")],
        initContainers=[container("fetch", **{"example.com/nic": "1"})],
    )
    assert found == {"vcore": 1000, "example.com/nic": 1, "pods": 1}
    huge = [container("a", memory="9E"), container("b", memory="9E")]
    assert needs(containers=huge)["memory"] == INT64_MAX
    assert needs(containers=huge[:1], overhead={"memory": "9E"})["memory"] == INT64_MAX


def test_k84_the_pods_own_requests_replace_the_sum_and_the_overhead_is_added() -> None:
    nic = "example.com/nic"
    own = {"cpu": "2", "memory": "3Mi", "hugepages-1Gi": "1Gi", nic: "9"}
    found = needs(
        containers=[container(cpu="4", memory="1Mi", **{nic: "1"})],
        resources={"requests": own},
        overhead={"cpu": "250m", "memory": "1Mi", "example.com/vm": "1"},
    )
    of_kubernetes = {"vcore": 2250, "memory": 4 * MI, "hugepages-1Gi": 1 << 30, "pods": 1}
    assert found == {**of_kubernetes, nic: 1, "example.com/vm": 1}


def resized(wanted: str, allocated: str | None, actual: str | None, **status: Any) -> int:
    of_container: dict[str, Any] = {"name": "main"}
    if allocated is not None:
        of_container["allocatedResources"] = {"cpu": allocated}
    if actual is not None:
        of_container["resources"] = {"requests": {"cpu": actual}}
    found = needs(
        containers=[container(cpu=wanted)], status={"containerStatuses": [of_container], **status}
    )
    return found["vcore"]


PENDING = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


INFEASIBLE = ({"resize": "Infeasible"}, {"conditions": [PENDING]})
FEASIBLE = (
    {"resize": "Deferred"},
    {"conditions": [{**PENDING, "reason": "Deferred"}]},
    {"conditions": [{**PENDING, "status": "False"}]},
    {"conditions": [{**PENDING, "type": "PodScheduled"}]},
)


def test_k85_a_resize_counts_the_most_of_what_is_wanted_and_in_force() -> None:
    assert resized("1", None, None) == 1000
    assert resized("2", "1", "1") == 2000, "grows: the room is needed"
    assert resized("1", "2", "1") == 2000
    assert resized("1", "1", "3") == 3000, "shrinks: the room is still in use"
    for infeasible in INFEASIBLE:  # what the node can never give is not counted
        assert resized("8", "1", "1", **infeasible) == 1000
        assert resized("8", "2", None, **infeasible) == 2000
        assert resized("8", None, None, **infeasible) == 8000, "nothing is in force"
    for feasible in FEASIBLE:
        assert resized("8", "1", "1", **feasible) == 8000, feasible


def test_k85_each_container_and_sidecar_has_its_own_status() -> None:
    found = needs(
        containers=[container("a", cpu="1"), container("b", cpu="1")],
        initContainers=[container("side", "Always", cpu="1"), container("first", cpu="1")],
        status={
            "containerStatuses": [
                {"name": "b", "allocatedResources": {"cpu": "3"}},
                {"name": "gone", "allocatedResources": {"cpu": "50"}},
            ],
            "initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "2"}}}],
        },
    )
    assert found["vcore"] == 1000 + 3000 + 2000


def test_a_request_that_cannot_be_read_is_left_out_and_named() -> None:
    wrong = pod(spec={"containers": [container(cpu="much", memory="1Mi")]})
    assert of_pod(wrong) == {"memory": MI, "pods": 1}
    problem = problem_of(wrong)
    assert problem.reason == "FailedScheduling"
    assert "container main for cpu" in problem.note
    assert "'much' is not a quantity" in problem.note
    for spec, where in (
        ({"initContainers": [container("fetch", cpu="x")]}, "container fetch"),
        ({"resources": {"requests": {"cpu": "x"}}}, "the pod"),
        ({"overhead": {"cpu": "x"}}, "the pod's overhead"),
    ):
        assert f"of {where} for cpu" in problem_of(pod(spec=spec)).note
    good = pod(spec={"containers": [container(cpu="1")], "overhead": {"cpu": 1}})
    assert problem_of(good) is None
