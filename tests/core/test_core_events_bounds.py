"""Bounds of the memory for events, which all resource managers share."""

from __future__ import annotations

from quadriga import si
from quadriga.core import Scheduler


def test_no_resource_manager_makes_the_ring_larger_than_a_million() -> None:
    scheduler = Scheduler()
    extra = {"event.ringBufferCapacity": "2147483647", "event.requestCapacity": "1000001"}
    extra["event.maxStreams"] = "7"
    scheduler.apply(si.RegisterResourceManagerRequest(rmID="rm", extraConfig=extra), 0)
    settings = scheduler.events.settings
    assert (settings.ring_capacity, settings.request_capacity) == (1_000_000, 1_000_000)
    assert settings.max_streams == 7
    assert scheduler.events.entries.maxlen == 1_000_000


def test_i40_messages_are_made_only_for_resource_managers_that_want_records() -> None:
    for wanted in (True, False):
        scheduler = Scheduler()
        scheduler.apply(si.RegisterResourceManagerRequest(rmID="rm"), 0)
        scheduler.set_events("rm", wanted)
        outputs = scheduler.advance(10 * 10**9)
        assert any(isinstance(message, si.EventRecord) for _, message in outputs) is wanted
        counts = scheduler.events.counts
        assert counts.collected == counts.created > 0
        assert scheduler.events.batch().records
