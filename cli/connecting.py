"""``--connect`` and related options, for commands that use a scheduler in another process."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError

if TYPE_CHECKING:
    from quadriga.si.client import Client
    from quadriga.si.client.connection_state import Watcher

#: environment variable with the bearer token, used if no file is given
TOKEN = "QUADRIGA_TOKEN"


def add_connection(
    parser: ArgumentParser,
    option: str = "--connect",
    how: str = "started by 'quadriga serve --clock client'",
    prefix: str = "",
) -> None:
    """Add the options: one for the address, and others whose names begin with the prefix."""
    group = parser.add_argument_group("a scheduler in another process")
    group.add_argument(
        option,
        dest="connect",
        metavar="HOST:PORT",
        help=f"use the scheduler at this address, {how}",
    )
    start = f"--{prefix}"
    token = f"bearer token (default: ${TOKEN} if set)"
    ca, cert = "TLS with these authorities (PEM)", "own certificate (mutual TLS)"
    group.add_argument(
        f"{start}token-file", dest="token_file", type=Path, metavar="FILE", help=token
    )
    group.add_argument(
        f"{start}tls",
        dest="connect_tls",
        action="store_true",
        help="TLS with the authorities of the system",
    )
    for name, what in (("ca", ca), ("cert", cert), ("key", "its key")):
        group.add_argument(
            f"{start}tls-{name}",
            dest=f"connect_tls_{name}",
            type=Path,
            metavar="FILE",
            help=what,
        )
    group.add_argument(
        f"{start}tls-server-name",
        dest="connect_tls_server_name",
        metavar="NAME",
        help="name in the scheduler's certificate (default: HOST)",
    )
    parser.set_defaults(connect_options=(option, start))


def connect(arguments: Namespace, command: str, watcher: Watcher | None = None) -> Client | None:
    """The client for these options; ``None`` without an address. Raises `CommandError`."""
    option, start = arguments.connect_options
    wanted = (
        arguments.connect_tls_ca,
        arguments.connect_tls_cert,
        arguments.connect_tls_key,
        arguments.connect_tls_server_name,
    )
    if arguments.connect is None:
        if arguments.connect_tls or arguments.token_file or any(wanted):
            raise CommandError(f"{command}: {start}token-file and {start}tls... go with {option}")
        return None
    host, _, port = arguments.connect.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise CommandError(f"{command}: {option} {arguments.connect}: write HOST:PORT")
    try:
        from quadriga.si.client import Client, Tls
    except ImportError as error:
        raise CommandError(f"{command}: {error}") from None
    try:
        tls = None
        if arguments.connect_tls or any(wanted):
            tls = Tls.from_files(*wanted)
        token = os.environ.get(TOKEN) or None
        if arguments.token_file is not None:
            token = arguments.token_file.read_text(encoding="utf-8").strip()
        return Client(arguments.connect, tls=tls, token=token, timeout_s=10.0, watcher=watcher)
    except OSError as error:
        raise CommandError(f"{command}: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{command}: {error}") from None
