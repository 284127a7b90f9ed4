"""``quadriga serve``: the scheduler as a service."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quadriga.cli.parsing import add_file

if TYPE_CHECKING:
    from argparse import _ActionsContainer
    from collections.abc import Sequence

    from quadriga.cli.parsing import Commands

__all__ = [
    "CORE_LIMITS",
    "GRPC_LIMITS",
    "HTTP_LIMITS",
    "HTTP_PORT",
    "LIMITS",
    "Limit",
    "add_limits",
    "add_logs",
    "add_running",
    "add_trust",
    "configure",
]

HTTP_PORT, GRPC_PORT = 9080, 9081


class Limit(NamedTuple):
    """An option that bounds something; docs/operations.md lists further limits."""

    option: str
    default: int
    unit: str
    what: str
    low: int
    high: int

    @property
    def name(self) -> str:
        """Of its value among the settings."""
        return self.option[2:].replace("-", "_")


# fmt: off
#: of gRPC
GRPC_LIMITS = tuple(Limit(*row) for row in (
    ("--max-resource-managers", 256, "N", "resource managers registered at a time", 1, 100_000),
    ("--max-streams", 1024, "N", "open gRPC streams, at most 16 per resource manager", 1, 100_000),
    ("--max-message-size", 4, "MIB", "size of one gRPC message", 1, 64),
    ("--max-items", 10_000, "N", "items in one gRPC message: asks, nodes, applications, releases", 1, 100_000),
    ("--max-rate", 20_000, "N", "average requests per second of one resource manager", 1, 10_000_000),
    ("--max-item-rate", 100_000, "N", "average items per second of one resource manager", 1, 100_000_000),
    ("--max-backlog", 64, "MIB", "messages waiting for one slow resource manager", 1, 4096),
    ("--max-grpc-connections", 1000, "N", "open gRPC connections, if half of ulimit -n allows them", 1, 100_000),
    ("--max-grpc-connections-per-client", 500, "N", "gRPC connections of one address", 1, 100_000),
))
#: of each port for HTTP
HTTP_LIMITS = tuple(Limit(*row) for row in (
    ("--max-connections", 1000, "N", "open HTTP connections, if half of ulimit -n allows them", 1, 100_000),
    ("--max-connections-per-client", 500, "N", "HTTP connections of one address", 1, 100_000),
))
#: of the scheduler
CORE_LIMITS = tuple(Limit(*row) for row in (
    ("--max-ended", 20_000, "N", "ended applications kept per resource manager", 0, 10_000_000),
    ("--max-ended-size", 32, "MIB", "total size of these", 1, 65_536),
    ("--max-rejected", 5_000, "N", "rejected applications kept per resource manager", 0, 10_000_000),
    ("--max-rejected-size", 8, "MIB", "total size of these", 1, 65_536),
    ("--max-former-users", 1_000, "N", "users without an application listed per partition", 0, 1_000_000),
    ("--max-gang-members", 10_000, "N", "waiting members of a gang by repeats of an ask", 1, 1_000_000),
    ("--max-text", 2_048, "N", "characters of one text in an application, ask or node", 64, 1 << 20),
    ("--max-tags", 1_024, "N", "tags of one of these", 1, 1 << 20),
    ("--max-tag-characters", 1 << 20, "N", "characters of all tags of one of these", 64, 1 << 26),
    ("--max-groups", 4_096, "N", "groups of one user", 0, 1 << 20),
    ("--max-types", 256, "N", "resource types of one of these", 1, 65_536),
    ("--max-known-types", 1_024, "N", "resource types of a partition; asks may name half of them", 2, 65_536),
    ("--max-group-answers", 32_768, "N", "users whose groups are kept in memory", 1, 10_000_000),
    ("--group-deadline", 5, "S", "time to look up the groups of a user", 1, 3600),
))
# fmt: on
#: in the order of the help
LIMITS = GRPC_LIMITS + HTTP_LIMITS + CORE_LIMITS

_DESCRIPTION = """\
Serve the scheduler: the scheduler interface over gRPC for resource managers, REST, metrics and pages
over HTTP. Both listen on loopback by default. Other addresses require TLS and either tokens or client
certificates, or --insecure.
"""

_EPILOG = """\
signals:
  SIGHUP            read --config and --tokens again; an invalid file is rejected as a whole and logged
  SIGTERM, SIGINT   stop cleanly within --grace; a second signal ends the process at once

