"""The webhook with everything that it needs: its knowledge of the cluster, its certificate, its registration.

It runs beside the shim in one process, or alone. In its own process it asks a core elsewhere to validate
configurations.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from quadriga.base.tls import bare_server_context
from quadriga.k8s.admission.keeper import (
    CertificateError,
    Keeper,
    MountedCertificate,
    OwnCertificate,
    Source,
)
from quadriga.k8s.admission.known import Known
from quadriga.k8s.admission.registration import (
    Service,
    Url,
    configurations,
    register,
    server_version,
)
from quadriga.k8s.admission.validators import Validator, elsewhere
from quadriga.k8s.admission.webhook import PORT, Webhook, serve
from quadriga.k8s.objects import ConfigMap, Namespace, PriorityClass
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.reflector import Reflector, Timing
from quadriga.k8s.transport.requester import NoAnswer
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.admission")


@dataclass(frozen=True, slots=True)
class Plan:
    """How the webhook is served."""

    own_namespace: str
    #: ``None`` for all addresses
    host: str | None = None
    port: int = PORT
    #: certificate with chain, and key, renewed by another program, with ``ca.crt`` beside the certificate;
    #: ``None`` for our own
    mounted: tuple[Path, Path] | None = None
    #: ``https://host:port`` at which the API server reaches the webhook, if not by the service
    url: str = ""
    #: limits of open connections: in total, and from one address
    connections: tuple[int, int] = (1000, 500)


async def run(
    client: Client,
    plan: Plan,
    timing: Timing,
    *,
    validate: Validator | None = None,
    ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve until cancelled. ``ready(port)`` is called once it serves and is registered.

    ``validate`` validates configurations; by default the core behind the setting's address does. Raises OSError
    if the port is taken.
    """
    known = Known(client, plan.own_namespace)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        validate = validate or elsewhere(session, lambda: known.settings.scheduler_service_address)
        tasks = await _watch(client, plan, timing, known)
        stack.push_async_callback(_cancel, tasks)
        context = bare_server_context()
        keeper = Keeper(_source(client, plan, known), context, _registrar(client, plan, known))
        while not await _started(keeper):
            await timing.sleep(TUNING.admission_retry_s)
        serving = serve(
            Webhook(known, validate),
            context,
            host=plan.host,
            port=plan.port,
            connections=plan.connections,
        )
        port = await stack.enter_async_context(serving)
        await keeper.refresh()
        _log.info("the admission webhook serves at port %d", port)
        ready(port)
        tasks.append(asyncio.create_task(_keep(keeper, timing)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def _watch(
    client: Client, plan: Plan, timing: Timing, known: Known
) -> list[asyncio.Task[None]]:
    """Watch what decisions depend on. Return when the settings are known."""
    synced = asyncio.Event()
    maps = f"/api/v1/namespaces/{quote(plan.own_namespace)}/configmaps"
    reflectors: list[Reflector[Any]] = [
        Reflector(client, maps, ConfigMap, known.announce, timing, synced=synced.set),
        Reflector(client, "/api/v1/namespaces", Namespace, known.announce, timing),
        Reflector(
            client,
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            PriorityClass,
            known.announce,
            timing,
        ),
    ]
    tasks = [asyncio.create_task(each.run()) for each in reflectors]
    try:
        await synced.wait()
    except asyncio.CancelledError:
        await _cancel(tasks)
        raise
    return tasks


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _started(keeper: Keeper) -> bool:
    try:
        await keeper.start()
    except CertificateError as error:
        _log.warning("the webhook has no certificate yet: %s", error)
        return False
    return True


async def _keep(keeper: Keeper, timing: Timing) -> None:
    while True:
        await timing.sleep(TUNING.certificate_check_s)
        await keeper.refresh()


def _source(client: Client, plan: Plan, known: Known) -> Source:
    if plan.mounted is not None:
        chain, key = plan.mounted
        return MountedCertificate(chain, key, chain.with_name("ca.crt"))

    def names() -> list[str]:
        """Return the names in the certificate."""
        service = f"{known.settings.admission_service_name}.{plan.own_namespace}.svc"
        host = urlsplit(plan.url).hostname if plan.url else None
        return [service, host] if host else [service]

    return OwnCertificate(client, plan.own_namespace, names, lambda: datetime.now(UTC))


def _registrar(client: Client, plan: Plan, known: Known) -> Any:
    async def registrar(bundle: bytes | None) -> str:
        """Register the webhook; return why that failed, or ""."""
        settings = known.settings
        target: Service | Url = (
            Url(plan.url)
            if plan.url
            else Service(plan.own_namespace, settings.admission_service_name)
        )
        try:
            version = await server_version(client)
        except NoAnswer as error:
            return str(error)
        wanted = configurations(settings, plan.own_namespace, target, version, bundle)
        return await register(client, wanted)

    return registrar
