"""The work queue takes turns among resource managers and counts request items; no test looks at a clock."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from service_side import PATIENCE, Heard, apps, asks, nodes, register, send

from quadriga import si
from quadriga.core import Options, Scheduler, SchedulerService
from quadriga.core.driver.chunks import ChunkedRequest
from quadriga.core.driver.work_queue import Closed, WorkItem, WorkQueue
from quadriga.si import AllocationResponse, RequestError

TURN = 10


# -- the queue -------------------------------------------------------------------------------------


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue(threading.Thread(), TURN)


def put(queue: WorkQueue, *names: str, items: int = 1) -> None:
    for name in names:
        rm_id = name.partition("-")[0].strip(".")
        queue.put(WorkItem(list, _Named(name), rm_id, items))


class _Named(Future[None]):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def taken(queue: WorkQueue, most: int = 1000) -> list[str]:
    found = []
    while len(found) < most and (item := queue.take()) is not None:
        assert isinstance(item.outcome, _Named)
        found.append(item.outcome.name)
    return found


def test_turns_are_counted_in_items_and_not_in_requests(queue: WorkQueue) -> None:
    put(queue, *["a-large"] * 4, items=TURN)
    put(queue, *["b-small"] * 25)
    assert taken(queue) == [
        *["a-large", *["b-small"] * 10],
        *["a-large", *["b-small"] * 10],
        *["a-large", *["b-small"] * 5],
        "a-large",
    ]


def test_new_work_comes_before_busy_resource_managers(queue: WorkQueue) -> None:
    put(queue, *["a"] * 50, *["b"] * 50)
    assert taken(queue, 25).count("a") == 15
    put(queue, "c-registers")
    assert taken(queue)[0] == "c-registers"


def test_work_that_keeps_coming_waits_for_a_turn_of_the_others(queue: WorkQueue) -> None:
    """A turn's work at a time, each as soon as the last was taken: all others have a turn between."""
    put(queue, *["a"] * 100, *["b"] * 100)
    assert taken(queue, 20) == ["a"] * 10 + ["b"] * 10
    order: list[str] = []
    for _ in range(3):
        put(queue, "c", items=TURN)
        while not order or order[-1] != "c":
            order += taken(queue, 1)
        order[-1] = "C"
    assert order == ["C", *["a"] * 10, *["b"] * 10, "C", *["a"] * 10, *["b"] * 10, "C"]


def test_work_of_many_items_pays_for_them_in_later_turns(queue: WorkQueue) -> None:
    put(queue, "a-node", items=3 * TURN)
    put(queue, "a", *["b"] * 100)
    assert taken(queue).index("a") == 1 + 3 * TURN


def test_a_closed_queue_gives_out_what_it_has(queue: WorkQueue) -> None:
    put(queue, "a", "b")
    queue.close()
    with pytest.raises(RuntimeError, match="stopped"):
        put(queue, "c")
    item = queue.take()
    assert item is not None
    queue.put_back(item)
    assert queue.take() and queue.take()
    with pytest.raises(Closed):
        queue.take(None)


def test_callers_are_told_that_the_owner_has_ended(queue: WorkQueue) -> None:
    left = [WorkItem(list, Future(), rm_id) for rm_id in ("a", "b", "")]
    for item in left:
        queue.put(item)
    queue.abandon()
    for item in left:
        assert isinstance(item.outcome, Future)
        assert isinstance(item.outcome.exception(0), RuntimeError)
    assert len(queue) == 0


# -- chunks ----------------------------------------------------------------------------------------


def scheduler_with(*requests: Any) -> Scheduler:
    made = Scheduler(Options(journal_size=None))
    for request in (register(), *requests):
        made.apply(request, 1)
    return made


