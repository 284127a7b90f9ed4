"""Where event records go: to the resource manager, into the ring buffer, to streams (2.16)."""

from collections.abc import Sequence

import pytest
from core_world import scripted, serve
from event_lines import RecordReader, line

from quadriga.core import Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.core.events import STREAM_BUFFER, EventsRefused, Stream, message_of
from quadriga.si import (
    EventRecord,
    NullCallback,
    RegisterResourceManagerRequest,
    RequestError,
    UpdateConfigurationRequest,
)
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

SECOND = 10**9


def quiet_after(seconds: float = 2) -> Script:
    """A script after the push of the records of its registration."""
    script = Script()
    script.advance(seconds)
    script.events.clear()
    return script


def arrive(script: Script, number: int) -> None:
    """Add ``number`` applications, each of which has two records."""
    for _ in range(number):
        script.app(f"app-{script.scheduler.events.created}")


def lines(stream: Stream) -> list[str]:
    return [line(message_of(record)) for record in stream.poll()]


def test_2_10_i40_records_between_two_pushes_are_sent_with_the_next() -> None:
    script = quiet_after()
    script.advance(0.5)
    script.app("a")
    script.advance(1)
    assert script.events == []
    script.node("n1", vcore=4000)
    script.app("b")
    script.advance(0.5)
    assert [(e.objectID, e.timestampNano) for e in script.events if e.type == EventRecord.APP] == [
        ("a", 2_500_000_000),
        ("b", 3_500_000_000),
    ]
    assert [event for event in script.events if event.objectID == "n1"][-1] == EventRecord(
        type=EventRecord.NODE,
        objectID="n1",
        message="Node added to the scheduler",
        timestampNano=3_500_000_000,
        eventChangeType=EventRecord.ADD,
        eventChangeDetail=EventRecord.DETAILS_NONE,
        resource=resource({"vcore": 4000}),
    )


def test_2_16_a_full_store_drops_new_records_and_counts_them() -> None:
    script = Script(extra={"event.requestCapacity": "5"})  # two of the registration are stored
    arrive(script, 3)
    counts = script.scheduler.events.counts
    assert (counts.created, counts.stored, counts.not_stored) == (8, 5, 3)
    script.advance(2)
    sent = [event.objectID for event in script.events]
    assert sent == ["root", "root.default", "app-2", "root.default", "app-4"]
    assert script.scheduler.events.counts.collected == 5
    arrive(script, 1)  # there is room again
    script.advance(2)
    assert len(script.events) == 7
    assert script.scheduler.events.counts.not_stored == 3


def test_i9_each_resource_manager_is_sent_its_own_records() -> None:
    script = Script()
    other = Script(scheduler=script.scheduler, rm_id="other")
    other.app("theirs")
    script.app("mine")
    outputs = script.scheduler.advance(2 * SECOND)
    of = {rm: [o.message.objectID for o in outputs if o.rm_id == rm] for rm in ("rm", "other")}  # type: ignore[union-attr]
    assert "mine" in of["rm"] and "theirs" not in of["rm"]
    assert "theirs" in of["other"] and "mine" not in of["other"]


def test_i6_records_wait_for_a_resource_manager_that_is_disconnected() -> None:
    script = quiet_after()
    script.app("a")
    script.scheduler.disconnect("rm", script.now)
    script.advance(4)
    assert script.events == []
    script.scheduler.reconnect("rm", script.now)
    script.advance(2)
    assert [e.objectID for e in script.events] == ["a", "root.default"]
    script.app("b")
    script.scheduler.shutdown("rm", script.now)
    assert script.scheduler.next_deadline() is None  # nothing is sent after that


def test_i7_a_resource_manager_that_registers_again_starts_with_an_empty_store() -> None:
    script = Script()
    script.app("a")
    script.send(RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE))
    script.advance(2)
    assert [e.objectID for e in script.events] == ["root", "root.default"]
    assert script.scheduler.events.created == 6  # in the ring they are all


