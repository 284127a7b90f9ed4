"""``quadriga serve``: the scheduler as a service."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Sequence
from pathlib import Path

from quadriga.cli.parsing import LIMITS, Commands, Limit, add_file

HTTP_PORT, GRPC_PORT = 9080, 9081

_DESCRIPTION = """\
Serve the scheduler: the scheduler interface over gRPC for resource managers, REST, metrics and pages
over HTTP. Both listen on loopback by default. Other addresses require TLS and either tokens or client
certificates, or --insecure.
"""

_EPILOG = """\
examples:
  quadriga serve --demo                     a simulated cluster, at http://127.0.0.1:9080/ui/
  quadriga serve --config queues.yaml       for resource managers that connect by gRPC

signals:
  SIGHUP            read --config and --tokens again; an invalid file is rejected as a whole and logged
  SIGTERM, SIGINT   stop cleanly within --grace; a second signal ends the process at once

exit codes: 0 stopped by SIGTERM, 1 could not listen or a part failed, 2 wrong usage or input,
130 stopped by SIGINT; after a second signal: 128 plus its number
"""


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "serve",
        help="run the scheduler as a service",
        description=_DESCRIPTION,
        epilog=_EPILOG,
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
    add_ui(group)
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
    add_port(group, "--http", HTTP_PORT, "port of REST, metrics and pages")
    add_port(group, "--grpc", GRPC_PORT, "port for resource managers")
    add_ports_file(group)


def add_port(group: _ActionsContainer, option: str, port: int, what: str) -> None:
    """Add the option for an address to listen at."""
    about = f"{what}; 'off' disables it (default: {port})"
    group.add_argument(option, default=str(port), metavar="[HOST:]PORT", help=about)


def add_ports_file(group: _ActionsContainer) -> None:
    """Add the option for the file with the ports."""
    about = "write the ports as JSON when ready, for use with port 0 (any free port)"
    add_file(group, "--ports-file", about)


def add_ui(group: _ActionsContainer) -> None:
    """Add the option for the folder of a web UI."""
    about = "serve the YuniKorn web UI from its dist folder"
    group.add_argument("--ui", type=Path, metavar="DIR", help=about)


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
