"""Event records of a script's scheduler, as one line each."""

from quadriga.core.events import message_of
from quadriga.si import EventRecord
from quadriga.sim.scripted.script import Script


def line(message: EventRecord) -> str:
    """``NODE ADD NODE_ALLOC n1 k vcore=1000 (text)``; what is empty is left out."""
    resources = message.resource.resources
    parts = [
        EventRecord.Type.Name(message.type),
        EventRecord.ChangeType.Name(message.eventChangeType),
        EventRecord.ChangeDetail.Name(message.eventChangeDetail),
        message.objectID,
        message.referenceID,
        *(f"{name}={resources[name].value}" for name in sorted(resources)),
        f"({message.message})" if message.message else "",
    ]
    return " ".join(part for part in parts if part and part != "DETAILS_NONE")


class RecordReader:
    """Reads the records that are new since its last call."""

    def __init__(self, script: Script) -> None:
        self._events = script.scheduler.events
        self._read = self._events.created

    def new_lines(self, *kinds: str) -> list[str]:
        """The lines since the last call; with ``kinds``, those that begin like one of them."""
        batch = self._events.batch(self._read, self._events.created - self._read)
        self._read = self._events.created
        lines = [line(message_of(record)) for record in batch.records]
        return [each for each in lines if each.startswith(kinds or ("",))]
