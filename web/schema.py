"""JSON schemas derived from Python types, so the fields of an object are declared only once.

A ``TypedDict`` becomes an object schema without additional fields. It is listed in the components
by its name, with its docstring. Mappings, such as resources, have values of one type.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, NotRequired, Required, Union, get_args, get_origin, is_typeddict
from typing import get_type_hints as hints

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
    """Converts types to schemas and collects the named ones."""

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
