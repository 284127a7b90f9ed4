"""Started by an interpreter as ``sitecustomize``: names of a cluster's services are on this machine."""

import re
import socket
from typing import Any

_ask = socket.getaddrinfo
#: a service of a test's namespace, or its full name
_SERVICE = re.compile(r"[a-z0-9-]+\.(test-\d+|[a-z0-9-]+\.svc(\.cluster\.local)?)\.?")


def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and _SERVICE.fullmatch(name):
        host = "127.0.0.1"
    return _ask(host, *rest, **more)


socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
