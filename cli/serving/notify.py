"""Notifications to systemd about the state of the service (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends datagrams to ``NOTIFY_SOCKET``, or nothing if that is not set. Lost datagrams are
    ignored.

    ``watchdog_s`` is the interval for calls of ``watchdog``, in s, or None if systemd expects none.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        # An abstract name begins with a zero byte, which an environment variable cannot contain.
        self._name = f"\0{name[1:]}" if name.startswith("@") else name
        self.watchdog_s = _watchdog(environment) if self._name else None

    def ready(self, status: str) -> None:
        """All ports are open."""
        self._say(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The service is stopping."""
        self._say("STOPPING=1\nSTATUS=stopping")

    def watchdog(self) -> None:
        """The scheduler has responded."""
        self._say("WATCHDOG=1")

    def _say(self, text: str) -> None:
        if not self._name:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.setblocking(False)  # called in the loop's thread, which must not block
                out.connect(self._name)
                out.sendall(text.replace("\0", " ").encode())
        except OSError:
            pass


def _watchdog(environment: Mapping[str, str]) -> float | None:
    """Half of systemd's watchdog timeout, if it is meant for this process."""
    try:
        if int(environment.get("WATCHDOG_PID", os.getpid())) != os.getpid():
            return None
        microseconds = int(environment.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return microseconds / 2e6 if microseconds > 0 else None
