"""Host ports (K123)."""

from __future__ import annotations

from typing import Any

import pytest
from small_cluster import SmallCluster


def port(number: int, address: str = "", protocol: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"containerPort": 1, "hostPort": number}
    if address:
        found["hostIP"] = address
    if protocol:
        found["protocol"] = protocol
    return found


def containers(*ports: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "ports": list(ports), **more}]


@pytest.mark.parametrize(
    ("there", "asked", "allowed"),
    [
        ([], [port(80)], True),
        ([port(80)], [], True),
        ([port(80)], [port(80)], False),
        ([port(80)], [port(81)], True),
        ([port(80)], [port(81), port(80)], False),
        ([port(80)], [port(80, protocol="TCP")], False),
        ([port(80)], [port(80, protocol="UDP")], True),
        ([port(80, protocol="UDP")], [port(80, protocol="UDP")], False),
        ([port(80, "10.0.0.1")], [port(80, "10.0.0.1")], False),
        ([port(80, "10.0.0.1")], [port(80, "10.0.0.2")], True),
        ([port(80, "10.0.0.1")], [port(80)], False),
        ([port(80, "10.0.0.1")], [port(80, "0.0.0.0")], False),
        ([port(80, "0.0.0.0")], [port(80, "10.0.0.1")], False),
        ([port(80)], [port(80, "10.0.0.1")], False),
        ([port(80, "10.0.0.1"), port(80, "10.0.0.2")], [port(80, "10.0.0.2")], False),
        ([{"containerPort": 80}], [port(80)], True),
        ([port(80)], [{"containerPort": 80}], True),
        ([port(80)], [{"containerPort": 80, "hostPort": 0}], True),
    ],
)
def test_k123_a_port_can_be_had_once(
    there: list[dict[str, Any]], asked: list[dict[str, Any]], allowed: bool
) -> None:
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("other", "n1", containers=containers(*there))
    cluster.pod("p", containers=containers(*asked))
    assert cluster.allows("p") == ("n1 n2" if allowed else "n2")


@pytest.fixture
def cluster() -> SmallCluster:
    """One node, and the pod ``p``, which asks for the port 80."""
    found = SmallCluster(n1={})
    found.pod("p", containers=PORT_80)
    return found


PORT_80 = containers(port(80))


def test_k123_the_reason_names_the_port(cluster: SmallCluster) -> None:
    cluster.pod("other", "n1", containers=PORT_80)
    assert cluster.asks("p", "n1") == "NodePorts: host port 80/TCP is in use on the node"


def test_k123_sidecars_have_ports_and_other_init_containers_do_not(cluster: SmallCluster) -> None:
    sidecar = containers(port(80), restartPolicy="Always")
    cluster.pod("other", "n1", initContainers=sidecar + containers(port(81)))
    cluster.pod("q", containers=containers(port(81)))
    assert (cluster.allows("p"), cluster.allows("q")) == ("", "n1")


def test_k123_on_the_hosts_network_each_port_is_a_host_port(cluster: SmallCluster) -> None:
    cluster.pod("other", "n1", hostNetwork=True, containers=containers({"containerPort": 80}))
    assert cluster.allows("p") == ""


def test_k123_two_containers_of_one_pod_may_name_the_same_port(cluster: SmallCluster) -> None:
    both = [*PORT_80, {"name": "b", "ports": [port(80)]}]
    cluster.pod("two", containers=both)
    assert cluster.allows("two") == "n1"
    cluster.pod("two", "n1", containers=both)
    assert cluster.allows("p") == ""
    cluster.cache.remove_pod("two")
    assert cluster.allows("p") == "n1"


def test_k123_assumed_pods_count_and_those_that_have_ended_do_not(cluster: SmallCluster) -> None:
    cluster.pod("a", containers=PORT_80)
    assert cluster.cache.assume("a", "n1") is None
    assert cluster.allows("p") == ""
    for phase, allowed in (("Running", ""), ("Succeeded", "n1")):
        cluster.pod("a", "n1", phase=phase, containers=PORT_80)
        assert cluster.allows("p") == allowed


def test_k123_a_port_stays_taken_until_its_last_pod_is_gone(cluster: SmallCluster) -> None:
    for name in ("a", "b"):  # that others have put there, past all filters
        cluster.pod(name, "n1", containers=PORT_80)
    for name, allowed in (("a", ""), ("b", "n1")):
        cluster.cache.remove_pod(name)
        assert cluster.allows("p") == allowed
