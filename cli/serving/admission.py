"""The admission webhook: beside the shim, or in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from argparse import Namespace
from typing import Any

from quadriga.cli.errors import FOUND, INTERRUPTED, CommandError
from quadriga.cli.parsing import HTTP_LIMITS, check_within
from quadriga.cli.serving import logs
from quadriga.cli.serving.accept_errors import AcceptErrors
from quadriga.cli.serving.addresses import Address, address
from quadriga.cli.serving.rights import logged_in
from quadriga.k8s.admission.process import Plan
from quadriga.k8s.admission.process import run as serve
from quadriga.k8s.admission.validators import Validator, ask_core
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Login
from quadriga.k8s.transport.reflector import RealTiming

_log = logging.getLogger("quadriga.serve")


def _limits() -> Limits:
    return Limits(100, 100, 16, clock=time.monotonic_ns)


def plan_of(arguments: Namespace, listen: str, namespace: str, option: str) -> Plan:
    """How the webhook is served. Raises `CommandError`."""
    where = address(option, listen)
    if where is None:
        raise CommandError(f"kubernetes: {option} off: leave it out")
    certificate, key = arguments.admission_cert, arguments.admission_key
    if (certificate is None) != (key is None):
        raise CommandError("kubernetes: --admission-cert and --admission-key belong together")
    url = arguments.admission_url or ""
    if url and not url.startswith("https://"):
        raise CommandError(f"kubernetes: --admission-url {url}: it begins with https://")
    mounted = (certificate, key) if certificate is not None else None
    connections = connections_of(arguments)
    return Plan(namespace, where.host, where.port, mounted, url.rstrip("/"), connections)


def connections_of(arguments: Namespace) -> tuple[int, int]:
    """The bounds of a port for HTTP, of all and of one address. Raises `CommandError`."""
    for limit in HTTP_LIMITS:
        check_within(limit.option, limit.low, limit.high, getattr(arguments, limit.name))
    return arguments.max_connections, arguments.max_connections_per_client


async def serve_alone(
    login: Login,
    plan: Plan,
    ready: asyncio.Future[int] | None = None,
    validate: Validator | None = None,
) -> None:
    """Serve until cancelled, with a connection of its own. ``ready`` gets the port. Raises OSError."""

    def serves(port: int) -> None:
        if ready is not None and not ready.done():
            ready.set_result(port)

    async with Client(login, _limits()) as client:
        await serve(client, plan, RealTiming(), validate=validate, ready=serves)


def serve_webhook(arguments: Namespace, namespace: str) -> int:
    """Serve the webhook until a signal arrives. Raises `CommandError`."""
    plan = plan_of(arguments, arguments.listen, namespace, "--listen")
    login = logged_in(arguments.kubeconfig, arguments.context)
    logs.set_up(arguments.log_level, arguments.log_format)
    where = Address(plan.host or "0.0.0.0", plan.port)
    try:
        return asyncio.run(_until_stopped(login, plan, where))
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"kubernetes: cannot listen on {where}: {reason}", FOUND) from None


async def _until_stopped(login: Login, plan: Plan, where: Address) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(AcceptErrors())
    stop: asyncio.Future[int] = loop.create_future()
    ready: asyncio.Future[int] = loop.create_future()

    def stopped(code: int) -> None:
        if not stop.done():
            stop.set_result(code)

    loop.add_signal_handler(signal.SIGTERM, stopped, 0)
    loop.add_signal_handler(signal.SIGINT, stopped, INTERRUPTED)

    def serves(done: asyncio.Future[int]) -> None:
        if not done.cancelled():
            _log.info("ready: the webhook serves at https://%s", where.at(done.result()))

    ready.add_done_callback(serves)
    # the check of queues needs no scheduler that runs
    serving = asyncio.ensure_future(serve_alone(login, plan, ready, ask_core))
    ends: list[asyncio.Future[Any]] = [stop, serving]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not stop.done():
        serving.result()  # raises what ended it
        return FOUND
    ready.cancel()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    _log.info("stopped")
    return stop.result()
