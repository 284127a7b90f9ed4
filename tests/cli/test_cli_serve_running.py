"""``quadriga serve`` as a process: it starts, is ready, reads its files again, and ends as it should."""

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable

import pytest
from service_process import Service, until

# -- start and end ---------------------------------------------------------------------------------


def test_it_says_where_it_is_and_ends_despite_an_open_stream(start: Callable[..., Service]) -> None:
    service = start()
    assert service.ask("/livez")[0] == service.ask("/readyz")[0] == 200
    http, grpc = service.ports["http"], service.ports["grpc"]
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/ws/v1/events/stream") as stream:
        assert stream.readline()
        service.send(signal.SIGTERM)
        assert service.wait() == 0
    assert service.process.stdout is not None
    said = service.process.stdout.read().decode()
    assert f"http://127.0.0.1:{http}/ui/" in said and f"127.0.0.1:{grpc} (plaintext)" in said
    assert "SIGTERM: stopping" in service.log
    assert service.log.rstrip().endswith("stopped")


def test_ctrl_c_ends_it_cleanly_with_its_own_code(start: Callable[..., Service]) -> None:
    service = start("--demo")
    service.send(signal.SIGINT)
    service.send(signal.SIGINT)  # twice in a row is once
    assert service.wait() == 130


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


FAILING = """
import itertools
from quadriga.core.driver.service import SchedulerService
left, take = itertools.count(-50), SchedulerService._take
SchedulerService._take = lambda service, *given: take(service, *given) if next(left) else 1 / 0
"""


def test_a_scheduler_that_fails_takes_the_process_with_it(start: Callable[..., Service]) -> None:
    service = start("--demo", ready=False, prelude=FAILING)
    assert service.wait(traceback=True) == 1
    assert "scheduler has ended by itself: stopping" in service.log


def test_systemd_hears_of_everything(start: Callable[..., Service]) -> None:
    service = start("--log-level", "error", env={"WATCHDOG_USEC": "200000"})
    for _ in range(3):
        service.wait_for(b"WATCHDOG=1")
    service.send(signal.SIGTERM)
    service.wait_for(b"STOPPING=1")
    assert service.wait() == 0
    assert service.log == ""  # nothing was as important as that


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
    assert f"pip install '.[{extra}]'" in line
