"""The measurements of the Kubernetes shim: what needs no API server."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bench import kubernetes
from bench._kubernetes import soak as command
from bench._kubernetes.deciding import Deciding
from bench._kubernetes.plane import OURS, Pods, node_object, pod_object
from bench._kubernetes.shapes import APART
from bench._kubernetes.soak_simulated import Soak
from bench._kubernetes.soaked import Sample, Soaked
from bench._kubernetes.stored import Template, application, node_name, pod_name, uid
from quadriga.k8s.conversion.identity import application_id, is_ours
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Node, Pod

REPOSITORY = Path(__file__).parents[2]
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


def test_sizes_are_given_and_unknown_parts_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kubernetes.main(["throughput"])
    assert "no part is named 'throughput'" in capsys.readouterr().err
    kubernetes.main(["deciding", "--nodes", "10", "--pods", "40"])
    told = capsys.readouterr().out
    assert "no two on a node: predicates of a placement" in told
    assert "spread over 10 zones: pods a second" in told


# -- T25, for an hour of simulated time with more faults ---------------------------------------------


#: what may be left when all has ended, and is bounded: records of ended applications and of their users, and memory
#: for equal ones
BOUNDED = {
    "cache.tentative", "core.ended", "core.former_users", "core.serials", "core.shapes", "signatures.signatures",
    "signatures.unused", "waiting.rest_on",
}  # fmt: skip


def test_t25_random_work_with_faults_leaves_nothing_behind() -> None:
    run = Soak(1, faults=0.05)
    try:
        before = run.left()
        for _ in range(60):
            run.minute()
        assert run.sample().audits == 60
        run.rest()
        after = run.left()
        assert run.sample().standing == 0
    finally:
        run.close()
    assert run.made["pods of jobs"] > 100
    assert run.made["pods of gangs"] > 100
    assert sum(run.faults.values()) > 20
    # K106: only what the API server itself has denied had to be found again.
    assert sum(run.world.shim.audit.stood.values()) <= run.faults["bind: 404 though it is there"]
    grown = {name for name, size in after.items() if size > before.get(name, 0)}
    assert grown <= BOUNDED, {name: after[name] for name in grown}
    assert after["pods"] == 0


def test_t25_what_a_soak_prints(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [Sample(float(n), n << 20, n, n, 0, {"watched": n}) for n in (1, 2, 3)]
    faults = {"bind: 404 though it is there": 3, "cut": 5}
    command.report(Soaked(samples, {"jobs": 4}, faults, {}, ["audit: watched"]))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "done: 4 jobs"
    assert printed[4].startswith("middle: minute      2: 2 MiB, 2 pods, 2 audits, 0 differences")
    assert printed[-1] == "audit: watched"
    with pytest.raises(SystemExit, match="have stood"):
        command.report(Soaked(samples, {}, {"cut": 5}, {}, []))


def test_the_soak_runs_as_a_command() -> None:
    """In a process of its own: within pytest more can be imported."""
    words = [sys.executable, "-m", "bench", "soak", "--hours", "0.02"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    assert "0 differences stand" in done.stdout
