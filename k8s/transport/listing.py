"""Pages of a list, and events of a watch, decoded to the fields that are used (K19, K25).

An object that cannot be decoded is dropped with a warning; the others of its page are kept.
See D316.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from sys import intern
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from quadriga.k8s.objects import Metadata, Pod

_log = logging.getLogger("quadriga.kubernetes.reflector")


class Object(Protocol):
    """An object of the API."""

    metadata: Metadata


T = TypeVar("T", bound=Object)

ERROR: Final = "ERROR"
BOOKMARK: Final = "BOOKMARK"


class _Struct(msgspec.Struct, rename="camel", gc=False):
    pass


class _ListMetadata(_Struct):
    resource_version: str = ""
    #: token of the next page
    continue_: str = msgspec.field(default="", name="continue")


class _RawPage(_Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[msgspec.Raw] | None = None


class _RawEvent(_Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Versioned(_Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


class WatchError(_Struct):
    """The object of an ERROR event: a ``Status``."""

    code: int = 0
    reason: str = ""
    message: str = ""


@dataclass(slots=True, eq=False)
class Page(Generic[T]):
    """A page of a list. ``version`` is the resource version of the list, ``rest`` the token of the next page
    ("" if none). Each of the ``items`` is decoded when it is taken."""

    version: str
    rest: str
    items: Iterator[T]


@dataclass(slots=True, eq=False)
class Event(Generic[T]):
    """An event of a watch. ``object`` is ``None`` for a bookmark and for what could not be decoded."""

    type: str
    version: str
    object: T | None


class Decoders(Generic[T]):
    """The decoders for one kind of object. ``within`` returns an object reduced to the bounds."""

    def __init__(self, kind: type[T], within: Callable[[T], T] | None = None) -> None:
        self.kind = kind
        self._within = within
        self._share: Callable[[Any], None] = _SHARE.get(kind, _share_metadata)
        event = msgspec.defstruct(
            f"{kind.__name__}Event", [("type", str), ("object", kind)], gc=False
        )
        self._event = msgspec.json.Decoder(event)
        self._item: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._raw_page = msgspec.json.Decoder(_RawPage)
        self._raw_event = msgspec.json.Decoder(_RawEvent)
        self._versioned = msgspec.json.Decoder(_Versioned)
        self._error = msgspec.json.Decoder(WatchError)

    def page(self, body: bytes) -> Page[T]:
        """Decode a page. Raises MsgspecError if it is no list."""
        found = self._raw_page.decode(body)
        items = self._one_by_one(found.items or [])
        return Page(found.metadata.resource_version, found.metadata.continue_, items)

    def _one_by_one(self, raws: list[msgspec.Raw]) -> Iterator[T]:
        for raw in raws:
            try:
                each = self._item.decode(raw)
            except msgspec.ValidationError as error:
                self._complain(bytes(raw), error)
                continue
            if self._within is not None:
                each = self._within(each)
            self._share(each)
            yield each

    def event(self, line: bytes) -> Event[T] | WatchError:
        """Decode an event. Raises MsgspecError if the line is no event."""
        try:
            found: Any = self._event.decode(line)
        except msgspec.ValidationError:
            return self._odd_event(line)
        if found.type == ERROR:
            return self._odd_event(line)
        version = found.object.metadata.resource_version
        if found.type == BOOKMARK:
            return Event(BOOKMARK, version, None)
        new = found.object if self._within is None else self._within(found.object)
        self._share(new)
        return Event(found.type, version, new)

    def _odd_event(self, line: bytes) -> Event[T] | WatchError:
        raw = self._raw_event.decode(line)
        if raw.type == ERROR:
            return self._error.decode(raw.object)
        version = self._versioned.decode(raw.object).metadata.resource_version
        if raw.type != BOOKMARK:
            try:
                self._item.decode(raw.object)
            except msgspec.ValidationError as error:
                self._complain(bytes(raw.object), error)
        return Event(raw.type, version, None)

    def _complain(self, raw: bytes, error: Exception) -> None:
        try:
            metadata = msgspec.json.decode(raw)["metadata"]
            name = f"{metadata.get('namespace', '')}/{metadata['name']}".lstrip("/")
        except (ValueError, KeyError, TypeError, AttributeError):
            name = repr(raw[:80])
        _log.warning("%s %s is left out: %s", self.kind.__name__, name, error)


def _share_metadata(each: Any) -> None:
    metadata = each.metadata
    metadata.namespace = intern(metadata.namespace)
    if metadata.labels:
        metadata.labels = {intern(key): intern(value) for key, value in metadata.labels.items()}


def _share_pod(pod: Pod) -> None:
    """Share texts that many pods have in common, to save memory."""
    metadata, spec = pod.metadata, pod.spec
    metadata.namespace = intern(metadata.namespace)
    if metadata.labels:
        metadata.labels = {intern(key): intern(value) for key, value in metadata.labels.items()}
    if metadata.annotations:
        metadata.annotations = {intern(key): value for key, value in metadata.annotations.items()}
    spec.node_name = intern(spec.node_name)
    spec.scheduler_name = intern(spec.scheduler_name)
    spec.priority_class_name = intern(spec.priority_class_name)


_SHARE: Final[dict[type, Callable[[Any], None]]] = {Pod: _share_pod}