def test_2_16_ids_count_from_zero_and_the_oldest_go_first_when_the_ring_is_full() -> None:
    assert Scheduler().events.batch() == (0, 0, ())  # before the first there is nothing
    script = Script()
    events = script.scheduler.events
    batch = events.batch()
    assert (batch.lowest, batch.highest) == (0, 1)
    assert [record[4] for record in batch.records] == ["root", "root.default"]
    arrive(script, 5)
    everything = events.batch().records
    assert events.batch(3, 4).records == everything[3:7]
    assert events.batch(11, 4).records == everything[11:]
    assert events.batch(12).records == events.batch(0, 0).records == ()
    script = Script(extra={"event.ringBufferCapacity": "4"})
    arrive(script, 3)
    events = script.scheduler.events
    assert events.batch(0) == (4, 7, ())  # a reader sees by the range that it missed some
    before = events.batch(4).records
    assert len(before) == 4
    script.configure("", {"event.ringBufferCapacity": "3"})
    assert events.batch(5) == (5, 7, before[1:])
    script.configure("", {"event.ringBufferCapacity": "100"})
    arrive(script, 2)
    assert (events.batch(5).lowest, events.batch(5).highest) == (5, 11)


def test_2_16_the_records_of_one_allocation_are_read_one_by_one() -> None:
    script = Script(extra={"event.requestCapacity": "2"})
    script.node("n1", vcore=1000)
    script.app("a")
    script.ask("a", "k", vcore=1000)
    script.advance(2)  # the store is empty again
    events = script.scheduler.events
    first, stream = events.created, events.open_stream("host")
    script.schedule()
    script.remove_app("a")
    everything = events.batch(first).records
    for start in range(first, events.created):
        for count in (1, 2, 100):
            expected = everything[start - first :][:count]
            assert events.batch(start, count).records == expected
    assert tuple(stream.poll()) == everything
    assert tuple(events.open_stream("host", history=4).poll()) == everything[-4:]
    script.events.clear()
    script.advance(2)
    assert script.events == [message_of(record) for record in everything[:2]]


def test_2_16_streams_begin_with_earlier_records_and_do_not_disturb_one_another() -> None:
    script = Script()
    script.app("a")
    events = script.scheduler.events
    one, two = events.open_stream("host", history=1), events.open_stream("host")
    script.app("b")
    new = ["APP ADD APP_NEW b", "QUEUE ADD QUEUE_APP root.default b"]
    assert lines(one) == ["QUEUE ADD QUEUE_APP root.default a", *new]
    assert one.poll() == []
    one.close()
    script.app("c")
    assert one.poll() == []
    assert len(two.poll()) == 4


