"""Encoded templates of Allocation messages.

All Allocation messages of one application and one kind of ask have the same content but for the key,
the UUID and the node. That content is encoded once, as the bytes of a response with one new allocation;
each message is decoded from these bytes, which is quicker than to build it or to copy one with a map
in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.si import Allocation as AllocationMessage
from quadriga.si import AllocationResponse

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskKind
    from quadriga.core.model.partition import Partition

#: at most this many templates are kept for a partition
_LIMIT: Final = 10_000


class AllocationTemplates:
    """The templates of one partition, by the application's id and the kind of ask."""

    __slots__ = ("_encoded", "_kinds", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._encoded: dict[tuple[str, AskKind], bytes] = {}
        #: the kinds in the keys, so that keys with equal kinds share one
        self._kinds: dict[AskKind, AskKind] = {}

    def of(self, ask: Ask) -> bytes:
        """The template of the messages about this ask's allocations."""
        key = (ask.app.app_id, ask.kind)
        known = self._encoded.get(key)
        return known if known is not None else self._encode(key)

    def _encode(self, key: tuple[str, AskKind]) -> bytes:
        app_id, kind = key
        partition = self._partition
        message = AllocationMessage(
            applicationID=app_id,
            resourcePerAlloc=partition.registry.message(kind.vector),
            priority=kind.priority,
            partitionName=partition.name,
            taskGroupName=kind.task_group,
            placeholder=kind.placeholder,
        )
        if len(self._encoded) >= _LIMIT:
            self._encoded.clear()
            self._kinds.clear()
        encoded = AllocationResponse(new=[message]).SerializeToString()
        self._encoded[app_id, self._kinds.setdefault(kind, kind)] = encoded
        return encoded
