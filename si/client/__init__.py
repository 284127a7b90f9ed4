"""The client of a resource manager for a remote scheduler. Needs the extra ``grpc``.

`Client` implements `SchedulerAPI` for programs with threads; `AsyncClient` does the same for
asyncio. Both keep requests while the connection is lost, resume where it broke, and report when the
resource manager must register again.
"""

try:
    import grpc  # noqa: F401
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError(
        "quadriga.si.client needs gRPC: pip install '.[grpc]' in a checkout of Quadriga"
    ) from error

from quadriga.base.pacing import Backoff
from quadriga.si.client.asynchronous import AsyncClient
from quadriga.si.client.channels import Tls
from quadriga.si.client.client import Client
from quadriga.si.client.connection_state import AWAY, CLOSED, CONNECTED, FORGOTTEN, NEW, Watcher
from quadriga.si.client.errors import ClientError, RegisterAgain, Unreachable

__all__ = [
    "AWAY",
    "CLOSED",
    "CONNECTED",
    "FORGOTTEN",
    "NEW",
    "AsyncClient",
    "Backoff",
    "Client",
    "ClientError",
    "RegisterAgain",
    "Tls",
    "Unreachable",
    "Watcher",
]
