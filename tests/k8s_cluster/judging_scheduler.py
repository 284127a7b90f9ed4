"""kube-scheduler as a judge: for each pod, the nodes that pass all of its filters.

It runs with an extender, which it asks about the nodes that its own filters have left. The extender notes
them and allows none, so no judged pod is ever placed, and one judgement changes nothing for the next. Where
no node is left, the extender is not asked, and the pod's condition tells how many nodes each filter
refused.
"""

import http.server
import json
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from control_plane import ControlPlane, Process, free_ports, programs
from plain_client import History, Object
from server_version import scheduler_configuration

NAME = "judge"

#: the scheduler's texts about a node → the filter
TEXTS = {
    "were unschedulable": "NodeUnschedulable",
    "didn't match the requested hostname": "NodeName",
    "had taint": "TaintToleration",
    "had untolerated taint": "TaintToleration",
    "didn't match node selector": "NodeAffinity",
    "didn't match Pod's node affinity": "NodeAffinity",
    "didn't have free ports": "NodePorts",
    "didn't match pod topology spread": "PodTopologySpread",
    "didn't satisfy plugin(s) [NodeAffinity]": "NodeAffinity",
    "didn't match pod affinity/anti-affinity": "InterPodAffinity",
    "didn't match pod affinity rules": "InterPodAffinity",
    "didn't match pod anti-affinity rules": "InterPodAffinity",
    "didn't satisfy existing pods anti-affinity rules": "InterPodAffinity",
}
#: 1.20 has two texts about one node, the second of which is more exact; later ones have that alone
BOTH = "didn't match pod affinity/anti-affinity"
MORE = ("pod affinity rules", "pod anti-affinity rules", "existing pods anti-affinity rules")


class Judge:
    """``passing`` asks about one pod that has been created for it."""

    def __init__(self, plane: ControlPlane, folder: Path, pods: History) -> None:
        self._pods = pods
        self._answers: dict[str, set[str]] = {}
        self._answered = threading.Condition()
        judge = self

        class Extender(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge._note(body["Pod"]["metadata"]["uid"], set(body["NodeNames"]))
                answer = json.dumps({"NodeNames": [], "FailedNodes": {}, "Error": ""}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Extender)
        self._thread = threading.Thread(target=self._server.serve_forever, name="extender")
        self._thread.start()
        configuration = {
            **scheduler_configuration(plane.version, *free_ports(1)),
            "clientConnection": {
                "kubeconfig": str(plane.kubeconfig("admin")),
                "qps": 1000,
                "burst": 2000,
            },
            "leaderElection": {"leaderElect": False},
            "profiles": [
                {"schedulerName": NAME, "plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}
            ],
            "extenders": [
                {
                    "urlPrefix": f"http://127.0.0.1:{self._server.server_port}",
                    "filterVerb": "filter",
                    "nodeCacheCapable": True,
                }
            ],
        }
        path = folder / "scheduler.json"
        path.write_text(json.dumps(configuration))
        self._process = Process(
            "judge",
            [programs() / "kube-scheduler", f"--config={path}", "--secure-port=0"],
            folder / "scheduler.log",
        )
        self._process.start()

    def stop(self) -> None:
        self._process.kill()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def forget(self, uid: str) -> None:
        """The next judgement about the pod is a new one."""
        with self._answered:
            self._answers.pop(uid, None)

    def passing(self, uid: str, seconds: float = 60) -> tuple[set[str], Counter[str]]:
        """The nodes that pass; where none does, how many nodes each filter was the first to refuse."""
        end = time.monotonic() + seconds
        while True:
            with self._answered:
                if uid in self._answers:
                    return self._answers[uid], Counter()
            refused = unschedulable(self._pods.now.get(uid))
            if refused is not None:
                return set(), refused
            waits = time.monotonic() < end and not self._process.ended()
            assert waits, f"no judgement\n{self._process.tail()}"
            with self._answered:
                self._answered.wait(0.01)

    def _note(self, uid: str, nodes: set[str]) -> None:
        with self._answered:
            self._answers[uid] = nodes
            self._answered.notify_all()


def unschedulable(pod: Object | None) -> Counter[str] | None:
    """How many nodes each filter has refused, as the pod's condition says."""
    for condition in (pod or {}).get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return refusals(condition["message"])
    return None


def refusals(message: str) -> Counter[str]:
    """``0/3 nodes are available: 1 node(s) had ..., 2 node(s) didn't ...``, counted by filter."""
    found: Counter[str] = Counter()
    for number, text in re.findall(r"(\d+) node\(s\) (.*?)(?=, \d+ node\(s\)|\.?$)", message):
        if BOTH in message and text.endswith(MORE):
            continue
        names = {name for part, name in TEXTS.items() if part in text}
        assert len(names) == 1, (text, message)
        found[names.pop()] += int(number)
    return found
