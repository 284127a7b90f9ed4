"""``quadriga serve``: the scheduler as a service."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from quadriga.cli.parsing import add_file

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands

__all__ = ["configure"]

HTTP_PORT, GRPC_PORT = 9080, 9081

#: option, default, unit, meaning; docs/operations.md says what else is bounded
LIMITS = (
    ("--max-resource-managers", 256, "N", "that are registered at a time"),
    ("--max-streams", 1024, "N", "gRPC streams at a time, 16 of one resource manager"),
    ("--max-message-size", 4, "MIB", "of one gRPC message"),
    ("--max-items", 10_000, "N", "asks, nodes, applications ... in one gRPC message"),
    ("--max-rate", 20_000, "N", "requests of one resource manager in a second, in the long run"),
    ("--max-item-rate", 100_000, "N", "asks, releases ... of one in a second, in the long run"),
    ("--max-backlog", 64, "MIB", "what may wait for one resource manager that reads slowly"),
    ("--max-ended", 20_000, "N", "ended applications that are kept for each resource manager"),
    ("--max-ended-size", 32, "MIB", "of these together"),
    ("--max-rejected", 5_000, "N", "rejected applications that are kept for each resource manager"),
    ("--max-rejected-size", 8, "MIB", "of these together"),
    ("--max-connections", 1000, "N", "HTTP connections at a time"),
)

_DESCRIPTION = """\
Serve the scheduler: the scheduler interface over gRPC for resource managers, REST, metrics and pages
over HTTP. Both listen on loopback unless told otherwise; beyond it TLS and somebody to trust (tokens
or client certificates) are required, or --insecure.
"""

_EPILOG = """\
signals:
  SIGHUP            read --config and --tokens again; what is wrong is refused whole, and logged
  SIGTERM, SIGINT   stop cleanly within --grace; a second one ends at once

exit codes: 0 stopped by SIGTERM, 1 could not listen or a part failed, 2 wrong usage or input,
130 stopped by SIGINT; forced by a second signal: 128 and its number
"""


def configure(commands: Commands) -> None:
    """Add the command."""
    from argparse import RawDescriptionHelpFormatter

    parser = commands.add_parser(
        "serve",
        help="run the scheduler as a service",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    _add_what(parser)
    _add_where(parser)
    _add_trust(parser)
    _add_limits(parser)
    _add_running(parser)
    parser.set_defaults(run=run)


def _add_what(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what is served")
    add_file(
        group,
        "--config",
        "queues (YAML) of resource managers that register without any of their own",
    )
    group.add_argument(
        "--ui", type=Path, metavar="DIR", help="serve the YuniKorn web UI from its dist folder"
    )
    group.add_argument(
        "--demo", action="store_true", help="start a simulated cluster and its users inside"
    )
    group.add_argument(
        "--demo-speed",
        type=float,
        default=60.0,
        metavar="F",
        help="seconds that pass in the demo's cluster in a real one: 60",
    )


def _add_where(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("where it listens")
    group.add_argument(
        "--http",
        default=str(HTTP_PORT),
        metavar="[HOST:]PORT",
        help=f"REST, metrics and pages; off is not at all: {HTTP_PORT}",
    )
    group.add_argument(
        "--grpc",
        default=str(GRPC_PORT),
        metavar="[HOST:]PORT",
        help=f"resource managers; off is not at all: {GRPC_PORT}",
    )
    add_file(
        group,
        "--ports-file",
        "write the ports as JSON when ready; for port 0, which lets the system choose",
    )


def _add_trust(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("whom it trusts")
    add_file(group, "--tls-cert", "certificate and chain (PEM)")
    add_file(group, "--tls-key", "the certificate's key (PEM)")
    add_file(
        group,
        "--tls-client-ca",
        "clients show a certificate that this one signed (PEM): mutual TLS",
    )
    add_file(group, "--tokens", "who may do what: bearer tokens and certificates")
    group.add_argument(
        "--require-token-for-reads",
        action="store_true",
        help="not only changes: reading over HTTP needs a token or a certificate, too",
    )
    group.add_argument(
        "--insecure",
        action="store_true",
        help="allow plaintext and unknown clients beyond loopback",
    )


def _add_limits(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    for name, default, unit, what in LIMITS:
        group.add_argument(
            name, type=int, default=default, metavar=unit, help=f"{what}: {default:,}"
        )


def _add_running(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("how it runs")
    group.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="least important kind of line that is logged: info",
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines for people, or one JSON object each: text",
    )
    add_file(group, "--journal", "append every change of state, for story")
    group.add_argument(
        "--journal-size",
        type=int,
        default=256,
        metavar="MIB",
        help="the journal starts anew at this size, the old one is FILE.1: 256",
    )
    group.add_argument(
        "--grace",
        type=float,
        default=10.0,
        metavar="S",
        help="how long a clean stop may take: 10",
    )
    group.add_argument(
        "--clock",
        choices=("real", "client"),
        default="real",
        help="client: time passes when a client says so (quadriga.v1.Extension/Step), and nothing is"
        " served over HTTP: real",
    )


def run(arguments: Namespace) -> int:
    """Serve until told to stop."""
    from quadriga.cli.serving.process import serve
    from quadriga.cli.serving.settings import settings_of

    return serve(settings_of(arguments))
