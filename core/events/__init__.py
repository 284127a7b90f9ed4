"""Event records: what happened, for people to read (2.16, I40, I41).

``happenings`` has one function for each thing that is worth a record, ``records`` says what a record
is, ``system`` where records go, ``streams`` who follows them, and ``settings`` which keys of
extraConfig there are. Events never decide anything, and cost nothing where they are switched off.
"""

from quadriga.core.events.records import Record, message_of, text_of
from quadriga.core.events.settings import EventSettings, problems
from quadriga.core.events.streams import STREAM_BUFFER, EventsRefused, Stream
from quadriga.core.events.system import (
    PUSH_INTERVAL,
    EventBatch,
    EventCounts,
    EventLog,
    Events,
    Ring,
)

__all__ = [
    "PUSH_INTERVAL",
    "STREAM_BUFFER",
    "EventBatch",
    "EventCounts",
    "EventLog",
    "EventSettings",
    "Events",
    "EventsRefused",
    "Record",
    "Ring",
    "Stream",
    "message_of",
    "problems",
    "text_of",
]
