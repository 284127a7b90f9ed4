"""Annotations of a namespace that configure the queue of its applications (K42, K43)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import msgspec

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.quantities import CPU, VCORE, QuantityError, amount
from quadriga.k8s.conversion.resources import Amounts
from quadriga.k8s.objects import Namespace
from quadriga.si.constants import (
    APP_TAG_NAMESPACE_RESOURCE_GUARANTEED,
    APP_TAG_NAMESPACE_RESOURCE_MAX_APPS,
    APP_TAG_NAMESPACE_RESOURCE_QUOTA,
)

_MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class NamespaceTags:
    """Tags for applications of the namespace, and problems of the namespace."""

    tags: Mapping[str, str]
    problems: tuple[Problem, ...] = ()


_NONE: Final = NamespaceTags(MappingProxyType({}))


def tags_of(namespace: Namespace | None) -> NamespaceTags:
    """Return the tags. A value that cannot be read is dropped as a whole."""
    if namespace is None or not namespace.metadata.annotations:
        return _NONE
    annotations = namespace.metadata.annotations
    tags: dict[str, str] = {}
    problems: list[Problem] = []

    def resource(tag: str, key: str) -> None:
        """Read an annotation with resources into a tag."""
        text = annotations.get(key)
        if not text:
            return
        try:
            tag_value = _rendered(_amounts(text))
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            problems.append(_problem(f"annotation {key} is ignored: {error}: {shown(text)}"))
            return
        if tag_value:
            tags[tag] = tag_value

    resource(APP_TAG_NAMESPACE_RESOURCE_QUOTA, keys.NAMESPACE_QUOTA)
    _deprecated_quota(annotations, tags, problems)
    resource(APP_TAG_NAMESPACE_RESOURCE_GUARANTEED, keys.NAMESPACE_GUARANTEED)
    text = annotations.get(keys.NAMESPACE_MAX_APPS, "").strip()
    if text:
        if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
            tags[APP_TAG_NAMESPACE_RESOURCE_MAX_APPS] = text
        else:
            problems.append(
                _problem(
                    f"annotation {keys.NAMESPACE_MAX_APPS} is ignored: "
                    f"{shown(text)} is not a whole number of at least 0"
                )
            )
    if parent := annotations.get(keys.PARENT_QUEUE):
        tags[keys.PARENT_QUEUE_TAG] = parent
    return NamespaceTags(tags, tuple(problems)) if tags or problems else _NONE


def flag(namespace: Namespace | None, key: str) -> bool | None:
    """Return an annotation that is ``true`` or ``false``, ``None`` for anything else (K160)."""
    if namespace is None:
        return None
    return {"true": True, "false": False}.get(namespace.metadata.annotations.get(key, ""))


def _deprecated_quota(
    annotations: Mapping[str, str], tags: dict[str, str], problems: list[Problem]
) -> None:
    """Read the deprecated quota of CPU and memory (K42)."""
    old = {
        key: (kind, annotations[key])
        for key, kind in ((keys.NAMESPACE_MAX_CPU, CPU), (keys.NAMESPACE_MAX_MEMORY, "memory"))
        if annotations.get(key)
    }
    if not old:
        return
    names = " and ".join(old)
    if annotations.get(keys.NAMESPACE_QUOTA):
        problems.append(
            _problem(f"annotation {names} is ignored: {keys.NAMESPACE_QUOTA} is the quota")
        )
        return
    try:
        amounts = _checked(dict(old.values()))
    except ValueError as error:
        problems.append(_problem(f"annotation {names} is ignored: {error}"))
        return
    if rendered := _rendered(amounts):
        tags[APP_TAG_NAMESPACE_RESOURCE_QUOTA] = rendered


def _amounts(text: str) -> Amounts:
    found = msgspec.json.decode(text)
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object of resources and quantities")
    return _checked(found)


def _checked(quantities: Mapping[str, Any]) -> Amounts:
    amounts: Amounts = {}
    for name, quantity in quantities.items():
        if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
            raise ValueError(f"the quantity of {shown(name)} is neither a text nor a number")
        try:
            value = amount(name, quantity)
        except QuantityError as error:
            raise ValueError(f"{shown(name)}: {error}") from None
        if value < 0:
            raise ValueError(f"the quantity of {shown(name)} is negative")
        kind = VCORE if name == CPU else name
        if kind in amounts:
            raise ValueError(f"{CPU} and {VCORE} are the same")
        amounts[kind] = value
    return amounts


def _rendered(amounts: Amounts) -> str:
    """Return the amounts as JSON of an SI Resource, or "" if all are zero."""
    if not any(amounts.values()):
        return ""
    resources = {name: {"value": value} for name, value in sorted(amounts.items())}
    return msgspec.json.encode({"resources": resources}).decode()


def _problem(note: str) -> Problem:
    return Problem("Scheduling", "Scheduling", note)
