"""``--connect`` and what belongs to it: commands that talk to a scheduler in another process."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError
from quadriga.cli.parsing import add_file

if TYPE_CHECKING:
    from quadriga.si.client import Client

__all__ = ["add_connection", "connect"]

#: the bearer token, where no file is named
TOKEN = "QUADRIGA_TOKEN"


def add_connection(parser: ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("a scheduler in another process")
    group.add_argument(
        "--connect",
        metavar="HOST:PORT",
        help="drive the scheduler there, which `quadriga serve --clock client` has started",
    )
    add_file(group, "--token-file", f"bearer token; without it, ${TOKEN} if set")
    group.add_argument(
        "--tls", action="store_true", help="TLS, as the system's authorities know it"
    )
    add_file(group, "--tls-ca", "TLS, as these (PEM) know it")
    add_file(group, "--tls-cert", "own certificate (mutual TLS)")
    add_file(group, "--tls-key", "its key")
    group.add_argument(
        "--tls-server-name", metavar="NAME", help="in the scheduler's certificate, if not HOST"
    )


def connect(arguments: Namespace, command: str) -> Client | None:
    """The client that the options ask for, if they do. Raises `CommandError`."""
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
