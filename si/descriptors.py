"""How many connections the open files of this process allow (Q16)."""

from __future__ import annotations

from typing import Final

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

#: descriptors that are kept for everything but the connections of clients: files, timers, threads, and
#: connections of our own
RESERVE: Final = 128

#: servers for clients in one process: gRPC and HTTP. No one of them can take the share of another one
_SERVERS: Final = 2


def available() -> int | None:
    """The number of files that the process may open (``ulimit -n``); ``None`` if it is unlimited."""
    if resource is None:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def lowered(wanted: int) -> int:
    """``wanted`` connections of one server, or fewer if its share of the descriptors is smaller."""
    files = available()
    if files is None:
        return wanted
    return max(1, min(wanted, (files - RESERVE) // _SERVERS))
