"""The OpenAPI document. It is made from the routes themselves, so it describes every operation there is.

``python -m quadriga.web.print_openapi`` prints it; docs/openapi.json is that text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from quadriga.web.resource import Operation, Resource
from quadriga.web.responses import JSON, ErrorObject, encode, text_response
from quadriga.web.schema import Schemas

PATH: Final = "/ws/v1/openapi.json"

_ABOUT: Final = """\
The state of the scheduler, in the form of YuniKorn's REST API: paths, parameters and field names are
YuniKorn's, and every object has the fields of all of its versions from 1.5 on. Resources map a type to
an integer, vcore in milli, memory in bytes. Times are ns since the epoch. Lists and maps are empty,
never null."""

_REASONS: Final[Mapping[int, str]] = {
    400: "A parameter is missing or invalid.",
    401: "The bearer token is missing or wrong.",
    403: "The caller may not do this.",
    404: "The object does not exist.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    500: "The feature is disabled, or the request failed.",
    503: "The scheduler is busy, or too many requests wait.",
}


def routes(known: Iterable[BaseRoute]) -> list[Resource]:
    """The route that serves the document. The document describes the known routes and this one."""

    async def answer(request: Request) -> Response:
        return text_response(text, JSON)

    own = Operation(answer, "This document.", {JSON: {"type": "object"}})
    made = [Resource(PATH, {"GET": own}, "description")]
    text = encode(document([*known, *made]))
    return made


def document(known: Iterable[BaseRoute]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of every ``Resource`` among these routes, sorted by path."""
    schemas = Schemas()
    resources = sorted((r for r in known if isinstance(r, Resource)), key=lambda each: each.path)
    paths = {
        each.path: {
            **_in_path(each),
            **{
                method.lower(): _operation(schemas, each, method, operation)
                for method, operation in sorted(each.operations.items())
            },
        }
        for each in resources
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Quadriga",
            "version": version("quadriga"),
            "description": " ".join(_ABOUT.split()),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def as_text(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _in_path(resource: Resource) -> dict[str, Any]:
    described = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, **resource.schemas.get(name, {})},
        }
        for name in resource.parameters
    ]
    return {"parameters": described} if described else {}


def _operation(
    schemas: Schemas, resource: Resource, method: str, operation: Operation
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tags": [resource.tag],
        "operationId": _name(method, resource.path),
        "description": operation.about,
    }
    if operation.query:
        found["parameters"] = [
            {
                "name": each.name,
                "in": "query",
                "required": each.required,
                "description": each.about,
                "schema": dict(each.schema),
            }
            for each in operation.query
        ]
    if operation.body is not None:
        found["requestBody"] = {
            "required": True,
            "description": f"{operation.body.about} At most {operation.body.limit} bytes.",
            # Any text is allowed here; the handler validates it.
            "content": {media: {"schema": {}} for media in operation.body.media},
        }
    if operation.changes:
        found["security"] = [{"bearer": []}]
    found["responses"] = {
        str(operation.status): {
            "description": operation.about,
            "content": {
                media.partition(";")[0]: {
                    "schema": schemas.of(kind if kind is not None else str),
                }
                for media, kind in operation.returns.items()
            },
        },
        **{str(status): _error(schemas, status) for status in sorted(operation.errors)},
    }
    return found


def _error(schemas: Schemas, status: int) -> dict[str, Any]:
    schema = schemas.of(ErrorObject)
    return {"description": _REASONS[status], "content": {"application/json": {"schema": schema}}}


def _name(method: str, path: str) -> str:
    """The operation's id: ``getPartitionQueues``."""
    words = [each.strip("{}").replace(".", "-") for each in path.removeprefix("/ws/v1").split("/")]
    parts = [part for word in words for part in word.split("-") if part]
    return method.lower() + "".join(part[0].upper() + part[1:] for part in parts)