def test_2_16_the_stream_of_a_slow_reader_is_closed() -> None:
    """Earlier records, with which a stream begins, do not count as waiting for its reader."""
    script = Script(check=False)
    events = script.scheduler.events
    slow, quick = events.open_stream("slow"), events.open_stream("quick")
    heard = 0
    for _ in range(STREAM_BUFFER // 2 + 1):
        arrive(script, 1)
        heard += len(quick.poll())
    assert heard == STREAM_BUFFER + 2
    assert slow.closed.startswith("too slow") and not quick.closed
    assert len(slow.poll()) == STREAM_BUFFER  # what it had is not taken away
    assert events.streams == [quick]
    late = events.open_stream("late", history=10 * STREAM_BUFFER)
    script.app("last")
    assert not late.closed
    assert len(late.poll()) == 2 + STREAM_BUFFER + 2 + 2


def test_2_2_3_the_number_of_streams_is_bounded() -> None:
    script = Script(extra={"event.maxStreams": "3", "event.maxStreamsPerHost": "2"})
    events = script.scheduler.events
    first = events.open_stream("a")
    events.open_stream("a")
    with pytest.raises(EventsRefused, match="Too many streaming connections") as refused:
        events.open_stream("a")
    assert refused.value.too_many
    events.open_stream("b")
    with pytest.raises(EventsRefused):
        events.open_stream("c")
    first.close()
    events.open_stream("c")
    script.configure("", {"event.maxStreams": "0"})  # none at all
    with pytest.raises(EventsRefused, match="Too many"):
        script.scheduler.events.open_stream("d")


def test_2_16_2_2_3_without_tracking_nothing_is_recorded_and_there_is_no_stream() -> None:
    """It is switched while running."""
    script = scripted(ONE_QUEUE, "a", extra={"event.trackingEnabled": "false"}, vcore=1000)
    serve(script, "a", "k", "l", vcore=1000)
    script.advance(10)
    events = script.scheduler.events
    assert (events.created, script.events, events.tracking) == (0, [], False)
    with pytest.raises(EventsRefused, match="Event tracking is disabled") as refused:
        events.open_stream("host")
    assert not refused.value.too_many
    reader = RecordReader(script)
    script.configure("", {"event.trackingEnabled": "true"})
    script.schedule()  # what waits is looked at as if it were new
    assert [each.split(" (")[0] for each in reader.new_lines()] == ["REQUEST NONE l a vcore=1000"]
    script.configure("", {"event.trackingEnabled": "False"})
    script.app("b")
    assert reader.new_lines() == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("event.trackingEnabled", "yes"),
        ("event.requestCapacity", "0"),
        ("event.requestCapacity", "many"),
        ("event.ringBufferCapacity", "-1"),
        ("event.ringBufferCapacity", "1e5"),
        ("event.ringBufferCapacity", "9" * 30),
        ("event.maxStreams", ""),
        ("event.maxStreamsPerHost", "1_5"),
        ("event.RESTResponseSize", "٣"),
    ],
)
def test_2_2_3_an_invalid_value_is_refused_with_the_name_of_its_key(key: str, value: str) -> None:
    scheduler = Scheduler()
    with pytest.raises(RequestError) as refused:
        scheduler.apply(RegisterResourceManagerRequest(rmID="rm", extraConfig={key: value}), 0)
    assert refused.value.field == f"extraConfig[{key}]"
    script = Script()
    with pytest.raises(RequestError) as refused:
        script.send(UpdateConfigurationRequest(rmID="rm", extraConfig={key: value}))
    assert refused.value.field == f"extraConfig[{key}]"
    assert key not in script.scheduler.resource_managers()[0].extra


def test_2_2_3_if_resource_managers_differ_the_largest_value_of_each_key_applies() -> None:
    script = Script(extra={"event.ringBufferCapacity": "10", "event.maxStreams": "7"})
    assert script.scheduler.events.settings.ring_capacity == 10
    extra = {"event.ringBufferCapacity": "20", "event.maxStreams": "5"}
    Script(scheduler=script.scheduler, rm_id="other", extra=extra)
    settings = script.scheduler.events.settings
    assert (settings.ring_capacity, settings.max_streams) == (20, 7)


class _Listener(NullCallback):
    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def send_event(self, events: Sequence[EventRecord]) -> None:
        self.calls.append([event.objectID for event in events])


def test_i40_a_service_sends_the_events_of_one_push_together() -> None:
    service, listener = SchedulerService(manual=True, clock=lambda: SECOND), _Listener()
    request = RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE)
    service.register_resource_manager(request, listener)
    service.step(2 * SECOND)
    assert listener.calls == []
    assert service.step(3 * SECOND) == 1
    assert listener.calls == [["root", "root.default"]]
    assert len(service.read(lambda scheduler: scheduler.events.batch()).records) == 2


def test_no_resource_manager_makes_the_ring_larger_than_a_million() -> None:
    extra = {"event.ringBufferCapacity": "2147483647", "event.requestCapacity": "1000001"}
    events = Script(extra={**extra, "event.maxStreams": "7"}).scheduler.events
    settings = events.settings
    assert (settings.ring_capacity, settings.request_capacity) == (1_000_000, 1_000_000)
    assert (settings.max_streams, events.entries.maxlen) == (7, 1_000_000)


@pytest.mark.parametrize("wanted", [True, False])
def test_i40_messages_are_made_only_for_resource_managers_that_want_records(wanted: bool) -> None:
    scheduler = Script().scheduler
    scheduler.set_events("rm", wanted)
    outputs = scheduler.advance(10 * SECOND)
    assert any(isinstance(message, EventRecord) for _, message in outputs) is wanted
    counts = scheduler.events.counts
    assert counts.collected == counts.created > 0
    assert scheduler.events.batch().records
