"""A resource manager against ``quadriga serve``, each in its own process."""

import queue
import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import grpc
import pytest
from service_process import PATIENCE_S, Service, until

from quadriga import si
from quadriga.si.client import AWAY, Client, Tls
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from tests.si.remote_side import Heard, Told
from tests.si.requests import apps, asks, nodes, register

REQUEST = si.RegisterResourceManagerRequest(rmID="rm-a")
TOKEN = "correct-horse-battery-staple"
QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
"""


def connected(service: Service, **how: Any) -> Client:
    return Client(f"127.0.0.1:{service.ports['grpc']}", timeout_s=PATIENCE_S, **how)


def test_a_shim_runs_a_pod_that_readers_see(start: Callable[..., Service], tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUES, encoding="utf-8")
    service = start("--config", path)

    def metrics() -> str:
        return service.ask("/ws/v1/metrics")[1].decode()

    heard, told = Heard(), Told()
    with connected(service, watcher=told) as shim:
        shim.register_resource_manager(REQUEST, heard)
        shim.update_node(nodes("n1", vcore=1000, rm_id="rm-a"))
        shim.update_application(apps("app-1", rm_id="rm-a"))
        shim.update_allocation(asks("app-1", "pod", vcore=1000, rm_id="rm-a"))
        heard.wait_for_placed(1)
        found = service.get("/ws/v1/partition/default/application/app-1")
        assert found["usedResource"] == {"vcore": 1000}
        assert "quadriga_grpc_streams 4" in metrics()
        assert 'quadriga_grpc_backlog_bytes{rm="rm-a"} 0' in metrics()

        # It registered without queues, so it follows the file.
        path.write_text(QUEUES + "          - name: b\n", encoding="utf-8")
        service.send(signal.SIGHUP)
        service.log_has("the queues are those of the file again")
        children = service.get("/ws/v1/partition/default/queues")["children"]
        assert [child["queuename"] for child in children] == ["root.b", "root.default"]
        path.write_text(QUEUES + "            queues:\n              - name: c\n", "utf-8")
        service.send(signal.SIGHUP)
        refused = "queue root.default has applications and cannot be a parent"
        service.log_has(f"resource manager 'rm-a': {refused}")
        assert 'quadriga_reloads_total{outcome="refused"} 1' in metrics()

        # A clean stop ends its streams.
        service.send(signal.SIGTERM)
        told.wait_for(lambda told: told.states[-1] == AWAY)
        assert service.wait() == 0


def test_a_token_or_a_certificate_says_who_one_is(
    start: Callable[..., Service], pki: Path, tokens: Path
) -> None:
    service = start(
        *("--tls-cert", pki / "server.pem", "--tls-key", pki / "server.key"),
        *("--tls-client-ca", pki / "ca.pem", "--tokens", tokens),
    )
    for name, token, rm_id, allowed in (
        ("new", None, "rm-a", False),
        ("shim-a", None, "rm-b", False),
        ("shim-a", None, "rm-a", True),
        ("new", TOKEN, "rm-a", True),
    ):
        tls = Tls.from_files(pki / "ca.pem", pki / f"{name}.pem", pki / f"{name}.key")
        outcome = nullcontext() if allowed else pytest.raises(PermissionError)
        with connected(service, tls=tls, token=token) as shim, outcome:
            shim.register_resource_manager(register(rm_id), Heard())


def test_a_silent_shim_does_not_keep_it_from_ending(start: Callable[..., Service]) -> None:
    service = start("--demo", "--grace", "1")
    with grpc.insecure_channel(f"127.0.0.1:{service.ports['grpc']}") as channel:
        stub = SchedulerStub(channel)
        stub.RegisterResourceManager(REQUEST, timeout=PATIENCE_S)
        said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        streams = [
            kind(iter(said.get, None), metadata=[("quadriga-rm-id", "rm-a")])
            for kind in (stub.UpdateAllocation, stub.UpdateApplication, stub.UpdateNode)
        ]
        until(lambda: b"quadriga_grpc_streams 3" in service.ask("/ws/v1/metrics")[1])
        service.send(signal.SIGTERM)
        assert service.wait() == 0
        for _ in streams:
            said.put(None)
