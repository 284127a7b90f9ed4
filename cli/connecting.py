"""``--connect`` and related options, for commands that use a scheduler in another process."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError
from quadriga.cli.parsing import add_file

if TYPE_CHECKING:
    from quadriga.si.client import Client

__all__ = ["add_connection", "connect"]

#: environment variable with the bearer token, used if no file is given
TOKEN = "QUADRIGA_TOKEN"


def add_connection(parser: ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("a scheduler in another process")
    group.add_argument(
        "--connect",
        metavar="HOST:PORT",
        help="use the scheduler at this address, started by 'quadriga serve --clock client'",
    )
    add_file(group, "--token-file", f"bearer token (default: ${TOKEN} if set)")
    group.add_argument("--tls", action="store_true", help="TLS with the authorities of the system")
    add_file(group, "--tls-ca", "TLS with these authorities (PEM)")
    add_file(group, "--tls-cert", "own certificate (mutual TLS)")
    add_file(group, "--tls-key", "its key")
    group.add_argument(
        "--tls-server-name",
        metavar="NAME",
        help="name in the scheduler's certificate (default: HOST)",
    )


def connect(arguments: Namespace, command: str) -> Client | None:
    """The client for these options; ``None`` without ``--connect``. Raises `CommandError`."""
    wanted = (arguments.tls_ca, arguments.tls_cert, arguments.tls_key, arguments.tls_server_name)
    if arguments.connect is None:
        if arguments.tls or arguments.token_file or any(wanted):
            raise CommandError(f"{command}: --token-file and --tls... go with --connect")
        return None
    host, _, port = arguments.connect.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise CommandError(f"{command}: --connect {arguments.connect}: write HOST:PORT")
    try:
        from quadriga.si.client import Client, Tls
    except ImportError as error:
        raise CommandError(f"{command}: {error}") from None
    try:
        tls = None
        if arguments.tls or any(wanted):
            tls = Tls.from_files(*wanted)
        token = os.environ.get(TOKEN) or None
        if arguments.token_file is not None:
            token = arguments.token_file.read_text(encoding="utf-8").strip()
        return Client(arguments.connect, tls=tls, token=token, timeout_s=10.0)
    except OSError as error:
        raise CommandError(f"{command}: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{command}: {error}") from None
