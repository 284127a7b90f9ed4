"""Event records: what happened, for people to read (2.16, I40, I41).

``observers`` has the table of what is recorded, ``producers`` makes the records, and ``quota_events``
finds out which asks and applications need one about their quotas. ``records`` says what a record is,
``system`` where records go, ``streams`` how a reader follows them, and ``settings`` has the keys of
extraConfig. No decision depends on event records. Without tracking none are made.
"""

from quadriga.core.events.records import Record, message_of, text_of
from quadriga.core.events.settings import EventSettings, problems
from quadriga.core.events.system import (
    PUSH_INTERVAL,
    STREAM_BUFFER,
    EventBatch,
    EventCounts,
    EventLog,
    Events,
    EventsRefused,
    Ring,
    Stream,
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
