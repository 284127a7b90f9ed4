"""Addresses to listen on."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from quadriga.cli.errors import CommandError, about

LOOPBACK: Final = "127.0.0.1"
#: an option with this value disables its port
OFF: Final = "off"
_HIGHEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def at(self, port: int) -> Address:
        """The same host with the port that was chosen."""
        return Address(self.host, port)

    @property
    def is_loopback(self) -> bool:
        """Whether the address can only be reached from this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return all(
                ipaddress.ip_address(found[4][0]).is_loopback for found in _resolved(self.host)
            )


def address(option: str, text: str) -> Address | None:
    """``HOST:PORT``, ``[IPv6]:PORT``, ``PORT`` on loopback, or ``off``."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    if not colon:
        host = LOOPBACK
    elif host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise CommandError(f"serve: {option} {text!r}: an IPv6 address needs brackets, [::1]:9080")
    if not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise CommandError(f"serve: {option} {text!r} is neither HOST:PORT nor PORT nor {OFF}")
    found = Address(host or "0.0.0.0", int(port))
    with about(f"serve: {option} {text!r}"):
        _resolved(found.host)
    return found


def _resolved(host: str) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return found  # type: ignore[return-value]
