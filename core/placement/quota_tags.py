"""Quotas of a namespace, sent as tags of its applications (2.4, 2.20, I34)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.json_format import Parse, ParseError

from quadriga.si import Resource
from quadriga.si.constants import (
    APP_TAG_NAMESPACE_RESOURCE_GUARANTEED,
    APP_TAG_NAMESPACE_RESOURCE_MAX_APPS,
    APP_TAG_NAMESPACE_RESOURCE_QUOTA,
)


@dataclass(frozen=True, slots=True)
class QuotaTags:
    """The values of the tags; ``None`` or 0 without a tag. vcore in milli, memory in bytes."""

    max: dict[str, int] | None = None
    guaranteed: dict[str, int] | None = None
    max_applications: int = 0
    unreadable: tuple[str, ...] = ()
    """Names of tags with invalid values, which are ignored."""


def read_quota_tags(tags: Mapping[str, str]) -> QuotaTags:
    """Return the quotas in these tags, whose names are in lower case.

    Amounts are a Resource message in JSON, such as ``{"resources": {"memory": {"value": 10}}}``.
    They apply if none is negative and at least one is above zero.
    """
    unreadable: list[str] = []

    def amounts(name: str) -> dict[str, int] | None:
        text = tags.get(name)
        if not text:
            return None
        try:
            message = Parse(text, Resource(), ignore_unknown_fields=True)
        except ParseError:
            unreadable.append(name)
            return None
        found = {kind: quantity.value for kind, quantity in sorted(message.resources.items())}
        return found if any(found.values()) and min(found.values()) >= 0 else None

    def count(name: str) -> int:
        text = tags.get(name, "").strip()
        if not text:
            return 0
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            unreadable.append(name)
            return 0
        return int(text)

    return QuotaTags(
        max=amounts(APP_TAG_NAMESPACE_RESOURCE_QUOTA),
        guaranteed=amounts(APP_TAG_NAMESPACE_RESOURCE_GUARANTEED),
        max_applications=count(APP_TAG_NAMESPACE_RESOURCE_MAX_APPS),
        unreadable=tuple(unreadable),
    )
