"""What systemd hears (sd_notify(3)): nothing where it did not ask."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadriga.cli.serving.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The name as in the environment, and the socket that listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(120)
        if request.param == "path":
            name = str(tmp_path / "notify")
            listening.bind(name)
        else:
            name = f"@quadriga-test-{os.getpid()}"
            listening.bind(f"\0{name[1:]}")
        yield name, listening


def test_it_hears_how_we_are(systemd: tuple[str, socket.socket], tmp_path: Path) -> None:
    """Where nobody listens nothing happens."""
    name, listening = systemd
    for environment in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone")}):
        Notifier(environment).ready("x")
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.ready("http://127.0.0.1:1/")
    notifier.watchdog()
    notifier.stopping()
    ready, *others = [listening.recv(4096) for _ in range(3)]
    assert ready == b"READY=1\nSTATUS=http://127.0.0.1:1/"
    assert others == [b"WATCHDOG=1", b"STOPPING=1\nSTATUS=stopping"]


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_it_wants(
    environment: dict[str, str], seconds: float | None
) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/dev/null", **environment}).watchdog_s == seconds
    assert Notifier(environment).watchdog_s is None
