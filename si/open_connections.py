"""The open connections of one HTTP port, of all clients and of one address (Q16)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from quadriga.base.pacing import LogPace
from quadriga.si.descriptors import lowered

_log = logging.getLogger("quadriga.http")


class OpenConnections:
    """Counts the connections to a port, which ``name`` names in the log. The open files of the process may
    allow fewer than ``most``; those of one address are lowered alike. For one event loop."""

    def __init__(self, name: str, most: int, most_of_client: int, *, share: int = 1) -> None:
        self._name = name
        self.most = max(1, lowered(most) // share)
        self.most_of_client = max(1, most_of_client * self.most // most)
        #: by address, the oldest connection first; ended ones leave when their number matters
        self._open: dict[str, dict[asyncio.BaseTransport, None]] = {}
        self._pace = LogPace()

    def add(self, transport: asyncio.BaseTransport) -> str:
        """Count a connection. Returns why it is one too many, and then does not count it; otherwise an
        empty text."""
        client = _host(transport)
        if len(self._open.get(client, ())) >= self.most_of_client <= len(self._left(client)):
            why = f"{client} has {self.most_of_client} connections, more are not allowed"
            return self._report(f"{why} (--max-connections-per-client)")
        self._open.setdefault(client, {})[transport] = None
        return ""

    def add_newest(self, transport: asyncio.BaseTransport) -> None:
        """Count a connection. Beyond a bound the oldest one of the address goes, or of the address that
        has most."""
        client = _host(transport)
        if self.add(transport):
            self._drop_oldest(client)
            self.add(transport)
        elif self._count > self.most:
            most = max([*self._open], key=lambda each: len(self._left(each)))
            if self._count > self.most:
                self._report(f"{self.most} connections are open (--max-connections)")
                self._drop_oldest(most)

    @property
    def _count(self) -> int:
        return sum(map(len, self._open.values()))

    def _drop_oldest(self, client: str) -> None:
        oldest = next(iter(self._open[client]))
        del self._open[client][oldest]
        if isinstance(oldest, asyncio.WriteTransport):
            oldest.abort()

    def _left(self, client: str) -> dict[asyncio.BaseTransport, None]:
        left = {each: None for each in self._open.pop(client) if not each.is_closing()}
        if left:
            self._open[client] = left
        return left

    def _report(self, why: str) -> str:
        if (before := self._pace.due()) is not None:
            _log.warning("%s: %s; %d reports were left out", self._name, why, before)
        return why


def _host(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]).removeprefix("::ffff:") if peer else ""


class _Door(asyncio.Protocol):
    """Counts a connection before the protocol that serves it gets it."""

    def __init__(self, connections: OpenConnections, protocol: Any) -> None:
        self._connections = connections
        self._protocol = protocol

    def connection_made(self, transport: Any) -> None:
        self._connections.add_newest(transport)
        transport.set_protocol(self._protocol)
        self._protocol.connection_made(transport)


async def listen(
    serving: Any, connections: OpenConnections, host: str | None, port: int, tls: Any = None
) -> asyncio.Server:
    """A server whose protocols ``serving`` makes, within the bounds. Raises ``OSError``."""
    return await asyncio.get_running_loop().create_server(
        lambda: _Door(connections, serving()), host, port, ssl=tls, backlog=128
    )