def chunked(scheduler: Scheduler, request: Any, most: int) -> tuple[list[Any], list[int]]:
    """What is said, and how many items each chunk had."""
    chunks = ChunkedRequest(request, most)
    said, sizes = [], []
    while chunks.next_size:
        sizes.append(chunks.next_size)
        said += [output.message for output in chunks.apply(scheduler, 1)]
    return said, sizes


def everything(count: int) -> si.AllocationRequest:
    """Asks, of which every third is wrong, in both forms; releases of all that is there."""
    request = asks("app", *(f"k{at}" for at in range(count)))
    for at in range(0, count, 3):
        request.asks[at].applicationID = "nobody"
    for at in range(count):
        app = "app" if at % 3 else "nobody"
        request.allocations.add(allocationKey=f"n{at}", applicationID=app)
        request.allocations[-1].resourcePerAlloc.resources["vcore"].value = 1
    for at in range(count):
        request.releases.allocationAsksToRelease.add(
            partitionName="default", applicationID="app", allocationKey=f"k{at}"
        )
        request.releases.allocationsToRelease.add(
            partitionName="default", applicationID="app", allocationKey=f"old{at}"
        )
    return request


def test_m2_chunks_keep_the_order_of_the_parts_and_change_nothing_else() -> None:
    """As one request or in chunks: the same books, and the same said of every item in the same order."""
    old = asks("app", *(f"old{at}" for at in range(20)), vcore=1)
    whole, in_chunks = (scheduler_with(nodes("n1"), apps("app"), old) for _ in range(2))
    for each in (whole, in_chunks):
        assert sum(isinstance(o.message, AllocationResponse) for o in each.schedule(1)) == 20
    expected = [output.message for output in whole.apply(everything(20), 1)]
    said, sizes = chunked(in_chunks, everything(20), 7)
    assert sizes == [7, 7, 6] * 4
    assert _flat(said) == _flat(expected)
    causes = [record.cause for record in in_chunks.journal]
    order = list(dict.fromkeys(cause for cause in causes if "." in cause))[-4:]
    assert order == [
        "AllocationRequest.asks",
        "AllocationRequest.allocations",
        "AllocationRequest.releases.allocationAsksToRelease",
        "AllocationRequest.releases.allocationsToRelease",
    ]
    lines = [[(r.key, r.trigger, r.target) for r in each.journal] for each in (whole, in_chunks)]
    assert sorted(lines[0]) == sorted(lines[1])
    assert whole.check() == in_chunks.check() == []


def _flat(messages: list[Any]) -> list[tuple[str, str, str]]:
    """Every item that is said something of, in order."""
    found = []
    for message in messages:
        for field, value in message.ListFields():
            for each in value:
                key = getattr(each, "allocationKey", "")
                found.append((field.name, each.applicationID, key))
    return found


def test_m3_m5_rejected_asks_are_told_in_one_response_and_applications_by_chunk() -> None:
    request = asks("nobody", *(f"k{at}" for at in range(25)))
    said, sizes = chunked(scheduler_with(), request, 10)
    assert sizes == [10, 10, 5]
    [response] = said
    assert [each.allocationKey for each in response.rejected] == [f"k{at}" for at in range(25)]
    said, _ = chunked(scheduler_with(), apps(*(f"a{at}" for at in range(25))), 10)
    assert [len(response.accepted) for response in said] == [10, 10, 5]


def test_m7_a_node_counts_with_what_runs_on_it() -> None:
    request = nodes(*(f"n{at}" for at in range(6)))
    for at, info in enumerate(request.nodes):
        for number in range(4 if at != 3 else 30):
            info.existingAllocations.add(
                allocationKey=f"p{at}-{number}", UUID=f"p{at}-{number}", applicationID="app"
            ).resourcePerAlloc.resources["vcore"].value = 1
    scheduler = scheduler_with(apps("app"))
    said, sizes = chunked(scheduler, request, 10)
    assert sizes == [10, 5, 31, 10]
    accepted = [each.nodeID for response in said for each in getattr(response, "accepted", ())]
    assert accepted == [f"n{at}" for at in range(6)]
    assert scheduler.check() == []


