"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

``.ci/cluster`` builds the programs. All that they write is in one temporary folder, and each is a process
group of its own that ends with its parent.
"""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.k8s_cluster.server_version import insecure_port, node_controllers, version_of

REPOSITORY = Path(__file__).resolve().parents[2]
#: what .ci/cluster builds
BUILT = "1.20.2"

#: Token → user name and groups. ``admin`` may everything; ``quadriga`` what its roles say; ``nobody`` nothing.
USERS = {
    "admin": ("admin", "system:masters"),
    "kubelet": ("kubelet", "system:masters"),
    "quadriga": ("system:serviceaccount:quadriga:quadriga", "system:serviceaccounts"),
    "nobody": ("nobody", ""),
}

CONTROLLERS = """
job cronjob garbagecollector namespace daemonset replicaset deployment statefulset endpoint disruption
resourcequota persistentvolume-binder
""".split()


class Missing(Exception):
    """The programs are not there."""


def programs() -> Path:
    """The folder with the programs. Raises ``Missing`` with what to do."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    default = cache / "quadriga" / f"kubernetes-{BUILT}"
    folder = Path(os.environ.get("QUADRIGA_CLUSTER") or default)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        if not (folder / name).is_file():
            raise Missing(f"no control plane in {folder}: it has no {name}; .ci/cluster builds one")
    if shutil.which("openssl") is None:
        raise Missing("no openssl, which makes the control plane's keys")
    return folder


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Process:
    """One program, with its output in a file."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self._command = [str(each) for each in command]
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self, environment: dict[str, str] | None = None) -> None:
        prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(
                [*prefix, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    def ended(self) -> bool:
        return self._running is None or self._running.poll() is not None

    def signal(self, number: int) -> None:
        """To the whole process group."""
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self._running is not None:
            self._running.wait()
            self._running = None

    def wait(self, seconds: float) -> int:
        """Its exit status."""
        assert self._running is not None
        return self._running.wait(seconds)

    def tail(self, lines: int = 30) -> str:
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])


class ControlPlane:
    """``start`` returns when the API server is ready; ``stop`` when all processes have ended."""

    def __init__(self, folder: Path, *, port: int | None = None, controllers: bool = True) -> None:
        """``controllers``: whether kube-controller-manager runs as well."""
        self.folder = folder
        self._controllers = controllers
        self._programs = programs()
        self.version = version_of(self._programs)
        self._port = port
        self._processes: dict[str, Process] = {}
        self.authority = folder / "certificates" / "apiserver.crt"
        self.server = ""

    # -- start and end

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._keys()
        for attempt in range(3):
            try:
                self._start()
                return
            except RuntimeError:
                # Somebody else may have taken a port meanwhile.
                self.stop()
                if attempt == 2:
                    raise

    def _start(self) -> None:
        client, peer, secure = free_ports(3)
        secure = self._port or secure
        self.server = f"https://127.0.0.1:{secure}"
        self.etcd = f"http://127.0.0.1:{client}"
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        self._run(
            "etcd",
            "--data-dir",
            self.folder / "etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--log-level=error",
        )
        key = self.folder / "service-account.key"
        self._run(
            "kube-apiserver",
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={secure}",
            f"--cert-dir={self.folder / 'certificates'}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # No controller here takes the taint not-ready from a new node.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            "--event-ttl=10m",
            "--allow-privileged=true",
        )
        self.wait_ready()
        if self._controllers:
            self._start_controllers(key)

    def _start_controllers(self, key: Path) -> None:
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={key}",
            *self._of_clients(),
            # Claims are looked at again this often after a provisioner's answer.
            "--pvclaimbinder-sync-period=2s",
        )

    def start_scheduler(self, *more: str) -> None:
        """The stock scheduler, for pods that name no other. Of a flag that is given twice the last
        value counts."""
        self._run(
            "kube-scheduler", f"--kubeconfig={self.kubeconfig('admin')}", *self._of_clients(), *more
        )

    def _of_clients(self) -> list[str]:
        """Flags of all that are clients of the API server here."""
        alone = ["--leader-elect=false", *insecure_port(self.version), "--secure-port=0"]
        return [*alone, "--kube-api-qps=1000", "--kube-api-burst=2000"]

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
        self._processes.clear()

    def start_node_controller(self) -> Process:
        """What marks nodes that send no heartbeat, and evicts their pods. The test ends it: other tests'
        nodes send none."""
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--controllers={node_controllers(self.version)}",
            "--leader-elect=false",
            *insecure_port(self.version),
            "--secure-port=0",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=8s",
            "--node-startup-grace-period=8s",
            "--node-eviction-rate=10",
            key="node-controller",
        )
        return self._processes["node-controller"]

    def _run(self, name: str, *arguments: str | Path, key: str = "") -> None:
        key = key or name
        process = Process(key, [self._programs / name, *arguments], self.folder / f"{key}.log")
        process.start()
        self._processes[key] = process

    def process(self, name: str) -> Process:
        return self._processes[name]

    # -- what tests do to it

    def shell(self, *command: object) -> str:
        """Run it beside the cluster, as an administrator; gives what it says."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig("admin"))}
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def kubectl(self, *arguments: object) -> str:
        return self.shell("kubectl", *arguments)

    def kill_server(self) -> None:
        """The API server ends at once, with all connections."""
        self._processes["kube-apiserver"].kill()

    def restart_server(self) -> None:
        self._processes["kube-apiserver"].start()
        self.wait_ready()

    def compact(self) -> int:
        """Forget all revisions but the present one, so that older watches get 410. Returns it."""
        revision = int(self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def _etcd(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(self.etcd + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            read: dict[str, dict[str, str]] = json.load(answer)
            return read

    def wait_ready(self, seconds: float = 60) -> None:
        """Until /readyz answers. Raises RuntimeError with the end of the log when it does not."""
        end = time.monotonic() + seconds
        server = self._processes["kube-apiserver"]
        while time.monotonic() < end:
            for name in ("etcd", "kube-apiserver"):
                if self._processes[name].ended():
                    raise RuntimeError(f"{name} has ended:\n{self._processes[name].tail()}")
            if self._ready():
                return
            time.sleep(0.05)
        raise RuntimeError(f"not ready after {seconds:g} s:\n{server.tail()}")

    def _ready(self) -> bool:
        request = urllib.request.Request(
            f"{self.server}/readyz", headers={"Authorization": "Bearer admin-token"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5, context=self.tls()) as answer:
                return answer.status == 200
        except OSError:
            return False

    # -- how to reach it

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def kubeconfig(self, user: str = "admin", server: str | None = None) -> Path:
        """A kubeconfig of this user, by default of the API server itself (else of what stands before
        it, without TLS)."""
        cluster: dict[str, object] = {"server": server or self.server}
        if server is None:
            cluster["certificate-authority"] = str(self.authority)
        name = user if server is None else f"{user}-{server.rpartition(':')[2]}"
        path = self.folder / f"kubeconfig-{name}.json"
        # Whole at any moment: a process that was started may read it now. JSON is YAML.
        new = path.with_suffix(".new")
        new.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "test", "cluster": cluster}],
                    "users": [{"name": user, "user": {"token": f"{user}-token"}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
                    "current-context": "test",
                }
            )
        )
        new.replace(path)
        return path

    def _keys(self) -> None:
        key = self.folder / "service-account.key"
        subprocess.run(
            ["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True
        )
        lines = [f'{name}-token,{user},{name}-uid,"{g}"' for name, (user, g) in USERS.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
