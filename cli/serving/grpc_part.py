"""The gRPC server as a part of the process: its creation from settings, and its metrics."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadriga.si.server import Limits, Server, Tls

if TYPE_CHECKING:
    from quadriga.cli.serving.addresses import Address
    from quadriga.cli.serving.settings import Settings
    from quadriga.core.driver.service import SchedulerService
    from quadriga.si.access import Access
    from quadriga.web.site import Measured


def new_server(
    settings: Settings, address: Address, service: SchedulerService, access: Access
) -> Server:
    """Create the server without starting it. Raises ``ValueError`` for invalid limits."""
    tls = settings.tls
    return Server(
        service,
        access=access,
        address=str(address),
        tls=Tls(tls.certificate, tls.key, tls.client_ca) if tls is not None else None,
        limits=limits_of(settings),
        client_clock=settings.client_clock,
        insecure=settings.insecure,
    )


def check_free(address: Address) -> None:
    """Raise ``OSError`` with the system's reason if the address is in use; gRPC does not report
    one."""
    family, kind, protocol, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind(where)
        tried.listen(1)  # with SO_REUSEPORT two processes may bind, but only one may listen


def limits_of(settings: Settings) -> Limits:
    """Limits from the options, and defaults for all others."""
    return Limits(
        message_bytes=settings.max_message_bytes,
        items=settings.max_items,
        resource_managers=settings.max_resource_managers,
        streams=settings.max_streams,
        connections=settings.max_grpc_connections,
        connections_per_client=settings.max_grpc_connections_per_client,
        requests_per_second=settings.max_rate,
        request_burst=2 * settings.max_rate,
        items_per_second=settings.max_item_rate,
        item_burst=2 * settings.max_item_rate,
        backlog_bytes=settings.max_backlog_bytes,
    )


def measured(server: Server) -> Iterator[Measured]:
    """The current values, for the metrics."""
    sessions = server.sessions
    yield _one("quadriga_grpc_streams", "gauge", "Open streams.", server.streams)
    yield _one("quadriga_grpc_resource_managers", "gauge", "Registered over gRPC.", len(sessions))
    yield (
        "quadriga_grpc_backlog_bytes",
        "gauge",
        "What waits for a resource manager that has not read it yet.",
        [({"rm": rm_id}, session.backlog) for rm_id, session in sorted(sessions.items())],
    )
    yield (
        "quadriga_grpc_dropped_total",
        "counter",
        "Events and scheduling states for which there was no room.",
        [({"rm": rm_id}, session.dropped) for rm_id, session in sorted(sessions.items())],
    )
    yield _one(
        "quadriga_grpc_connections_closed_total",
        "counter",
        "Connections that were closed because there were too many.",
        server.connections.closed,
    )
    yield (
        "quadriga_grpc_refused_total",
        "counter",
        "Calls and streams that ended with an error, by status.",
        [({"status": status}, count) for status, count in sorted(server.refused.items())],
    )


def _one(name: str, kind: str, about: str, value: int) -> Measured:
    return name, kind, about, [({}, value)]
