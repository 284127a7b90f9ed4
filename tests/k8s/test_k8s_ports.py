"""Host ports (K123)."""

from __future__ import annotations

from typing import Any

import pytest
from small_cluster import SmallCluster

Json = dict[str, Any]


def port(number: int) -> Json:
    return {"containerPort": 1, "hostPort": number}


def containers(*ports: Json, **more: Any) -> list[Json]:
    return [{"name": "main", "ports": list(ports), **more}]


@pytest.fixture
def cluster() -> SmallCluster:
    """One node, and the pod ``p``, which asks for the port 80."""
    found = SmallCluster(n1={})
    found.pod("p", containers=PORT_80)
    return found


PORT_80 = containers(port(80))


def test_k123_the_reason_names_the_port_also_on_the_hosts_network(cluster: SmallCluster) -> None:
    cluster.pod("other", "n1", containers=PORT_80)
    assert cluster.asks("p", "n1") == "NodePorts: host port 80/TCP is in use on the node"
    cluster.pod("other", "n1", hostNetwork=True, containers=containers({"containerPort": 80}))
    assert cluster.allows("p") == ""


def test_k123_sidecars_have_ports_and_other_init_containers_do_not(cluster: SmallCluster) -> None:
    sidecar = containers(port(80), restartPolicy="Always")
    cluster.pod("other", "n1", initContainers=sidecar + containers(port(81)))
    cluster.pod("q", containers=containers(port(81)))
    assert (cluster.allows("p"), cluster.allows("q")) == ("", "n1")


def test_k123_two_containers_of_one_pod_may_name_the_same_port(cluster: SmallCluster) -> None:
    both = [*PORT_80, {"name": "b", "ports": [port(80)]}]
    cluster.pod("two", containers=both)
    assert cluster.allows("two") == "n1"
    cluster.pod("two", "n1", containers=both)
    assert cluster.allows("p") == ""
    cluster.cache.remove_pod("two")
    assert cluster.allows("p") == "n1"


def test_k123_a_port_is_taken_by_assumed_pods_until_the_last_is_gone(cluster: SmallCluster) -> None:
    cluster.pod("a", containers=PORT_80)
    assert cluster.cache.assume("a", "n1") is None
    assert cluster.allows("p") == ""
    for phase, allowed in (("Running", ""), ("Succeeded", "n1")):
        cluster.pod("a", "n1", phase=phase, containers=PORT_80)
        assert cluster.allows("p") == allowed
    for name in ("a", "b"):  # that others have put there, past all filters
        cluster.pod(name, "n1", containers=PORT_80)
    for name, allowed in (("a", ""), ("b", "n1")):
        cluster.cache.remove_pod(name)
        assert cluster.allows("p") == allowed
