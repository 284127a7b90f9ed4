"""The service works under what its systemd unit forbids."""

import errno
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import confinement
import pytest
from service_process import Service

from quadriga import si
from quadriga.si.client import Client
from quadriga.sim.scripted.script import resource
from tests.packaging.deployed import unit

#: for a program of ours that is confined
CONFINEMENT = Path(confinement.__file__)

QUEUES = """
partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: all}]}]}]
"""

#: one system call, and how it went
CALL = """
import ctypes
library = ctypes.CDLL(None, use_errno=True)
answer = library.syscall({number}, 0, 0, 0, 0, 0, 0)
print(answer, ctypes.get_errno())
"""


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if not confinement.is_possible():
        missing = f"there is no {confinement.LIBRARY} (Debian: libseccomp2)"
        if os.environ.get("QUADRIGA_REQUIRE_SECCOMP") == "1":
            pytest.fail(missing)
        pytest.skip(missing)


def confined(wanted: dict[str, Any], program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CONFINEMENT, json.dumps(wanted), sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_forbidden_is_refused() -> None:
    """The filter bites: numpy's OpenBLAS calls mbind, and goes on when it is refused."""
    wanted = confinement.specification(unit()["Service"])
    mbind = confinement._Filter(confinement._ALLOW)._library.seccomp_syscall_resolve_name(b"mbind")
    done = confined(wanted, CALL.format(number=mbind))
    assert done.stdout.split() == ["-1", str(errno.EPERM)], done.stderr
    done = confined({**wanted, "denied": "kill"}, CALL.format(number=mbind))
    assert done.returncode == -signal.SIGSYS
    done = confined(wanted, "import socket; socket.socket(socket.AF_NETLINK)")
    assert "Address family not supported" in done.stderr
    done = confined(wanted, "import mmap; mmap.mmap(-1, 1, prot=7)")
    assert "PermissionError" in done.stderr


#: what the process runs first: it confines itself, and begins once more
AGAIN = """
import json, os, sys
if "SPECIFICATION" in os.environ:
    from confinement import confine
    confine(json.loads(os.environ.pop("SPECIFICATION")))
    os.execv(sys.executable, sys.orig_argv)
"""


def test_the_service_starts_works_and_stops_under_the_filter(tmp_path: Path) -> None:
    """... from the first instruction of the interpreter on, and with OpenBLAS as it is by itself."""
    queues = tmp_path / "queues.yaml"
    queues.write_text(QUEUES, encoding="utf-8")
    journal = tmp_path / "journal.jsonl"
    env = {
        "PYTHONPATH": str(CONFINEMENT.parent),
        "SPECIFICATION": json.dumps(confinement.specification(unit()["Service"])),
        "OPENBLAS_NUM_THREADS": str(os.cpu_count()),
    }
    options = ("--config", queues, "--log-format", "json", "--journal", journal)
    served = Service(tmp_path, *options, prelude=AGAIN, env=env)
    try:
        served.wait_until_ready()
        status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="utf-8")
        assert "Seccomp:\t2\n" in status
        assert served.ask("/readyz")[0] == 200
        assert allocated(f"127.0.0.1:{served.ports['grpc']}").nodeID == "node-1"
        assert served.ask("/ws/v1/validate-conf", method="POST", data=QUEUES.encode())[0] == 200
        served.send(signal.SIGHUP)
        served.log_has("queues.yaml")
        served.send(signal.SIGTERM)
        assert served.wait() == 0
        assert "allocation" in journal.read_text(encoding="utf-8")
    finally:
        served.close()


def allocated(address: str) -> si.Allocation:
    """The allocation that a resource manager gets that asks for one."""
    heard: queue.Queue[si.Allocation] = queue.Queue()

    class Hears(si.NullCallback):
        def update_allocation(self, response: si.AllocationResponse) -> None:
            for each in response.new:
                heard.put(each)

    some = resource({"memory": 10, "vcore": 1000})
    nodes, apps = si.NodeRequest(rmID="rm"), si.ApplicationRequest(rmID="rm")
    nodes.nodes.add(nodeID="node-1", action=si.NodeInfo.CREATE, schedulableResource=some)
    user = si.UserGroupInformation(user="somebody", groups=["some"])
    here = {"applicationID": "a", "partitionName": "default"}
    apps.new.add(**here, queueName="root.all", ugi=user)
    asks = si.AllocationRequest(rmID="rm")
    asks.asks.add(**here, allocationKey="k", resourceAsk=some, maxAllocations=1)
    with Client(address) as client:
        client.register_resource_manager(si.RegisterResourceManagerRequest(rmID="rm"), Hears())
        client.update_node(nodes)
        client.update_application(apps)
        client.update_allocation(asks)
        return heard.get(timeout=300)  # a limit that only a hang reaches


def test_the_sets_are_those_of_systemd() -> None:
    """What is written down allows nothing that systemd's own sets would not."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")

    def members(name: str) -> set[str]:
        done = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
        )
        lines = [line.partition("#")[0].strip() for line in done.stdout.splitlines()[1:]]
        nested = [members(line) if line.startswith("@") else {line} for line in lines if line]
        return set[str]().union(*nested)

    for name, written in confinement.sets().items():
        here = members(name)
        # others of its versions know more calls, or new ones; none takes any out of these sets
        assert written <= here, name
        assert len(written) > 0.9 * len(here), name
