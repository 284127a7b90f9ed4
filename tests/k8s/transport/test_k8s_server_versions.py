"""K211: what the programs of a control plane want is chosen by their version. No server is needed here."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import server_version as by
from judging_scheduler import refusals

VERSIONS = [(1, minor) for minor in range(20, 38)]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.20.2\n", (1, 20)),
        ("Kubernetes v1.36.2", (1, 36)),
        ("Kubernetes v1.37.0-rc.1+0123abc", (1, 37)),
        ("Kubernetes v1.29.15-gke.1", (1, 29)),
        ("v2.0.1", (2, 0)),
    ],
)
def test_k211_the_version_is_read_from_its_text(text: str, version: by.Version) -> None:
    assert by.parse(text) == version


@pytest.mark.parametrize("text", ["", "Kubernetes", "unknown flag: --version"])
def test_k211_what_names_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version"):
        by.parse(text)


def test_k211_the_api_servers_program_is_asked(tmp_path: Path) -> None:
    program = tmp_path / "kube-apiserver"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Kubernetes v1.34.1"\n')
    program.chmod(0o755)
    assert by.version_of(tmp_path) == (1, 34)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "kube-apiserver"
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        by.version_of(other.parent)


@pytest.mark.parametrize(
    ("choose", "changes"),
    [
        # Each value holds from this minor version on.
        (by.insecure_port, {20: ["--port=0"], 23: []}),
        (
            lambda version: by.scheduler_configuration(version, 1)["apiVersion"].partition("/")[2],
            {20: "v1beta1", 23: "v1beta3", 25: "v1"},
        ),
        (lambda v: "healthzBindAddress" in by.scheduler_configuration(v, 1), {20: True, 23: False}),
        (by.node_controllers, {20: "nodelifecycle", 29: "nodelifecycle,taint-eviction-controller"}),
        (by.cron_jobs, {20: "batch/v1beta1", 21: "batch/v1"}),
        (by.labels_namespaces, {20: False, 21: True}),
        (by.spreads_over_all_nodes, {20: True, 24: False}),
        (by.filters_in_order, {20: True, 24: False}),
    ],
)
def test_k211_each_choice_changes_with_the_version_that_changed_it(
    choose: Callable[[by.Version], object], changes: dict[int, object]
) -> None:
    for major, minor in VERSIONS:
        since = max(each for each in changes if each <= minor)
        assert choose((major, minor)) == changes[since], minor


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            "0/3 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate,"
            " 2 node(s) didn't match pod affinity/anti-affinity rules,"
            " 2 node(s) didn't match pod affinity rules.",
            {"TaintToleration": 1, "InterPodAffinity": 2},
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint(s),"
            " 2 node(s) didn't match pod anti-affinity rules,"
            " 1 node(s) didn't satisfy existing pods anti-affinity rules.",
            {"TaintToleration": 1, "InterPodAffinity": 3},
        ),
        (
            "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity],"
            " 1 node(s) didn't match Pod's node affinity/selector.",
            {"NodeAffinity": 2},
        ),
    ],
)
def test_k211_messages_of_every_version_are_read(message: str, found: dict[str, int]) -> None:
    assert refusals(message) == found
