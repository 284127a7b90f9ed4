"""The settings of a run, parsed and validated before anything is started."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadriga.cli.errors import CommandError, about
from quadriga.cli.parsing import LIMITS, check_within
from quadriga.cli.serving.addresses import OFF, Address, address

if TYPE_CHECKING:
    from quadriga.cli.serving.kubernetes_settings import KubernetesSettings

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate with its chain, its key, and the authority of client
    certificates."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run. `grpc` and `http` are None if that port is disabled."""

    grpc: Address | None
    http: Address | None
    config: Path | None
    demo: bool
    demo_speed: float
    ui: Path | None
    tls: TlsFiles | None
    insecure: bool
    tokens: Path | None
    require_token_for_reads: bool
    log_level: str
    log_format: str
    journal: Path | None
    journal_bytes: int
    client_clock: bool
    grace_s: float
    health_delay_s: float
    ports_file: Path | None
    max_resource_managers: int
    max_streams: int
    max_message_bytes: int
    max_items: int
    max_rate: int
    max_item_rate: int
    max_backlog_bytes: int
    max_ended: int
    max_ended_bytes: int
    max_rejected: int
    max_rejected_bytes: int
    max_connections: int
    max_grpc_connections: int
    max_connections_per_client: int
    max_grpc_connections_per_client: int
    max_former_users: int
    max_gang_members: int
    max_text: int
    max_tags: int
    max_tag_characters: int
    max_groups: int
    max_types: int
    max_known_types: int
    max_devices: int
    max_group_answers: int
    #: s
    group_deadline: int
    #: of ``quadriga kubernetes``
    kubernetes: KubernetesSettings | None = None


def settings_of(arguments: Namespace, kubernetes: KubernetesSettings | None = None) -> Settings:
    """The settings from the options. Raises `CommandError` for invalid or unsafe ones."""
    client_clock = arguments.clock == "client"
    settings = Settings(
        grpc=address("--grpc", arguments.grpc),
        http=address("--http", OFF if client_clock else arguments.http),
        config=arguments.config,
        demo=arguments.demo,
        demo_speed=arguments.demo_speed,
        ui=arguments.ui,
        tls=_tls(arguments),
        insecure=arguments.insecure,
        tokens=arguments.tokens,
        require_token_for_reads=arguments.require_token_for_reads,
        log_level=arguments.log_level,
        log_format=arguments.log_format,
        journal=arguments.journal,
        journal_bytes=arguments.journal_size * _MIB,
        client_clock=client_clock,
        grace_s=arguments.grace,
        health_delay_s=arguments.health_delay,
        ports_file=arguments.ports_file,
        **_limits(arguments),
        kubernetes=kubernetes,
    )
    _check(settings)
    return settings


def _limits(arguments: Namespace) -> dict[str, int]:
    """The limits by the names of their fields; sizes in bytes."""
    found = {}
    for limit in LIMITS:
        value = getattr(arguments, limit.name)
        check_within(limit.option, limit.low, limit.high, value)
        if limit.unit == "MIB":
            found[limit.name.removesuffix("_size") + "_bytes"] = value * _MIB
        else:
            found[limit.name] = value
    return found


def _check(settings: Settings) -> None:
    if settings.client_clock and settings.grpc is None:
        raise _wrong("--clock client needs gRPC: the time comes from there")
    if settings.grpc is None and settings.http is None and settings.kubernetes is None:
        raise _wrong("--grpc off and --http off leave nothing to serve")
    for name, low, high, value in (
        ("--demo-speed", 0.1, 10_000, settings.demo_speed),
        ("--grace", 0, 3600, settings.grace_s),
        ("--health-delay", 0.1, 3600, settings.health_delay_s),
        ("--journal-size", 1, 1 << 20, settings.journal_bytes // _MIB),
    ):
        check_within(name, low, high, value)
    if settings.demo and settings.config is not None:
        raise _wrong("--demo has its own queues: leave --config out")
    if settings.client_clock and settings.demo:
        raise _wrong("--demo lives in real time: it has no use for --clock client")
    if settings.ui is not None and not (settings.ui / "index.html").is_file():
        raise _wrong(
            f"--ui {settings.ui}: there is no index.html (give the dist folder of the web UI)"
        )
    if settings.require_token_for_reads and settings.tokens is None and not _identifies(settings):
        raise _wrong("--require-token-for-reads needs --tokens or --tls-client-ca")
    _check_exposure(settings)


def _check_exposure(settings: Settings) -> None:
    """Require encryption and authentication beyond loopback, unless the options waive them."""
    if settings.insecure:
        return
    for name, where in (("--grpc", settings.grpc), ("--http", settings.http)):
        if where is None or where.is_loopback:
            continue
        if settings.tls is None:
            raise _wrong(
                f"{name} {where} is beyond loopback and would be plaintext:"
                " give --tls-cert and --tls-key, or --insecure if that is what you want"
            )
        if settings.tokens is None and not _identifies(settings):
            raise _wrong(
                f"{name} {where} is beyond loopback and would let anybody change anything:"
                " give --tokens or --tls-client-ca, or --insecure if that is what you want"
            )


def _identifies(settings: Settings) -> bool:
    return settings.tls is not None and settings.tls.client_ca is not None


def _tls(arguments: Namespace) -> TlsFiles | None:
    certificate, key, ca = arguments.tls_cert, arguments.tls_key, arguments.tls_client_ca
    if certificate is None and key is None and ca is None:
        return None
    if certificate is None or key is None:
        raise _wrong("--tls-cert and --tls-key belong together, and --tls-client-ca needs them")
    for name, path in (("--tls-cert", certificate), ("--tls-key", key), ("--tls-client-ca", ca)):
        if path is not None:
            with about(f"serve: {name} {path}"):
                path.read_bytes()
    return TlsFiles(certificate, key, ca)


def _wrong(reason: str) -> CommandError:
    return CommandError(f"serve: {reason}")
