"""Telling systemd how the service is, where systemd asks (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

__all__ = ["Notifier"]


class Notifier:
    """Datagrams to ``NOTIFY_SOCKET``; without one, nothing. A lost datagram is nobody's business.

    ``watchdog_s`` is how often ``watchdog`` should be called, in s, None where nobody waits for it.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        # An abstract name begins with a zero byte, which the environment cannot hold.
        self._name = f"\0{name[1:]}" if name.startswith("@") else name
        self.watchdog_s = _watchdog(environment) if self._name else None

    def ready(self, status: str) -> None:
        """All that should listen does."""
        self._say(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The end has begun."""
        self._say("STOPPING=1\nSTATUS=stopping")

    def watchdog(self) -> None:
        """The scheduler has answered."""
        self._say("WATCHDOG=1")

    def _say(self, text: str) -> None:
        if not self._name:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.setblocking(False)  # who does not read holds up nobody: it is the loop's thread
                out.connect(self._name)
                out.sendall(text.replace("\0", " ").encode())
        except OSError:
            pass


def _watchdog(environment: Mapping[str, str]) -> float | None:
    """Half of the time that systemd gives us, if it means this process."""
    try:
        if int(environment.get("WATCHDOG_PID", os.getpid())) != os.getpid():
            return None
        microseconds = int(environment.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return microseconds / 2e6 if microseconds > 0 else None
