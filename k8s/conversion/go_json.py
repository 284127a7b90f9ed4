"""JSON in annotations, decoded with a schema as Go decodes it into a struct (K61).

Field names match case-insensitively and come out as the API spells them; the last of several wins; ``null``
counts as absent. Unknown fields are dropped and noted. A value of another type is an error that names the
field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from quadriga.k8s.conversion.problems import shown

#: reads the value at a path and appends unknown fields to the list
Reader = Callable[[Any, str, list[str]], Any]


def decode(source: str) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        return msgspec.json.decode(source)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None


def text(value: Any, path: str, unknown: list[str]) -> str:
    """Return the text. Raises ValueError for a value of another type."""
    if not isinstance(value, str):
        raise ValueError(f"{path} is not a text")
    return value


def _whole(bits: int) -> Reader:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def read(value: Any, path: str, unknown: list[str]) -> int:
        """Return the integer. Raises ValueError for another type, or if it does not fit."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"{path} is not a whole number of {bits} bits")
        return value

    return read


int32: Final = _whole(32)
int64: Final = _whole(64)


@dataclass(frozen=True, slots=True)
class Items:
    """A list whose items are all read in the same way."""

    item: Reader

    def __call__(self, value: Any, path: str, unknown: list[str]) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError(f"{path} is not a list")
        return [self.item(each, f"{path}[{index}]", unknown) for index, each in enumerate(value)]


@dataclass(frozen=True, slots=True)
class TextMap:
    """An object with arbitrary names whose values are all read in the same way. ``null`` is the zero value."""

    item: Reader
    zero: str = ""

    def __call__(self, value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{path} is not an object")
        return {
            name: self.zero if each is None else self.item(each, f"{path}.{name}", unknown)
            for name, each in value.items()
        }


class Fields:
    """An object with these fields."""

    def __init__(self, **fields: Reader) -> None:
        self._fields: Mapping[str, tuple[str, Reader]] = {
            name.lower(): (name, read) for name, read in fields.items()
        }

    def __call__(self, value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{path} is not an object")
        found: dict[str, Any] = {}
        for written, each in value.items():
            known = self._fields.get(written.lower())
            if known is None:
                unknown.append(f"{path}.{shown(written)}")
            elif each is not None:
                name, read = known
                found[name] = read(each, f"{path}.{name}", unknown)
        return found
