"""The groups of users are looked up beside the scheduler, at the same cost for each user (I24, Q16)."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from quadriga import si
from quadriga.core.driver.group_lookups import GroupLookups, Lookup
from quadriga.core.driver.os_groups import Answers, OsGroups
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.work_queue import Closed, WorkItem, WorkQueue
from tests.core.service_side import PATIENCE, Heard, asks, nodes, of, register

SECOND = 1_000_000_000


def groups_of(user: str) -> tuple[str, ...]:
    return (f"group-of-{user}",)


def applications(*users: str, rm_id: str = "rm") -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID=rm_id)
    for user in users:
        ugi = si.UserGroupInformation(user=user)
        request.new.add(applicationID=f"app-{user}", queueName="root.default", ugi=ugi)
    return request


class Counted(OrderedDict[str, Any]):
    """Counts what is done with it."""

    done: ClassVar[Counter[str]] = Counter()

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.done["seen"] += 1
            yield key

    def __setitem__(self, key: str, value: Any) -> None:
        self.done["set"] += 1
        super().__setitem__(key, value)

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        self.done["dropped"] += 1
        return super().popitem(last)


def test_q16_every_distinct_user_costs_the_same() -> None:
    """Counted work: not a second look at what is kept, however much that is."""
    asked: list[str] = []

    def look_up(user: str) -> tuple[str, ...]:
        asked.append(user)
        return ("dev",)

    resolver = OsGroups(lambda: 0, look_up, most=1000)
    resolver.answers.known = known = Counted()
    costs = []
    for start in range(0, 4000, 1000):
        known.done.clear()
        for number in range(start, start + 1000):
            resolver(f"user-{number}")
        costs.append(dict(known.done))
    assert costs[0] == {"set": 1000, "seen": 1000}
    assert costs[1] == costs[2] == costs[3] == {"set": 1000, "seen": 1000, "dropped": 1000}
    assert len(asked) == 4000


def test_q16_answers_are_bounded_and_a_name_that_is_none_is_not_looked_up() -> None:
    answers = Answers(lambda: 0, most=3)
    for user in ("ann", "bob", "cem", "ann", "dan"):
        answers.put(user, (user,), SECOND)
    assert [*answers.known] == ["cem", "ann", "dan"]
    assert answers.get("bob") is None
    resolver = OsGroups(lambda: 0, groups_of)
    assert resolver("x" * 256) != ()
    assert resolver("x" * 257) == ()
    assert len(resolver.answers.known) == 1


class Directory:
    """A user database that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.threads: set[str] = set()
        self.asked_of = threading.Semaphore(0)
        self.answers = threading.Event()

    def __call__(self, user: str) -> tuple[str, ...]:
        self.asked.append(user)
        self.threads.add(threading.current_thread().name)
        self.asked_of.release()
        if user.startswith("slow"):
            assert self.answers.wait(PATIENCE)
        return groups_of(user)

    def is_asked(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.asked_of.acquire(timeout=PATIENCE)


class World:
    def __init__(self) -> None:
        self.directory = Directory()
        self.now = 0.0
        self.lookups = GroupLookups(lambda: 0, self.directory, monotonic=lambda: self.now)
        self.woken = threading.Semaphore(0)

    def begin(self, *users: str) -> Lookup:
        return self.lookups.begin(users, self.woken.release)

    def is_woken(self) -> None:
        assert self.woken.acquire(timeout=PATIENCE)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.directory.answers.set()
    made.lookups.close()


def test_groups_are_looked_up_once_and_by_another_thread(world: World) -> None:
    first = world.begin("ann", "bob", "ann")
    world.is_woken()
    assert first.answers == {user: groups_of(user) for user in ("ann", "bob")}
    again = world.begin("ann", "bob")
    assert again.done and again.answers == first.answers
    assert sorted(world.directory.asked) == ["ann", "bob"]
    assert threading.current_thread().name not in world.directory.threads
    world.directory.asked.clear()
    first, second = world.begin("slow"), world.begin("slow")
    world.directory.is_asked(3)
    assert not first.done and not second.done
    world.directory.answers.set()
    for _ in range(2):
        world.is_woken()
    assert first.answers == second.answers == {"slow": groups_of("slow")}
    assert world.directory.asked == ["slow"]


def test_q16_a_directory_that_does_not_answer_delays_others_by_one_deadline(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = world.begin(*(f"slow-{number}" for number in range(4)))
    world.directory.is_asked(4)
    waiting = world.begin("ann")
    for now in (4.9, 5.0):
        world.now = now
        world.lookups.expire()
        assert stuck.done == waiting.done == (now == 5.0)
    assert set(stuck.answers.values()) == {()} and waiting.answers == {"ann": ()}
    assert "'slow-0'" in caplog.text and "5 s" in caplog.text
    at_once = world.begin("bob")
    world.lookups.expire()
    assert at_once.answers == {"bob": ()}


def test_an_answer_that_comes_late_counts_from_then_on(world: World) -> None:
    world.begin("slow")
    world.directory.is_asked()
    world.now = 5.0
    world.lookups.expire()
    world.directory.answers.set()
    world.begin("ann")
    world.is_woken()  # by the deadline
    world.is_woken()  # by ann, whom another thread or the same one answers
    while world.lookups._running:
        pass
    assert world.begin("slow").answers == {"slow": groups_of("slow")}


def test_a_look_up_that_fails_is_no_groups() -> None:
    def look_up(user: str) -> tuple[str, ...]:
        raise RuntimeError("not one of the errors that are expected")

    lookups, woken = GroupLookups(lambda: 0, look_up), threading.Event()
    lookup = lookups.begin(["ann"], woken.set)
    assert woken.wait(PATIENCE)
    assert lookup.answers == {"ann": ()}
    lookups.close()


def test_work_that_waits_for_groups_holds_its_resource_manager_only() -> None:
    """A closed queue is not over before it."""
    queue = WorkQueue(threading.Thread(), turn=10)
    lookup = Lookup(lambda: None)
    lookup.missing.add("ann")

    def put(rm_id: str, lookup: Lookup | None = None) -> WorkItem:
        item = WorkItem(list, Future(), rm_id, lookup=lookup)
        assert queue.put(item)
        return item

    held, behind, other = put("a", lookup), put("a"), put("b")
    assert queue.take() is other
    assert queue.take() is None
    assert queue.holds and len(queue) == 2
    read = put("")
    queue.close()
    assert queue.take() is read
    assert queue.take() is None
    lookup.missing.clear()
    queue.wake("a")
    assert [queue.take(), queue.take()] == [held, behind]
    with pytest.raises(Closed):
        queue.take()


def placed(message: Any) -> list[str]:
    return [each.allocationKey for each in getattr(message, "new", ())]


@contextmanager
def serving(world: World, *others: str, callback: Any = None) -> Iterator[SchedulerService]:
    """A service that asks the world's directory, with the resource manager rm and these."""
    with SchedulerService(groups_of=world.lookups) as service:
        service.register_resource_manager(register(), callback or Heard())
        for rm_id in others:
            service.register_resource_manager(register(rm_id), Heard())
        yield service


class Sends(Heard):
    """What it sends when the application of ann is accepted."""

    def __init__(self, send: Callable[[], None]) -> None:
        super().__init__()
        self.send = send
        self.sent = threading.Event()

    def update_application(self, response: si.ApplicationResponse) -> None:
        super().update_application(response)
        if "app-ann" in [accepted.applicationID for accepted in response.accepted]:
            self.send()
            self.sent.set()


def groups_in_core(service: SchedulerService, app_id: str) -> Any:
    return service.read(lambda core: core.application(app_id, rm_id="rm").groups_of_user)


def test_i24_a_large_request_has_the_groups_of_all_its_users(world: World) -> None:
    with serving(world) as service:
        service.update_application(applications(*(f"user-{number}" for number in range(600))))
        for user in ("user-0", "user-599"):
            assert groups_in_core(service, f"app-{user}") == groups_of(user)


def test_q16_an_application_whose_look_up_is_late_has_no_groups(world: World) -> None:
    with serving(world) as service:
        sent = service.submit(applications("slow"))
        world.directory.is_asked()
        world.now = 5.0
        sent.result(PATIENCE)
        assert groups_in_core(service, "app-slow") == ()


def test_q16_i24_a_request_that_a_callback_sends_does_not_wait_in_the_schedulers_thread(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The later requests of its resource manager come after it, those of others do not wait."""

    def send() -> None:
        service.update_application(applications("slow"))
        service.update_allocation(asks("app-slow", "one"))
        service.shutdown("gone")

    heard, other = Sends(send), Heard()
    with serving(world, "gone", callback=heard) as service:
        service.register_resource_manager(register("other"), other)
        for rm_id in ("rm", "other"):
            service.update_node(of(rm_id, nodes(f"node-{rm_id}")))
        service.update_application(applications("ann"))
        assert heard.sent.wait(PATIENCE)
        service.update_application(applications("cem", rm_id="other"))
        service.update_allocation(of("other", asks("app-cem", "two")))
        other.wait_for(lambda messages: any(placed(each) == ["two"] for each in messages))
        assert not any(placed(each) for each in heard.messages)
        world.directory.answers.set()
        heard.wait_for(lambda messages: any(placed(each) == ["one"] for each in messages))
        assert groups_in_core(service, "app-slow") == groups_of("slow")
    assert "ERROR" not in [record.levelname for record in caplog.records]


def test_what_a_callback_sent_and_could_not_be_applied_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def send() -> None:
        service.update_application(applications("slow"))
        service.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config="no queues"))

    heard = Sends(send)
    with serving(world, callback=heard) as service:
        service.update_application(applications("ann"))
        world.directory.answers.set()
        heard.wait_for(lambda messages: len(messages) >= 2)
    assert "a request that a callback of rm sent was refused: " in caplog.text


def test_the_end_of_the_service_answers_what_waits_for_groups(world: World) -> None:
    with serving(world) as service:
        sent = service.submit(applications("slow"))
        world.directory.is_asked()
        world.now = 5.0  # the deadline
        service.stop()
        sent.result(PATIENCE)