exit codes: 0 stopped by SIGTERM, 1 could not listen or a part failed, 2 wrong usage or input,
130 stopped by SIGINT; after a second signal: 128 plus its number
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
    add_trust(parser)
    add_limits(parser, LIMITS)
    _add_clock(add_running(parser))
    parser.set_defaults(run=run)


def _add_what(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("content")
    add_file(
        group,
        "--config",
        "queues (YAML) for resource managers that register without their own",
    )
    group.add_argument(
        "--ui", type=Path, metavar="DIR", help="serve the YuniKorn web UI from its dist folder"
    )
    group.add_argument(
        "--demo", action="store_true", help="run a simulated cluster with users in the same process"
    )
    group.add_argument(
        "--demo-speed",
        type=float,
        default=60.0,
        metavar="F",
        help="simulated seconds per real second (default: 60)",
    )


def _add_where(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("addresses")
    group.add_argument(
        "--http",
        default=str(HTTP_PORT),
        metavar="[HOST:]PORT",
        help=f"port of REST, metrics and pages; 'off' disables it (default: {HTTP_PORT})",
    )
    group.add_argument(
        "--grpc",
        default=str(GRPC_PORT),
        metavar="[HOST:]PORT",
        help=f"port for resource managers; 'off' disables it (default: {GRPC_PORT})",
    )
    add_file(
        group,
        "--ports-file",
        "write the ports as JSON when ready, for use with port 0 (any free port)",
    )


def add_trust(parser: ArgumentParser) -> None:
    """Add the options about security."""
    group = parser.add_argument_group("security")
    add_file(group, "--tls-cert", "certificate and chain (PEM)")
    add_file(group, "--tls-key", "the certificate's key (PEM)")
    add_file(
        group,
        "--tls-client-ca",
        "authority (PEM) that must have signed the certificates of clients: mutual TLS",
    )
    add_file(group, "--tokens", "bearer tokens and certificates, with their rights")
    group.add_argument(
        "--require-token-for-reads",
        action="store_true",
        help="require a token or a certificate for reads over HTTP too, not only for changes",
    )
    group.add_argument(
        "--insecure",
        action="store_true",
        help="allow plaintext and unknown clients beyond loopback",
    )


def add_limits(parser: ArgumentParser, limits: Sequence[Limit]) -> None:
    """Add these options."""
    group = parser.add_argument_group("limits")
    for each in limits:
        default = parser.argument_default or each.default  # or as an option before a command
        about = f"{each.what} (default: {each.default:,})"
        group.add_argument(each.option, type=int, default=default, metavar=each.unit, help=about)


def add_logs(group: _ActionsContainer) -> None:
    """Add the options about logs."""
    group.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="lowest level that is logged (default: info)",
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="text lines, or one JSON object per line (default: text)",
    )


def add_running(parser: ArgumentParser) -> _ActionsContainer:
    """Add the options about operation."""
    group = parser.add_argument_group("operation")
    add_logs(group)
    add_file(group, "--journal", "append every state change to this file, for 'quadriga story'")
    group.add_argument(
        "--journal-size",
        type=int,
        default=256,
        metavar="MIB",
        help="at this size the journal is renamed to FILE.1 and a new one begins (default: 256)",
    )
    group.add_argument(
        "--grace",
        type=float,
        default=10.0,
        metavar="S",
        help="time for a clean stop (default: 10)",
    )
    group.add_argument(
        "--health-delay",
        type=float,
        default=5.0,
        metavar="S",
        help="a request that waits longer, or one thing that takes the loop longer, makes the process"
        " not ready (default: 5)",
    )
    return group


def _add_clock(group: _ActionsContainer) -> None:
    group.add_argument(
        "--clock",
        choices=("real", "client"),
        default="real",
        help="client: a client advances the time (quadriga.v1.Extension/Step), and HTTP is"
        " disabled (default: real)",
    )


def run(arguments: Namespace) -> int:
    """Serve until told to stop."""
    from quadriga.cli.serving.process import serve
    from quadriga.cli.serving.settings import settings_of

    return serve(settings_of(arguments))
