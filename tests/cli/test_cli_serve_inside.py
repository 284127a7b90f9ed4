"""``quadriga serve`` in this process: a thread asks, and sends the signals."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from service_process import PATIENCE_S, Served, client_tls, until

from quadriga.cli.main import main

TOKEN = "correct-horse-battery-staple"

QUEUES = """\
partitions:
  - name: default
    queues:
          - name: a
"""


TAKEN = "a port that somebody has"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch, logging_as_before: None) -> Iterator[None]:
    """Who takes signals, and what others log, is the process's."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    signals = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
    taken = {which: signal.getsignal(which) for which in signals}
    yield
    for name in "uvicorn uvicorn.error uvicorn.access asyncio grpc quadriga.applications".split():
        logging.getLogger(name).setLevel(logging.NOTSET)
    for which, handler in taken.items():
        signal.signal(which, handler)


class Visit(Served):
    """Asks, from a thread of its own, while the command runs in the main one."""

    def __init__(self, ports_file: Path, ask: Callable[[Visit], None], log: Path) -> None:
        self._ports_file = ports_file
        self._ask = ask
        self._log = log
        self.error: BaseException | None = None
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._visit)
        self._thread.start()

    def _visit(self) -> None:
        try:
            until(lambda: self._ports_file.exists() or self.over.is_set(), lambda: "not ready")
            if not self.over.is_set():
                self.ports = json.loads(self._ports_file.read_text(encoding="utf-8"))
                self._ask(self)
        except BaseException as error:
            self.error = error
        finally:
            if not self.over.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    def send(self, which: signal.Signals) -> None:
        os.kill(os.getpid(), which)

    def log_has(self, text: str) -> None:
        read = self._log.read_text
        until(lambda: text in read("utf-8"), lambda: f"{text!r} is not in {read('utf-8')}")

    def end(self) -> None:
        self.over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """``serving(ask, "--demo")`` gives the exit code and the log, after SIGTERM."""

    def served(ask: Callable[[Visit], None], *options: object) -> tuple[int, str]:
        ports = tmp_path / "ports.json"
        words = ["serve", "--http", "0", "--grpc", "0", "--ports-file", ports, *options]
        log = tmp_path / "log"
        with log.open("w", encoding="utf-8", buffering=1) as stream:
            # Here, for pytest puts its own in place before every phase of a test.
            monkeypatch.setattr(sys, "stderr", stream)
            visit = Visit(ports, ask, log)
            try:
                code = main([str(word) for word in words])
            finally:
                visit.end()
        return code, log.read_text(encoding="utf-8")

    return served


def nothing(visit: Visit) -> None:
    """It ends by itself."""
    assert visit.over.wait(PATIENCE_S)


def test_files_are_read_again(serving: Callable[..., Any], tmp_path: Path, tokens: Path) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text(QUEUES)

    def ask(visit: Visit) -> None:
        queues.write_text(QUEUES + "          - name: a\n")
        tokens.chmod(0o666)
        visit.send(signal.SIGHUP)
        visit.log_has("the queues stay as before: 1 problem")
        visit.log_has("the tokens stay as before: 1 problem")
        queues.write_text(QUEUES + "          - name: b\n")
        tokens.chmod(0o600)
        visit.send(signal.SIGHUP)
        visit.log_has("the queues are those of the file again")
        metrics = visit.ask("/ws/v1/metrics")[1].decode()
        assert 'quadriga_reloads_total{outcome="refused"} 2' in metrics
        assert 'quadriga_reloads_total{outcome="taken"} 1' in metrics
        queues.unlink()
        visit.send(signal.SIGHUP)
        visit.log_has("No such file")

    assert serving(ask, "--config", queues, "--tokens", tokens)[0] == 0


