"""The measurements of the Kubernetes shim: what needs no API server."""

from __future__ import annotations

import msgspec
import pytest

from bench import kubernetes
from bench._kubernetes.deciding import Deciding
from bench._kubernetes.plane import OURS, Pods, node_object, pod_object
from bench._kubernetes.shapes import APART
from bench._kubernetes.stored import Template, application, node_name, pod_name, uid
from quadriga.k8s.conversion.identity import application_id, is_ours
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Node, Pod

UID = "12345678-9abc-4def-8123-456789abcdef"
STORED = Template(b"/registry/pods/bench/pod-tttttt", b"\x0a\x0apod-tttttt\x2a\x24" + UID.encode())


def test_a_copy_has_other_texts_of_the_same_lengths() -> None:
    assert STORED.uid == UID
    key, value = STORED.copy([("pod-tttttt", pod_name(7)), (UID, uid(7))])
    assert key == b"/registry/pods/bench/pod-000007"
    assert value == b"\x0a\x0apod-000007\x2a\x24" + uid(7).encode()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pod-tttttt", "pod-7", "is not as long"),
        ("node-ttttt", node_name(7), "there is no 'node-ttttt'"),
    ],
)
def test_a_copy_that_would_not_be_valid_is_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        STORED.copy([(old, new)])


def test_an_object_without_a_uid_is_refused() -> None:
    with pytest.raises(ValueError, match="/registry/pods/x has no UID"):
        assert Template(b"/registry/pods/x", b"pod").uid


def test_pods_are_ours_and_of_their_applications() -> None:
    pods = Pods(10, 3, on_nodes=4)
    pod = msgspec.convert(pod_object(pods, 5), Pod)
    settings = Settings()
    assert (pod.metadata.name, pod.uid, pod.spec.node_name) == (pod_name(5), uid(5), node_name(1))
    assert pod.spec.scheduler_name == OURS
    assert is_ours(pod, settings)
    assert application_id(pod, settings) == application(2)
    assert msgspec.convert(node_object(3), Node).status.allocatable["cpu"] == "64"


def test_all_pods_are_placed_and_each_predicate_is_counted() -> None:
    deciding = Deciding(20)
    try:
        assert deciding.place(Pods(600, 5)) == 600
        assert deciding.asked == 600
        assert set(deciding.spent) == {"decode", "shim", "core"}
        assert min(deciding.spent.values()) > 0
    finally:
        deciding.close()


def test_no_two_of_the_pods_that_keep_apart_share_a_node() -> None:
    deciding = Deciding(20)
    try:
        assert deciding.place(Pods(30, spec=APART)) == 20
    finally:
        deciding.close()


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kubernetes.main(["throughput"])
    assert "no part is named 'throughput'" in capsys.readouterr().err


def test_sizes_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    kubernetes.main(["deciding", "--nodes", "10", "--pods", "40"])
    told = capsys.readouterr().out
    assert "no two on a node: predicates of a placement" in told
    assert "spread over 10 zones: pods a second" in told
