"""The gRPC server: ``service Scheduler`` of ``si.v1`` and ``Extension`` of ``quadriga.v1``, with
health and reflection.

Needs the extra ``grpc``. docs/grpc.md has the rules.
"""

try:
    import grpc  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "quadriga.si.server needs gRPC: pip install '.[grpc]' in a checkout of Quadriga"
    ) from error

from quadriga.si.server.authentication import Tls
from quadriga.si.server.driver import Driver
from quadriga.si.server.limits import Limits
from quadriga.si.server.server import Server

__all__ = ["Driver", "Limits", "Server", "Tls"]
