"""`quadriga serve` in a process of its own, and what a client of it needs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PATIENCE_S = 120.0


class Served:
    """Whoever asks a service that listens on these ports."""

    ports: dict[str, int]

    def get(self, path: str, **how: Any) -> Any:
        return json.loads(self.ask(path, **how)[1])

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        data: bytes | None = None,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[int, bytes]:
        scheme = "https" if tls is not None else "http"
        request = urllib.request.Request(
            f"{scheme}://127.0.0.1:{self.ports['http']}{path}", data, method=method
        )
        if data is not None:
            request.add_header("Content-Type", "application/x-yaml")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        handlers: list[Any] = [urllib.request.ProxyHandler({})]
        if tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=tls))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read()

    def certificates(self, pki: Path) -> dict[str, bytes | None]:
        """What each port shows to who connects now (DER)."""
        context = client_tls(pki)
        context.set_alpn_protocols(["h2", "http/1.1"])
        found = {}
        for name, port in self.ports.items():
            with (
                socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as secure,
            ):
                found[name] = secure.getpeercert(binary_form=True)
        return found


class Service(Served):
    """One process, which tells systemd's socket when it is ready; ``prelude`` runs before the command."""

    def __init__(
        self, folder: Path, *options: Any, prelude: str = "", env: Mapping[str, str] | None = None
    ) -> None:
        self.log_path = folder / "log"
        self._ports_file = folder / "ports.json"
        self._notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notified.bind(str(folder / "notify"))
        self._notified.settimeout(0.1)
        words = ["serve", "--http", "0", "--grpc", "0", "--ports-file", self._ports_file, *options]
        program = f"{prelude}\nimport sys; from quadriga.cli.main import main; sys.exit(main())"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", program, *map(str, words)],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), **(env or {})},
            )

    def wait_until_ready(self) -> Service:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self._hears(b"READY=1"):
                self.ports = json.loads(self._ports_file.read_text(encoding="utf-8"))
                return self
            if self.process.poll() is not None:
                break
        raise AssertionError(f"not ready: {self.log}")

    def wait_for(self, notification: bytes) -> None:
        """Until systemd would have heard this."""
        until(lambda: self._hears(notification), lambda: f"no {notification!r}: {self.log}")

    def _hears(self, beginning: bytes) -> bool:
        with contextlib.suppress(TimeoutError):
            return self._notified.recv(4096).startswith(beginning)
        return False

    def send(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def wait(self, *, traceback: bool = False) -> int:
        """The exit code. Nothing may end with a traceback that is not expected."""
        code = self.process.wait(PATIENCE_S)
        assert traceback or "Traceback" not in self.log, self.log
        return code

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    def log_has(self, text: str) -> None:
        until(lambda: text in self.log, lambda: f"{text!r} is not in {self.log}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._notified.close()


def until(condition: Callable[[], Any], why: Callable[[], str] = lambda: "") -> Any:
    """Wait for something in another process, which has nothing to wait on."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)
    return found


def client_tls(pki: Path, name: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki / "ca.pem"))
    if name is not None:
        context.load_cert_chain(pki / f"{name}.pem", pki / f"{name}.key")
    return context