@pytest.mark.parametrize("rm_id", ["rm", "stranger"])
def test_a_request_is_refused_whole_before_any_chunk_of_it_is_applied(rm_id: str) -> None:
    scheduler = scheduler_with(apps("app"))
    request = asks("app", *(f"k{at}" for at in range(25)))
    request.rmID = rm_id
    if rm_id == "rm":
        request.releases.allocationAsksToRelease.add(applicationID="app")  # R7: no partition
    chunks = ChunkedRequest(request, 10)
    with pytest.raises(RequestError, match="partitionName" if rm_id == "rm" else "not registered"):
        chunks.apply(scheduler, 1)
    assert chunks.next_size == 0
    assert not scheduler.application("app").asks


# -- the service -----------------------------------------------------------------------------------


class Counts(Heard):
    """Calls ``look`` on the owner's thread at the first message that ``is_it``."""

    def __init__(self, is_it: Callable[[Any], bool], look: Callable[[], Any]) -> None:
        super().__init__()
        self._is_it = is_it
        self._look = look
        self.found: list[Any] = []

    def _note(self, method: str, message: Any) -> None:
        if self._is_it(message):
            self.found.append(self._look())
        super()._note(method, message)


def is_rejection(message: Any) -> bool:
    return isinstance(message, AllocationResponse) and bool(message.rejected)


@pytest.fixture
def held() -> Any:
    """A service whose owner waits until all has been sent, and how to let it go on."""
    go = threading.Event()
    with SchedulerService(slice_size=TURN) as service:
        for rm_id in ("rm", "other"):
            service.register_resource_manager(register(rm_id), Heard())
        send(service, apps("app"))

        def wait() -> list[Any]:
            go.wait(PATIENCE)
            return []

        service.begin(wait)
        try:
            yield service, go
        finally:
            go.set()


def asked(service: SchedulerService) -> int:
    """How many asks of the bulk application there are; called on the owner's thread."""
    return service.read(lambda scheduler: len(scheduler.application("app", rm_id="rm").asks))


def bulk(first: int, count: int) -> si.AllocationRequest:
    return asks("app", *(f"k{at}" for at in range(first, first + count)))


def test_an_ask_waits_for_one_turn_of_others_and_not_for_their_requests(held: Any) -> None:
    service, go = held
    for first in range(0, 1000, 500):
        last = service.submit(bulk(first, 500))
    heard = Counts(is_rejection, lambda: asked(service))
    service.submit(register("few"), heard)
    one = asks("nobody", "k")
    one.rmID = "few"
    service.submit(one)
    go.set()
    last.result(PATIENCE)
    heard.wait_for(lambda messages: bool(messages))
    assert heard.found == [TURN]
    assert asked(service) == 1000


def test_i7_a_registration_and_a_look_wait_for_nobodys_asks(held: Any) -> None:
    service, go = held
    last = service.submit(bulk(0, 1000))
    registered = service.submit(register("new"), Heard())
    seen: list[int] = []
    registered.add_done_callback(lambda done: seen.append(asked(service)))
    look = service.read_later(lambda scheduler: len(scheduler.application("app", rm_id="rm").asks))
    go.set()
    last.result(PATIENCE)
    assert registered.result(PATIENCE) is None
    assert look.result(PATIENCE) == 0
    assert seen == [TURN]


def test_i7_a_registration_comes_after_the_requests_of_its_own_resource_manager(held: Any) -> None:
    service, go = held
    service.submit(bulk(0, 1000))
    again = service.submit(register(), Heard())
    after = service.submit(bulk(0, 10))
    go.set()
    assert again.result(PATIENCE) is None
    assert after.result(PATIENCE) is None  # of an application that is not known any more
    assert service.read(lambda scheduler: scheduler.partition(rm_id="rm").applications) == {}
