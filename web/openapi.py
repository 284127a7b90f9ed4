"""The OpenAPI document. It is made from the routes themselves, so it describes every operation there is.

``python -m quadriga.web.print_openapi`` prints it; docs/openapi.json is that text.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from types import NoneType, UnionType
from typing import Any, Final, NotRequired, Required, Union, get_args, get_origin, is_typeddict
from typing import get_type_hints as hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from quadriga.web.resource import Operation, Resource
from quadriga.web.responses import JSON, ErrorObject, encode, text_response

_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1},
    float: {"type": "number"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Any: {},
    object: {},
}


class Schemas:
    """Converts types to JSON schemas and collects the named ones, so the fields of an object are declared once.

    A ``TypedDict`` becomes an object schema without additional fields, listed in the components by its name,
    with its docstring. Mappings, such as resources, have values of one type.
    """

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type. Raises ``TypeError`` for a type that JSON cannot represent."""
        if isinstance(kind, Mapping):  # is a schema already
            return dict(kind)
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if is_typeddict(kind):
            return self._object(kind)
        origin, args = get_origin(kind), get_args(kind)
        if origin is list:
            return {"type": "array", "items": self.of(args[0])}
        if origin in (dict, Mapping) and args[0] is str:
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(each) for each in args]}
        raise TypeError(f"{kind!r} has no form in JSON")

    def _object(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__
        reference = {"$ref": f"#/components/schemas/{name}"}
        if name in self.components:
            return reference
        made = self.components[
            name
        ] = {}  # registered first, as objects may contain others of their own kind
        about = " ".join((inspect.getdoc(kind) or "").split())
        if about and not about.startswith("dict("):
            made["description"] = about
        made["type"] = "object"
        # Not `__required_keys__`: it ignores annotations that are strings.
        fields = hints(kind, include_extras=True)
        made["properties"] = {field: self.of(_bare(each)) for field, each in fields.items()}
        made["required"] = sorted(
            f for f, each in fields.items() if get_origin(each) is not NotRequired
        )
        made["additionalProperties"] = False
        return reference


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) in (NotRequired, Required) else kind


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
