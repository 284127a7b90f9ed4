"""A resource manager (RM) in one program and the scheduler in another, with a client that reconnects.

The client has the API of the scheduler over gRPC. It keeps the RM's messages while the connection is
away. It reports when the scheduler has forgotten the RM, which then registers and sends its whole
state again. Run it: python examples/remote_rm.py [HOST:PORT]
(without an address the example starts a scheduler of its own)
"""

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quadriga import si
from quadriga.si.client import FORGOTTEN, Client, Watcher

RM_ID = "example"


@contextlib.contextmanager
def scheduler() -> Iterator[str]:
    """Run ``quadriga serve`` while the block runs; yields its address."""
    with tempfile.TemporaryDirectory() as folder:
        ports = Path(folder, "ports.json")
        command = [sys.executable, "-m", "quadriga.cli", "serve", "--grpc", "0", "--http", "off"]
        with subprocess.Popen(
            [*command, "--ports-file", str(ports), "--log-level", "warning"]
        ) as process:
            while not ports.exists() and process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
            try:
                yield f"127.0.0.1:{json.loads(ports.read_text())['grpc']}"
            finally:
                process.terminate()


class Manager(si.NullCallback, Watcher):
    """Puts the messages of the scheduler into one queue for the main thread.

    The client asks the scheduler only for the callbacks that are overridden here: this RM does not
    override the predicates, so it is never asked for them.
    """

    def __init__(self) -> None:
        self.news: queue.Queue[si.AllocationResponse | str] = queue.Queue()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.news.put(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for app in response.updated:
            print(f"{app.applicationID} is {app.state}")

    def changed(self, state: str, why: str) -> None:
        """The connection is Connected, Away or Forgotten now."""
        if state == FORGOTTEN:
            self.news.put(state)


def resource(cores: int) -> si.Resource:
    """A resource of the protocol: vcore is in milli."""
    return si.Resource(resources={"vcore": si.Quantity(value=cores * 1000)})


def begin(client: Client, manager: Manager) -> None:
    """Register and send the whole state; also called after the scheduler has forgotten this RM."""
    client.register_resource_manager(si.RegisterResourceManagerRequest(rmID=RM_ID), manager)
    node = si.NodeInfo(nodeID="n1", action=si.NodeInfo.CREATE, schedulableResource=resource(4))
    client.update_node(si.NodeRequest(rmID=RM_ID, nodes=[node]))
    app = si.AddApplicationRequest(
        applicationID="job-1",
        queueName="root.default",
        ugi=si.UserGroupInformation(user="ann", groups=["staff"]),
        tags={"namespace": "default"},
    )
    client.update_application(si.ApplicationRequest(rmID=RM_ID, new=[app]))
    asks = [
        si.AllocationAsk(
            allocationKey=f"pod-{n}",
            applicationID="job-1",
            resourceAsk=resource(1),
            maxAllocations=1,
        )
        for n in range(3)
    ]
    client.update_allocation(si.AllocationRequest(rmID=RM_ID, asks=asks))


def main(address: str) -> None:
    manager = Manager()
    with Client(address, watcher=manager) as client:
        begin(client, manager)
        running: set[str] = set()
        while len(running) < 3:
            news = manager.news.get(timeout=30)
            if isinstance(news, str):  # Forgotten: begin again
                begin(client, manager)
                continue
            for allocation in news.new:
                running.add(allocation.allocationKey)
                print(f"{allocation.allocationKey} goes to {allocation.nodeID}")
            for refused in news.rejected:
                raise SystemExit(f"{refused.allocationKey}: {refused.reason}")
        print(f"queue: {client.explain('job-1').queue}")
        client.shutdown()  # ends the registration; close() would only interrupt it


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with scheduler() as at:
            main(at)
