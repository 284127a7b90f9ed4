"""Checks of what the options name, before anything is started: extras, queues, tokens,
certificates, the journal. All functions raise `CommandError` for unusable input."""

from __future__ import annotations

import ssl
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError, about
from quadriga.cli.serving.journal_file import JournalFile
from quadriga.cli.serving.queues_file import QueuesFile, QueuesFileError
from quadriga.si.access import Access, AccessError

if TYPE_CHECKING:
    from quadriga.cli.serving.settings import Settings


def need(settings: Settings) -> None:
    """Check that the required extras are installed."""
    wanted: list[tuple[str, str, tuple[str, ...]]] = []
    if settings.http is not None:
        wanted.append(("web", "http", ("starlette", "uvicorn")))
    if settings.grpc is not None:
        wanted.append(("grpc", "grpc", ("grpc", "grpc_health.v1", "grpc_reflection.v1alpha")))
    for extra, option, modules in wanted:
        try:
            for module in modules:
                import_module(module)
        except ImportError as error:
            raise CommandError(
                f"serve: --{option} needs the extra {extra!r} ({error}):"
                f" pip install '.[{extra}]' in a checkout of Quadriga, or --{option} off"
            ) from None


def queues(settings: Settings) -> tuple[QueuesFile | None, str | None]:
    """The file of ``--config`` and its text. Problems are printed as by ``quadriga config
    check``."""
    if settings.config is None:
        return None, None
    file = QueuesFile(settings.config)
    try:
        text = file.read()
    except QueuesFileError as error:
        print("\n".join(error.lines), file=sys.stderr)
        raise CommandError(f"serve: {settings.config} cannot be used") from None
    for line in file.warnings:
        print(line, file=sys.stderr)
    return file, text


def access(settings: Settings) -> Access:
    """Access control from the tokens file."""
    if settings.tokens is None:
        return Access.open()
    try:
        return Access.from_file(settings.tokens)
    except AccessError as error:
        raise CommandError(f"serve: {error}") from None


def tls(settings: Settings, who: Access) -> ssl.SSLContext | None:
    """TLS for HTTP. Without tokens a client certificate is the only identification and therefore
    required. With tokens a browser or a probe may connect without one; it then counts as a caller
    without a token."""
    if settings.tls is None:
        return None
    from quadriga.base.tls import server_context

    files = settings.tls
    try:
        return server_context(files.certificate, files.key, files.client_ca, required=who.is_open)
    except ValueError as error:
        raise CommandError(f"serve: {error}") from None


def journal_file(settings: Settings) -> JournalFile | None:
    """The file of ``--journal``, opened."""
    if settings.journal is None:
        return None
    try:
        with about(f"serve: --journal {settings.journal}"):
            return JournalFile(settings.journal, settings.journal_bytes)
    except ValueError as error:
        raise CommandError(f"serve: --journal {error}") from None
