"""``quadriga serve`` as a process: it starts, is ready, reads its files again, and ends as it should."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from service_process import Service, client_tls, until

TOKEN = "correct-horse-battery-staple"

QUEUES = "partitions: [{name: default, queues: [{name: root, queues: [{name: other}]}]}]"
BAD = """\
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: a b
            resources: {max: {vcore: much}}
"""


# -- start and end ---------------------------------------------------------------------------------


def test_it_says_where_it_is_and_ends_cleanly_on_sigterm(start: Callable[..., Service]) -> None:
    service = start()
    assert service.ask("/livez")[0] == 200
    assert service.ask("/readyz")[0] == 200
    assert set(service.ports) == {"http", "grpc"}
    service.send(signal.SIGTERM)
    assert service.wait() == 0
    assert service.process.stdout is not None
    said = service.process.stdout.read().decode()
    assert f"http://127.0.0.1:{service.ports['http']}/ui/" in said
    assert f"127.0.0.1:{service.ports['grpc']} (plaintext)" in said
    assert "SIGTERM: stopping" in service.log
    assert service.log.rstrip().endswith("stopped")


def test_ctrl_c_ends_it_cleanly_with_its_own_code(start: Callable[..., Service]) -> None:
    service = start("--demo")
    service.send(signal.SIGINT)
    service.send(signal.SIGINT)  # twice in a row is once
    assert service.wait() == 130


def test_an_open_stream_does_not_keep_it_from_ending(start: Callable[..., Service]) -> None:
    service = start("--demo")
    url = f"http://127.0.0.1:{service.ports['http']}/ws/v1/events/stream"
    with urllib.request.urlopen(url, timeout=10) as stream:
        assert stream.readline()
        service.send(signal.SIGTERM)
        assert service.wait() == 0


def test_a_second_signal_ends_it_at_once(start: Callable[..., Service]) -> None:
    service = start("--grace", 60)
    with socket.create_connection(("127.0.0.1", service.ports["http"])) as client:
        head = b"PUT /ws/v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
        client.sendall(head + b"half")  # it is waited for
        until(lambda: client.fileno() and service.ask("/livez")[0] == 200)
        service.send(signal.SIGTERM)
        service.log_has("SIGTERM: stopping")

        def ended() -> bool:  # one that follows at once is taken for the same
            service.send(signal.SIGTERM)
            return service.process.poll() is not None

        until(ended)
        assert service.wait() == 128 + signal.SIGTERM
    assert "SIGTERM again: ending at once" in service.log


FAILING = {
    "demo": """
import quadriga.sim.demo
quadriga.sim.demo.Demo.step = lambda demo, now: 1 / 0
""",
    "scheduler": """
