"""The ``event.*`` keys of a resource manager's extraConfig (2.2.3). Changes take effect at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: the largest value that a key accepts
_LARGEST = 2**31 - 1
#: the largest value that is used: larger ones are reduced to it, because they decide about memory
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class EventSettings:
    """At most ``request_capacity`` records wait for the next push, and ``ring_capacity`` are kept in the
    ring buffer; one REST answer has at most ``response_size`` (YuniKorn 1.6 and later)."""

    tracking: bool = True
    request_capacity: int = 1000
    ring_capacity: int = 100_000
    max_streams: int = 100
    max_streams_per_host: int = 15
    response_size: int = 10_000

    @classmethod
    def read(cls, extra: Mapping[str, str]) -> EventSettings:
        """The settings of an extraConfig in which ``problems`` found nothing."""
        values = {
            field: min(int(extra[key]), _MOST) for key, (field, _) in _SIZES.items() if key in extra
        }
        return cls(tracking=extra.get(_TRACKING, "true").lower() == "true", **values)


_TRACKING = "event.trackingEnabled"

#: key: field, least value
_SIZES = {
    "event.requestCapacity": ("request_capacity", 1),
    "event.ringBufferCapacity": ("ring_capacity", 1),
    "event.maxStreams": ("max_streams", 0),
    "event.maxStreamsPerHost": ("max_streams_per_host", 0),
    "event.RESTResponseSize": ("response_size", 1),
}


def problems(extra: Mapping[str, str]) -> dict[str, str]:
    """The problems of the values of ``event.*`` keys, by key."""
    found = {}
    if extra.get(_TRACKING, "true").lower() not in ("true", "false"):
        found[_TRACKING] = f"{extra[_TRACKING]!r} is neither true nor false"
    for key, (_, least) in _SIZES.items():
        text = extra.get(key, str(least))
        whole = text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST))
        if not whole or not least <= int(text) <= _LARGEST:
            found[key] = f"{text!r} is not a whole number from {least} to {_LARGEST}"
    return found
