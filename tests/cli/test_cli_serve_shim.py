"""A resource manager against ``quadriga serve``, each in its own process, with nothing but stubs."""

from __future__ import annotations

import queue
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from service_process import PATIENCE_S, Service, until

from quadriga import si
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from tests.si.requests import apps, asks, nodes

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


class Shim:
    """Registers, and has a stream of each kind."""

    def __init__(self, channel: Any, rm_id: str = "rm-a", **register: Any) -> None:
        self.rm_id = rm_id
        self.stub = SchedulerStub(channel)
        self.stub.RegisterResourceManager(
            si.RegisterResourceManagerRequest(rmID=rm_id), timeout=PATIENCE_S, **register
        )
        self._said: dict[str, queue.SimpleQueue[Any]] = {}
        self._heard: dict[str, Any] = {}
        for kind in ("Allocation", "Application", "Node"):
            said: queue.SimpleQueue[Any] = queue.SimpleQueue()
            self._said[kind] = said
            self._heard[kind] = getattr(self.stub, f"Update{kind}")(
                iter(said.get, None), **register
            )

    def say(self, message: Any) -> None:
        self._said[type(message).__name__.removesuffix("Request")].put(message)

    def hear(self, kind: str) -> Any:
        return next(self._heard[kind])

    def leave(self) -> None:
        for said in self._said.values():
            said.put(None)


@pytest.fixture
def connect() -> Iterator[Callable[..., Any]]:
    """A channel to the service."""
    channels: list[Any] = []

    def connected(service: Service, credentials: Any = None) -> Any:
        target = f"127.0.0.1:{service.ports['grpc']}"
        if credentials is None:
            channels.append(grpc.insecure_channel(target))
        else:
            channels.append(grpc.secure_channel(target, credentials))
        return channels[-1]

    yield connected
    for channel in channels:
        channel.close()


def credentials(pki: Path, name: str) -> Any:
    return grpc.ssl_channel_credentials(
        (pki / "ca.pem").read_bytes(),
        (pki / f"{name}.key").read_bytes(),
        (pki / f"{name}.pem").read_bytes(),
    )


def test_a_shim_runs_a_pod_and_readers_see_it(
    start: Callable[..., Service], connect: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUES, encoding="utf-8")
    service = start("--config", path)
    shim = Shim(connect(service))
    shim.say(nodes("n1", vcore=1000, rm_id="rm-a"))
    assert [node.nodeID for node in shim.hear("Node").accepted] == ["n1"]
    shim.say(apps("app-1", rm_id="rm-a"))
    assert shim.hear("Application").accepted[0].applicationID == "app-1"
    shim.say(asks("app-1", "pod", vcore=1000, rm_id="rm-a"))
    assert shim.hear("Allocation").new[0].nodeID == "n1"
    found = service.get("/ws/v1/partition/default/application/app-1")
    assert found["usedResource"] == {"vcore": 1000}
    metrics = service.ask("/ws/v1/metrics")[1].decode()
    assert "quadriga_grpc_streams 3" in metrics
    assert 'quadriga_grpc_backlog_bytes{rm="rm-a"} 0' in metrics

    # It registered without queues, so it follows the file.
    path.write_text(QUEUES + "          - name: b\n", encoding="utf-8")
    service.send(signal.SIGHUP)
    service.log_has("the queues are those of the file again")
    children = service.get("/ws/v1/partition/default/queues")["children"]
    assert [child["queuename"] for child in children] == ["root.b", "root.default"]
    path.write_text(QUEUES + "            queues:\n              - name: c\n", encoding="utf-8")
    service.send(signal.SIGHUP)
    refused = "queue root.default has applications and cannot be a parent"
    service.log_has(f"resource manager 'rm-a': {refused}")
    metrics = service.ask("/ws/v1/metrics")[1].decode()
    assert 'quadriga_reloads_total{outcome="refused"} 1' in metrics

    # A clean stop ends its streams with a status that says so.
    service.send(signal.SIGTERM)
    with pytest.raises(grpc.RpcError) as ended:
        shim.hear("Allocation")
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "the scheduler stops" in ended.value.details()
    assert service.wait() == 0
    shim.leave()


def test_a_token_or_a_certificate_says_who_one_is(
    start: Callable[..., Service], connect: Callable[..., Any], pki: Path, tokens: Path
) -> None:
    service = start(
        *("--tls-cert", pki / "server.pem", "--tls-key", pki / "server.key"),
        *("--tls-client-ca", pki / "ca.pem", "--tokens", tokens),
    )
    nobody = connect(service, credentials(pki, "new"))
    known = connect(service, credentials(pki, "shim-a"))
    for channel, rm_id, code in (
        (nobody, "rm-a", grpc.StatusCode.UNAUTHENTICATED),
        (known, "rm-b", grpc.StatusCode.PERMISSION_DENIED),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            Shim(channel, rm_id)
        assert refused.value.code() is code
    Shim(known).leave()
    Shim(nobody, metadata=(("authorization", f"Bearer {TOKEN}"),)).leave()


def test_a_simulation_through_it_tells_the_same_as_in_process(
    start: Callable[..., Service], quadriga: Callable[..., Any], tmp_path: Path
) -> None:
    journal = tmp_path / "there.jsonl"
    service = start("--clock", "client", "--journal", journal)
    assert set(service.ports) == {"grpc"}
    simulate = ["simulate", "--days", 1, "--limit", 60, "--quiet", "--json"]
    connection = ["--connect", f"127.0.0.1:{service.ports['grpc']}"]
    assert quadriga(*simulate, tmp_path / "here.json").code == 0
    assert quadriga(*simulate, tmp_path / "there.json", *connection).code == 0
    there = (tmp_path / "there.json").read_bytes()
    assert there == (tmp_path / "here.json").read_bytes()
    service.send(signal.SIGTERM)
    assert service.wait() == 0
    assert "Completed" in quadriga("story", "application/job-000006", "--journal", journal).out


def test_a_silent_shim_does_not_keep_it_from_ending(
    start: Callable[..., Service], connect: Callable[..., Any]
) -> None:
    service = start("--demo", "--grace", "1")
    with closing(connect(service)) as channel:
        shim = Shim(channel)
        until(lambda: b"quadriga_grpc_streams 3" in service.ask("/ws/v1/metrics")[1])
        service.send(signal.SIGTERM)
        assert service.wait() == 0
        shim.leave()