import itertools
from quadriga.core.driver.service import SchedulerService
left, take = itertools.count(-50), SchedulerService._take
SchedulerService._take = lambda service, busy: take(service, busy) if next(left) else 1 / 0
""",
}


@pytest.mark.parametrize("part", FAILING)
def test_a_part_that_fails_takes_the_process_with_it(
    start: Callable[..., Service], part: str
) -> None:
    service = start("--demo", ready=False, prelude=FAILING[part])
    assert service.wait(traceback=True) == 1
    assert f"{part} has ended by itself: stopping" in service.log


def test_systemd_hears_of_everything(start: Callable[..., Service]) -> None:
    service = start("--log-level", "error", env={"WATCHDOG_USEC": "200000"})
    for _ in range(3):
        service.wait_for(b"WATCHDOG=1")
    service.send(signal.SIGTERM)
    service.wait_for(b"STOPPING=1")
    assert service.wait() == 0
    assert service.log == ""  # nothing was as important as that


def test_plaintext_beyond_loopback_does_not_start(start: Callable[..., Service]) -> None:
    service = start("--http", "0.0.0.0:0", ready=False)
    assert service.wait() == 2
    assert "would be plaintext" in service.log


def test_a_bad_configuration_is_refused_with_all_that_is_wrong(
    start: Callable[..., Service], tmp_path: Path
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(BAD, encoding="utf-8")
    service = start("--config", path, ready=False)
    assert service.wait() == 2
    assert f"{path}:6: partitions[0].queues[0].queues[0].name: " in service.log
    assert f"{path}:7: partitions[0].queues[0].queues[0].resources.max.vcore: " in service.log
    assert f"quadriga: serve: {path} cannot be used" in service.log


def test_logs_for_programs_are_json_line_by_line(
    start: Callable[..., Service], tmp_path: Path
) -> None:
    service = start("--log-format", "json")
    service.send(signal.SIGHUP)
    service.log_has("no --config")
    service.send(signal.SIGTERM)
    assert service.wait() == 0
    told = [json.loads(line) for line in service.log.splitlines()]
    assert {line["level"] for line in told} == {"info"}
    assert told[0]["message"].startswith("ready")
    assert told[0]["pid"] == service.process.pid
    assert service.process.stdout is not None
    assert service.process.stdout.read() == b""


def test_a_web_ui_is_served_beside_rest_and_our_pages(
    start: Callable[..., Service], tmp_path: Path
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "index.html").write_text("<title>theirs</title>", encoding="utf-8")
    service = start("--ui", tmp_path / "dist", "--grpc", "off")
    assert b"theirs" in service.ask("/")[1]
    assert b"<html" in service.ask("/ui/")[1]
    assert service.ask("/ws/v1/clusters")[0] == 200
    service.send(signal.SIGTERM)
    assert service.wait() == 0
    assert service.process.stdout is not None
    said = service.process.stdout.read().decode()
    assert f"web UI           http://127.0.0.1:{service.ports['http']}/\n" in said
    assert "gRPC" not in said


# -- who is trusted --------------------------------------------------------------------------------


def test_changes_need_a_token_and_the_tokens_are_read_again(
    start: Callable[..., Service], tokens: Path
) -> None:
    service = start("--tokens", tokens, "--log-level", "debug")
    change = {"method": "PUT", "data": QUEUES.encode()}
    assert service.ask("/ws/v1/partitions")[0] == 200
    assert service.ask("/ws/v1/config", **change)[0] == 401
    assert service.ask("/ws/v1/config", **change, token="wrong" * 5)[0] == 401
    assert service.ask("/ws/v1/config", **change, token=TOKEN)[0] == 200
    tokens.write_text(f"ops admin plain:{TOKEN[::-1]}\n", encoding="utf-8")
    service.send(signal.SIGHUP)
    service.log_has("no --config")
    assert service.ask("/ws/v1/config", **change, token=TOKEN)[0] == 401
    tokens.chmod(0o644)
    service.send(signal.SIGHUP)
    service.log_has("the tokens stay as before")
    assert service.ask("/ws/v1/config", **change, token=TOKEN[::-1])[0] == 200
    service.send(signal.SIGTERM)
    assert service.wait() == 0
    assert TOKEN not in service.log
    assert TOKEN[::-1] not in service.log


def test_without_tokens_mutual_tls_lets_nobody_else_in(
    start: Callable[..., Service], pki: Path
) -> None:
    service = start(
        *("--tls-cert", pki / "server.pem", "--tls-key", pki / "server.key"),
        *("--tls-client-ca", pki / "ca.pem"),
    )
    with pytest.raises(OSError):
        service.ask("/livez", tls=client_tls(pki))
    assert service.ask("/livez", tls=client_tls(pki, "shim-a"))[0] == 200


def test_with_tokens_a_certificate_is_another_way_to_say_who_one_is(
    start: Callable[..., Service], pki: Path, tokens: Path
) -> None:
    service = start(
        *("--tls-cert", pki / "server.pem", "--tls-key", pki / "server.key"),
        *("--tls-client-ca", pki / "ca.pem", "--tokens", tokens, "--require-token-for-reads"),
    )
    tls = client_tls(pki)
    assert service.ask("/livez", tls=tls)[0] == 200
    assert service.ask("/ws/v1/partitions", tls=tls)[0] == 401
    assert service.ask("/ws/v1/partitions", tls=tls, token=TOKEN)[0] == 200
    assert service.ask("/ws/v1/partitions", tls=client_tls(pki, "shim-a"))[0] == 200


@pytest.mark.parametrize(("module", "extra"), [("uvicorn", "web"), ("grpc", "grpc")])
def test_a_missing_extra_is_one_clear_line(module: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None;"
        " from quadriga.cli.main import main; sys.exit(main(['serve']))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert f"pip install 'quadriga[{extra}]'" in line
