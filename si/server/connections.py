"""The bounds of connections, of one client and of all together (Q16).

gRPC's core closes a new connection beyond the bound of all. It has no bound for one client and counts
idle connections like busy ones, so one client could take every place with connections that it never
uses. The server therefore looks at the sockets of its port once a second and closes the surplus:
connections without calls first, the oldest of them first, so that a resource manager that connects
while another client holds its places gets one. See D280.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import unquote

from quadriga.base.pacing import LogPace
from quadriga.si.descriptors import lowered
from quadriga.si.server.limits import Limits

_log = logging.getLogger("quadriga.grpc")

#: address and port of the other side
Peer = tuple[str, int]

#: the open files of this process
_FILES: Final = "/dev/fd"
#: an address that reaches a port of IPv6 by IPv4
_MAPPED: Final = "::ffff:"


class Connections:
    """The connections to one port. ``port`` is set once the server listens."""

    def __init__(self, limits: Limits) -> None:
        #: connections of all clients; the open files of the process may allow fewer than the limit
        self.most = lowered(limits.connections)
        #: those of one address, lowered alike
        self.most_of_client = max(
            1, limits.connections_per_client * self.most // limits.connections
        )
        self.port = 0
        #: connections that were closed because they were too many
        self.closed = 0
        self._calls: Counter[str] = Counter()
        self._known: dict[Peer, int] = {}
        self._pace = LogPace()

    @contextmanager
    def call(self, context: Any) -> Iterator[None]:
        """A call keeps its connection busy."""
        peer = context.peer()
        self._calls[peer] += 1
        try:
            yield
        finally:
            self._calls[peer] -= 1
            if not self._calls[peer]:
                del self._calls[peer]

    def busy(self) -> frozenset[str]:
        """The peers with calls, to be passed to ``close_surplus``."""
        return frozenset(self._calls)

    def close_surplus(self, busy: frozenset[str]) -> int:
        """Close the connections beyond the bounds; returns their number. May run in any thread, one at
        a time."""
        found = self._look()
        # in the order in which they were first seen
        self._known = {peer: found[peer] for peer in self._known if peer in found} | found
        if len(found) <= min(self.most_of_client, self._kept):
            return 0
        calling = {_parsed(peer) for peer in busy}
        idle = [peer for peer in self._known if peer not in calling]
        surplus = self._surplus(idle, [peer for peer in self._known if peer in calling])
        closed = sum(_shut(self._known[peer], peer) for peer in surplus)
        self.closed += closed
        if closed:
            self._report(closed, surplus)
        return closed

    @property
    def _kept(self) -> int:
        """With more connections than this, the ones without calls are closed, so that there is always
        room for a new one."""
        return self.most - self.most // 8

    def _surplus(self, idle: list[Peer], calling: list[Peer]) -> list[Peer]:
        """Of each client what is beyond its bound, then of all; connections without calls, the oldest
        first, before the newest ones with calls."""
        by_client: defaultdict[str, list[Peer]] = defaultdict(list)
        for peer in (*idle, *reversed(calling)):
            by_client[peer[0]].append(peer)
        surplus: dict[Peer, None] = {}
        for peers in by_client.values():
            surplus.update(dict.fromkeys(peers[: max(0, len(peers) - self.most_of_client)]))
        beyond = len(idle) + len(calling) - len(surplus) - self._kept
        left = [peer for peer in idle if peer not in surplus]
        return [*surplus, *left[: max(0, beyond)]]

    def _report(self, closed: int, surplus: list[Peer]) -> None:
        if (before := self._pace.due()) is None:
            return
        client, count = Counter(peer[0] for peer in surplus).most_common(1)[0]
        _log.warning(
            "%d gRPC connections are closed, %d of them of %s: one client may have %d"
            " (connections_per_client), all together %d (connections)%s",
            *(closed, count, client, self.most_of_client, self.most),
            f"; {before} reports were left out" if before else "",
        )

    def _look(self) -> dict[Peer, int]:
        """The connections to the port, with their descriptors."""
        try:
            names = os.listdir(_FILES)
        except OSError:  # a system without this folder: only the bound of all is kept, by gRPC
            return {}
        if len(names) <= min(self.most_of_client, self._kept):
            return {}
        found = {}
        for name in names:
            with suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    with socket.socket(fileno=os.dup(int(name))) as copy:
                        if (peer := self._peer_of(copy)) is not None:
                            found[peer] = int(name)
        return found

    def _peer_of(self, copy: socket.socket) -> Peer | None:
        """The other side of a connection to the port. Raises ``OSError`` for other sockets."""
        if copy.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        if copy.getsockname()[1] != self.port:
            return None
        return _peer(copy)


def _peer(of: socket.socket) -> Peer:
    host, port = of.getpeername()[:2]
    return host.removeprefix(_MAPPED), port


def _parsed(peer: str) -> Peer:
    """A peer as gRPC writes it: ``ipv4:127.0.0.1:5000``, ``ipv6:%5B::1%5D:5000``."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return host.strip("[]").removeprefix(_MAPPED), int(port) if port.isdigit() else 0


def _shut(descriptor: int, peer: Peer) -> bool:
    """Shut the connection down, which gRPC then closes. The number of a descriptor may belong to
    something else by now, so a copy is looked at again."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
        if _peer(copy) == peer:
            copy.shutdown(socket.SHUT_RDWR)
            return True
    return False