def test_the_demo_and_its_journal(
    serving: Callable[..., Any], quadriga: Callable[..., Any], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"

    def ask(visit: Visit) -> None:
        def running() -> bool:
            found = visit.get("/ws/v1/partitions")
            return bool(found and found[0]["applications"].get("Running"))

        until(running)
        until(lambda: journal.stat().st_size)

    assert serving(ask, "--demo", "--demo-speed", 600, "--journal", journal)[0] == 0
    assert "Schedulable" in quadriga("story", "node/node-01", "--journal", journal).out
    seqs = [json.loads(line)["seq"] for line in journal.read_text("utf-8").splitlines()]
    assert seqs == list(range(len(seqs)))


def test_a_certificate_is_renewed(serving: Callable[..., Any], pki: Path, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes((pki / "server.pem").read_bytes())
    key.write_bytes((pki / "server.key").read_bytes())

    def ask(visit: Visit) -> None:
        assert visit.ask("/livez", tls=client_tls(pki))[0] == 200
        with pytest.raises(OSError):  # plaintext is not answered
            visit.ask("/livez")
        before = visit.certificates(pki)
        assert before["http"] == before["grpc"]
        certificate.write_bytes((pki / "new.pem").read_bytes())
        visit.send(signal.SIGHUP)
        visit.log_has("the certificates stay as before")
        assert visit.certificates(pki) == before
        key.write_bytes((pki / "new.key").read_bytes())
        visit.send(signal.SIGHUP)
        until(lambda: {*visit.certificates(pki).values()}.isdisjoint(before.values()))

    assert serving(ask, "--tls-cert", certificate, "--tls-key", key)[0] == 0


@pytest.mark.parametrize(
    ("broken", "options", "said"),
    [
        ("quadriga.sim.demo.Demo.step", ["--demo"], "demo has ended by itself"),
        ("quadriga.web.app.create_app", [], "a part has failed at the start"),
        ("", ["--http", TAKEN], "quadriga: serve: cannot listen on 127.0.0.1:{}"),
        ("", ["--grpc", TAKEN], "quadriga: serve: cannot listen on 127.0.0.1:{}"),
    ],
    ids="demo web http-port grpc-port".split(),
)
def test_a_part_that_fails(
    serving: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    options: list[str],
    said: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    if broken:
        monkeypatch.setattr(broken, fail)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, log = serving(nothing, *(port if each is TAKEN else each for each in options))
    assert code == 1
    assert said.format(port) in log
    assert broken or "Address already in use" in log


def test_a_clients_clock_and_logs_for_programs(serving: Callable[..., Any], capsys: Any) -> None:
    def ask(visit: Visit) -> None:
        visit.send(signal.SIGHUP)
        visit.log_has("no --config to read again")
        assert set(visit.ports) == {"grpc"}

    code, log = serving(ask, "--clock", "client", "--log-format", "json")
    assert (code, capsys.readouterr().out) == (0, "")
    told = [json.loads(line) for line in log.splitlines()]
    assert {line["level"] for line in told} == {"info"}
    assert told[0]["message"].startswith("default queues: nodes are ordered by bestfit")
    assert told[1]["message"].startswith("ready")
    assert told[1]["pid"] == os.getpid()


def test_a_web_ui_is_served_beside_rest_and_our_pages(
    serving: Callable[..., Any], tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "index.html").write_text("<title>theirs</title>", encoding="utf-8")
    ports: dict[str, int] = {}

    def ask(visit: Visit) -> None:
        ports.update(visit.ports)
        assert b"theirs" in visit.ask("/")[1]
        assert b"<html" in visit.ask("/ui/")[1]
        assert visit.ask("/ws/v1/clusters")[0] == 200

    assert serving(ask, "--ui", tmp_path / "dist", "--grpc", "off")[0] == 0
    said = capsys.readouterr().out
    assert f"web UI           http://127.0.0.1:{ports['http']}/\n" in said
    assert "gRPC" not in said


def test_changes_need_tokens_that_are_read_again(serving: Callable[..., Any], tokens: Path) -> None:
    change = {"method": "PUT", "data": QUEUES.encode()}

    def ask(visit: Visit) -> None:
        assert visit.ask("/ws/v1/partitions")[0] == 200
        assert visit.ask("/ws/v1/config", **change)[0] == 401
        assert visit.ask("/ws/v1/config", **change, token="wrong" * 5)[0] == 401
        assert visit.ask("/ws/v1/config", **change, token=TOKEN)[0] == 200
        tokens.write_text(f"ops admin plain:{TOKEN[::-1]}\n", encoding="utf-8")
        visit.send(signal.SIGHUP)
        visit.log_has("no --config")
        assert visit.ask("/ws/v1/config", **change, token=TOKEN)[0] == 401
        assert visit.ask("/ws/v1/config", **change, token=TOKEN[::-1])[0] == 200

    code, log = serving(ask, "--tokens", tokens, "--log-level", "debug")
    assert code == 0
    assert TOKEN not in log
    assert TOKEN[::-1] not in log


@pytest.mark.parametrize("with_tokens", [False, True])
def test_a_certificate_is_a_way_to_say_who_one_is(
    serving: Callable[..., Any], pki: Path, tokens: Path, with_tokens: bool
) -> None:
    """Without tokens it is the only one, and nobody else is let in."""

    def ask(visit: Visit) -> None:
        nobody, shim = client_tls(pki), client_tls(pki, "shim-a")
        assert visit.ask("/ws/v1/partitions", tls=shim)[0] == 200
        if with_tokens:
            assert visit.ask("/livez", tls=nobody)[0] == 200
            assert visit.ask("/ws/v1/partitions", tls=nobody)[0] == 401
            assert visit.ask("/ws/v1/partitions", tls=nobody, token=TOKEN)[0] == 200
        else:
            with pytest.raises(OSError):
                visit.ask("/livez", tls=nobody)

    code, _ = serving(
        ask,
        *("--tls-cert", pki / "server.pem", "--tls-key", pki / "server.key"),
        *("--tls-client-ca", pki / "ca.pem"),
        *(("--tokens", tokens, "--require-token-for-reads") if with_tokens else ()),
    )
    assert code == 0


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        ("--config", "partitions: [{name: default}, {name: default}]", "{} cannot be used"),
        ("--config", "partitions:\n- queues:\n  - name: a b", "{}:3: partitions[0].queues[0].name"),
        ("--config", b"\xff\xfe\xfa", "not UTF-8 text"),
        ("--tokens", "nobody nothing", "needs three words"),
        ("--journal", "something else", "is not a journal"),
        ("--journal", None, "No such file"),
        ("--config", None, "No such file"),
        ("--tls-cert", "no certificate", "are not a certificate and its key"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, capsys: Any, option: str, text: str | bytes | None, reason: str
) -> None:
    path = tmp_path / "gone" / "file" if text is None else tmp_path / "file"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o600)
    words = ["serve", "--http", "0", "--grpc", "0", option, str(path)]
    assert main([*words, *(["--tls-key", str(path)] if option == "--tls-cert" else [])]) == 2
    assert reason.format(path) in capsys.readouterr().err
