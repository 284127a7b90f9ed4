"""The client of a resource manager for a remote scheduler; needs the extra ``grpc``.

`Client` implements `SchedulerAPI`, for programs with threads; `AsyncClient` is the same with
``await``. Both keep what is to be said while the connection is away, go on where it broke off, and
tell when the resource manager has to register anew.
"""

try:
    import grpc  # noqa: F401
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("quadriga.si.client needs gRPC: pip install 'quadriga[grpc]'") from error

from quadriga.si.client.asynchronous import AsyncClient
from quadriga.si.client.backoff import Backoff
from quadriga.si.client.client import Client
from quadriga.si.client.errors import ClientError, RegisterAgain, Unreachable
from quadriga.si.client.link import AWAY, CLOSED, CONNECTED, FORGOTTEN, NEW
from quadriga.si.client.tls import Tls
from quadriga.si.client.watcher import Watcher

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
