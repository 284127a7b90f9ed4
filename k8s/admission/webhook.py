"""The webhook, which the API server calls before it writes pods, workloads and our ConfigMaps (K158, K165).

    async with serve(Webhook(known, ask_core), context, host="0.0.0.0") as port:
        ...

If anything fails here, the API server proceeds as if it had not asked.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from quadriga.k8s.admission.known import Known
from quadriga.k8s.admission.reviews import BadReview, Review, answer, read_object, read_review
from quadriga.k8s.admission.rules import Decision, Request, Surroundings, decide
from quadriga.k8s.admission.validators import Validator
from quadriga.k8s.conversion.settings import CONFIGS_NAME, DEFAULTS_NAME
from quadriga.k8s.objects import ConfigMap
from quadriga.k8s.tuning import TUNING
from quadriga.si.open_connections import OpenConnections, listen

_log = logging.getLogger("quadriga.kubernetes.admission")

PORT: Final = 9089


class Webhook:
    """Answers reviews, on one event loop."""

    def __init__(self, known: Known, validate: Validator) -> None:
        self._known = known
        self._validate = validate

    async def mutate(self, review: Review) -> Decision:
        """Decide about a pod or workload. Raises `BadReview`."""
        if review.sub_resource:
            return Decision()
        found, known = read_object(review.object) or {}, self._known
        spec = found.get("spec")
        named = spec.get("priorityClassName") if isinstance(spec, dict) else None
        request = Request(
            review.operation,
            review.resource.resource,
            review.namespace,
            review.user_info.username,
            review.user_info.groups or (),
            found,
            read_object(review.old_object),
        )
        around = Surroundings(
            known.settings,
            known.own_namespace,
            await known.namespace(review.namespace),
            await known.priority_class(named) if isinstance(named, str) else None,
        )
        return decide(request, around)

    async def validate_configuration(self, review: Review) -> Decision:
        """Decide about a ConfigMap, together with the other one. Raises `BadReview`."""
        if review.operation not in ("CREATE", "UPDATE") or not self._is_own(review):
            return Decision()
        try:
            found = msgspec.json.decode(review.object, type=ConfigMap)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadReview(f"the ConfigMap cannot be read: {error}") from None
        reading = self._known.with_change(found)
        if reading.settings is None:
            return Decision(denied="; ".join(reading.errors))
        if not reading.settings.queues:
            return Decision()
        if reason := await self._validate(reading.settings.queues):
            return Decision(denied=f"{reading.settings.policy_group}.yaml: {reason}")
        return Decision()

    def _is_own(self, review: Review) -> bool:
        own = review.namespace == self._known.own_namespace
        return own and review.name in (DEFAULTS_NAME, CONFIGS_NAME)

    def application(self) -> web.Application:
        """Return the web application with its routes."""
        application = web.Application(client_max_size=TUNING.review_bytes)
        application.router.add_post("/mutate", _handler(self.mutate))
        application.router.add_post("/validate-conf", _handler(self.validate_configuration))
        application.router.add_get("/health", _health)
        return application


def _handler(
    decide_on: Callable[[Review], Awaitable[Decision]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        """Handle a request with a review."""
        try:
            review = read_review(await request.read())
            decision = await decide_on(review)
        except BadReview as error:
            return web.Response(status=400, text=f"{error}\n")
        if decision.denied:
            _log.info(
                "denied: %s of %s %s/%s by %s: %s",
                *(review.operation, review.resource.resource, review.namespace),
                *(review.name or "a new one", review.user_info.username, decision.denied),
            )
        return web.Response(body=answer(review, decision), content_type="application/json")

    return handle


async def _health(request: web.Request) -> web.Response:
    return web.Response(text="OK\n")


@asynccontextmanager
async def serve(
    webhook: Webhook,
    context: ssl.SSLContext,
    *,
    host: str | None = None,
    port: int = PORT,
    connections: tuple[int, int] = (1000, 500),
) -> AsyncGenerator[int]:
    """Serve with TLS; yield the port, which the system chooses for 0. Raises OSError if it is taken.

    ``host`` ``None`` means all addresses. ``context`` may get another certificate while it serves.
    ``connections`` are the limits in total and from one address: a new connection beyond closes the oldest.
    """
    runner = web.AppRunner(webhook.application(), access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        bounds = OpenConnections("admission webhook", *connections)
        listening = await listen(runner.server, bounds, host, port, context)
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()
    finally:
        await runner.cleanup()
