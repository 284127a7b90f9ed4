"""What the programs of a control plane want, by their version, which is asked of the API server's program (K211).

Everything that differs between 1.20, which ``.ci/cluster`` builds, and later ones is decided here.
"""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

Version = tuple[int, int]


@cache
def version_of(folder: Path) -> Version:
    """Of the programs in this folder."""
    done = subprocess.run(
        [folder / "kube-apiserver", "--version"], check=True, capture_output=True, text=True
    )
    return parse(done.stdout)


def parse(text: str) -> Version:
    """``Kubernetes v1.36.2`` is (1, 36). Raises ValueError."""
    found = re.search(r"\bv?(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"this names no version of Kubernetes: {text!r}")
    return int(found[1]), int(found[2])


def insecure_port(version: Version) -> list[str]:
    """Flags that close the port without TLS of kube-scheduler and kube-controller-manager. 1.23 has no such
    port, and 1.24 refuses the flag."""
    return ["--port=0"] if version < (1, 23) else []


def scheduler_configuration(version: Version, port: int) -> dict[str, Any]:
    """The beginning of a configuration of kube-scheduler. ``port``: without TLS, for those that need one."""
    if version < (1, 23):
        # 1.23 has neither this version nor these fields.
        address = f"127.0.0.1:{port}"
        return _configuration("v1beta1", healthzBindAddress=address, metricsBindAddress=address)
    return _configuration("v1" if version >= (1, 25) else "v1beta3")


def _configuration(version: str, **more: str) -> dict[str, Any]:
    group = "kubescheduler.config.k8s.io"
    return {"apiVersion": f"{group}/{version}", "kind": "KubeSchedulerConfiguration", **more}


def node_controllers(version: Version) -> str:
    """The controllers that mark lost nodes and evict their pods: one until 1.28."""
    return "nodelifecycle" if version < (1, 29) else "nodelifecycle,taint-eviction-controller"


def cron_jobs(version: Version) -> str:
    """The API of CronJobs: batch/v1 since 1.21, where the beta ended with 1.24."""
    return "batch/v1" if version >= (1, 21) else "batch/v1beta1"


def labels_namespaces(version: Version) -> bool:
    """Whether a namespace has a label with its name."""
    return version >= (1, 21)


def spreads_over_all_nodes(version: Version) -> bool:
    """Whether kube-scheduler's topology spread counts the pods of nodes that the pod cannot use."""
    return version < (1, 24)


def filters_in_order(version: Version) -> bool:
    """Whether a node that several filters refuse is refused by the first of their order. Later, what a pod
    asks of its node's name comes first."""
    return version < (1, 24)
