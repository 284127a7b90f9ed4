"""The raw binding loop, in a process of its own: a line of JSON (`Task`) in, a line of JSON out.

It knows the pods and the nodes beforehand, so it only sends requests and reads their replies, over the
leanest connections that there are here. No scheduler can bind faster on the same machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from bench._kubernetes.stored import node_name, pod_name, uid
from quadriga.k8s.shim.actions import PodRef
from quadriga.k8s.transport.connections import Connections
from quadriga.k8s.transport.login import log_in
from quadriga.k8s.writers.writes import binding_payload, pod_path


@dataclass(frozen=True, slots=True)
class Task:
    kubeconfig: str
    namespace: str
    pods: int
    nodes: int
    inflight: int = 32


async def work(task: Task) -> dict[str, float]:
    """Bind all pods, evenly over the nodes. Returns seconds, processor time and what was refused."""
    login = log_in(task.kubeconfig, clock=time.monotonic_ns, wall=time.time_ns)
    connections = Connections(login.server, login.ssl)
    head = (
        f" HTTP/1.1\r\nHost: {connections.host_header}\r\nAccept: application/json\r\n"
        f"Authorization: {await login.credentials.header()}\r\nContent-Type: application/json\r\n"
    )
    refused = 0
    numbers = iter(range(task.pods))

    async def worker(numbers: Iterator[int]) -> None:
        nonlocal refused
        for number in numbers:
            pod = PodRef(task.namespace, pod_name(number), uid(number))
            body = binding_payload(pod, node_name(number % task.nodes))
            path = f"{connections.prefix}{pod_path(pod)}/binding"
            request = f"POST {path}{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            reply = await connections.exchange("POST", request, 30.0)
            refused += reply.status != 201

    print("ready", flush=True)
    sys.stdin.readline()
    began, busy = time.monotonic(), time.process_time()
    await asyncio.gather(*(worker(numbers) for _ in range(task.inflight)))
    found = {
        "seconds": time.monotonic() - began,
        "busy": time.process_time() - busy,
        "refused": refused,
    }
    connections.close()
    return found


def main() -> None:
    task = msgspec.convert(json.loads(sys.stdin.readline()), Task)
    print(json.dumps(asyncio.run(work(task))), flush=True)


if __name__ == "__main__":
    main()
