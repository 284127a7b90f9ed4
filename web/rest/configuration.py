"""The queue configuration: reading, validating and changing it (2.14)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from quadriga.core.config import checksum
from quadriga.core.views import as_yaml
from quadriga.si import RequestError, UpdateConfigurationRequest
from quadriga.web.guard import authorize_change, same_origin
from quadriga.web.resource import Body, Operation, Query, Resource, read_body
from quadriga.web.responses import JSON, YAML, Refusal, json_response, text_response
from quadriga.web.rest.objects import ConfigurationObject, ReloadObject, ValidationObject
from quadriga.web.rest.validation import ValidationQueue, verdict

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views.configuration import Configured
    from quadriga.web.site import Site

#: maximum size of a configuration in bytes; the same as of a ConfigMap, which YuniKorn uses
MAX_BYTES: Final = 1 << 20

_RM: Final = Query(
    "rmID", {"type": "string"}, "The resource manager, by default the first by name."
)
_WHOSE: Final = Query(
    "rmID",
    {"type": "string"},
    "The resource manager to configure; absent: all that registered without a configuration of their own.",
)
_TEXT: Final = Body(
    (
        "application/x-yaml",
        "application/yaml",
        "application/json",
        "text/plain",
        "application/octet-stream",
    ),
    MAX_BYTES,
    "The configuration, in the form of the file or of GET.",
)


def resources(site: Site) -> list[Resource]:
    validations = ValidationQueue()

    async def running(rm_id: str | None) -> Configured:
        def look(scheduler: Scheduler) -> Configured:
            if rm_id is not None and all(r.rm_id != rm_id for r in scheduler.resource_managers()):
                raise Refusal(404, "Resource manager not found")
            return site.views.configured(rm_id)

        return await site.reader.read(("config", rm_id), look)

    async def shown(request: Request) -> Response:
        wants_json = "application/json" in request.headers.get("accept", "").lower()
        configured = await running(request.query_params.get("rmID"))
        found = await asyncio.to_thread(configured.as_object)
        if wants_json:
            return json_response(found)
        return text_response(await asyncio.to_thread(as_yaml, found), YAML)

    async def checked(request: Request) -> Response:
        same_origin(request.scope, "have anything checked")
        text = _decoded(await read_body(request, MAX_BYTES))
        if text is None:
            return json_response({"allowed": False, "reason": "the configuration is not UTF-8"})
        return json_response(await validations.call(verdict, text))

    async def changed(request: Request) -> Response:
        rm_id = request.query_params.get("rmID", "")
        who = authorize_change(site, request.scope, rm_id)
        if not rm_id and not who.admin:
            raise Refusal(403, f"{who.name} may not change the queues of everybody: name an rmID")
        text = _decoded(await read_body(request, MAX_BYTES))
        if text is None:
            raise Refusal(400, "the configuration is not UTF-8")
        if not text.strip():
            raise Refusal(400, "the configuration is empty")
        extra = await validations.call(_settings, site, text)
        if extra and not rm_id and extra != (await running(None)).extra:
            raise Refusal(400, "extra: these are one resource manager's settings: name its rmID")
        await validations.call(asyncio.to_thread, _change, site, rm_id, text, extra)
        answer: ReloadObject = {"rmID": rm_id, "checksum": checksum(text)}
        return json_response(answer)

    config = {
        "GET": Operation(
            shown,
            "The configuration in force, as YAML, or as JSON on request (`Accept`).",
            {YAML: ConfigurationObject, JSON: ConfigurationObject},
            (404,),
            (_RM,),
        ),
        "PUT": Operation(
            changed,
            "Replace the configuration of the queues, all or nothing.",
            {JSON: ReloadObject},
            (400, 401, 403, 404, 408, 413, 503),
            (_WHOSE,),
            _TEXT,
            changes=True,
        ),
    }
    check = Operation(
        checked,
        "Validate a configuration without changing anything.",
        {JSON: ValidationObject},
        (403, 408, 413, 503),
        body=_TEXT,
    )
    return [
        Resource("/ws/v1/config", config, "configuration"),
        Resource("/ws/v1/validate-conf", {"POST": check}, "configuration"),
    ]


def _decoded(body: bytes) -> str | None:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


async def _settings(site: Site, text: str) -> dict[str, str]:
    """The resource manager's settings from the text. Raises ``Refusal`` with its problems before
    the scheduler spends time on it."""
    found = await verdict(text)
    if not found["allowed"]:
        raise Refusal(400, found["reason"])
    # caches the parsed text for the service, which parses the same text next
    configuration = await asyncio.to_thread(site.service.read_configuration, "PUT", text)
    return configuration.extra


def _change(site: Site, rm_id: str, text: str, extra: dict[str, str]) -> None:
    """Apply the change. Raises ``RequestError`` with all problems, and then changes nothing."""
    if not rm_id:
        site.service.configure(text)
        return
    update = UpdateConfigurationRequest(rmID=rm_id, config=text, extraConfig=extra)
    try:
        site.service.update_configuration(update)
    except RequestError as error:
        if error.field == "rmID":
            raise Refusal(404, "Resource manager not found") from None
        raise
