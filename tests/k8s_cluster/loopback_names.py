"""Started by an interpreter as ``sitecustomize``: names of a cluster's services are on this machine."""

import socket
from typing import Any

_ask = socket.getaddrinfo


def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and (".svc" in name):
        host = "127.0.0.1"
    return _ask(host, *rest, **more)


socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
