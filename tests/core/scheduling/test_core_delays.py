"""Q16: how long requests wait for the owner is measured for each resource manager, and what is slow is named."""

import threading
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.work_queue import WorkItem, WorkQueue, described
from quadriga.si import AllocationAsk, AllocationRequest, NodeInfo, NodeRequest

SECOND = 1_000_000_000


def item(rm_id: str, request: Any = None) -> WorkItem:
    return WorkItem(partial(list, request or ()), Future(), rm_id)


def test_q16_the_oldest_request_of_each_rm_and_all_waiting_times_are_measured() -> None:
    now = 0
    queue = WorkQueue(threading.Thread(), 256, lambda: now)
    queue.put(item("a"))
    now = 3 * SECOND
    queue.put(item("b"))
    chunked = queue.take()
    assert chunked is not None
    queue.put_back(chunked)  # it waits until its last chunk is taken
    queue.put(item(""))
    now = 4 * SECOND
    assert queue.delays() == {"a": 4 * SECOND, "b": SECOND}
    while queue.take() is not None:
        pass
    assert queue.delays() == {}
    assert (queue.taken, queue.waited) == (3, 8 * SECOND)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            AllocationRequest(rmID="rm", asks=[AllocationAsk(allocationKey="ask-1")]),
            "AllocationRequest of rm with 1 items, the first of asks is 'ask-1'",
        ),
        (
            NodeRequest(rmID="rm", nodes=[NodeInfo(nodeID="n" * 5_000)]),
            f"NodeRequest of rm with 1 items, the first of nodes is '{'n' * 100}'",
        ),
        (None, "a look at the scheduler of rm"),
    ],
)
def test_q16_the_watchdog_names_the_request_and_its_first_item(request_: Any, text: str) -> None:
    work = partial(list, request_) if request_ is not None else partial(list)
    assert described(WorkItem(work, Future(), "rm")) == text


def test_q16_a_service_whose_owner_does_not_come_back_says_what_it_is_at() -> None:
    """A read blocks the owner until the test lets it go on; a request behind it waits."""
    service = SchedulerService()
    at_it, go_on = threading.Event(), threading.Event()

    def block(scheduler: object) -> None:
        at_it.set()
        go_on.wait(30)

    try:
        done = service.read_later(block)
        assert at_it.wait(30)
        waits = service.submit(AllocationRequest(rmID="rm"))
        said = service.slow(-1)
        assert said.startswith("its loop has been at a look at the scheduler for 0.")
        assert "a request of rm has waited for 0." in said
        assert service.slow(3600 * SECOND) == ""
    finally:
        go_on.set()
        done.result(30)
        assert waits.exception(30) is not None
        service.stop()
    assert service.delays() == {}
    assert service.taken_and_waited[0] == 1
