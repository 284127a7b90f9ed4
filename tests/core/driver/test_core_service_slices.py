"""The service looks at its inbox between two slices of decisions, however many partitions there are, and
between two slices of a long read."""

import gc
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from service_side import PATIENCE, apps, asks, nodes, of, register

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.driver.work_queue import WorkItem, WorkQueue
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.scheduler import Scheduler

RMS, ASKS = 10, 20


def test_a_slice_is_of_decisions_and_not_of_rounds() -> None:
    decided: list[int] = []
    done, hold = threading.Event(), threading.Event()
    with SchedulerService(slice_size=RMS) as service:

        class Callback(si.NullCallback):
            def update_allocation(self, response: Any) -> None:
                if not decided:
                    service.begin(look)

        def look() -> list[Any]:
            held = (n for p in service.scheduler.partitions() for n in p.nodes.values())
            decided.append(sum(len(node.allocations) for node in held))
            done.set()
            return []

        def wait() -> list[Any]:
            hold.wait(PATIENCE)
            return []

        names = [f"rm-{at}" for at in range(RMS)]
        for name in names:
            service.register_resource_manager(register(name), Callback())
            service.update_node(of(name, nodes("n")))
            service.update_application(of(name, apps("app")))
        service.begin(wait)
        for name in names:
            keys = (f"pod-{at}" for at in range(ASKS))
            service.submit(of(name, asks("app", *keys, vcore=1)))
        hold.set()
        assert done.wait(PATIENCE)
    assert 0 < decided[0] <= 2 * RMS < RMS * ASKS


def test_slices_of_reads_take_turns_with_requests() -> None:
    """Other reads come first."""
    queue = WorkQueue(threading.current_thread(), 1)
    for at in range(3):
        queue.put(WorkItem(list, Future(), in_turn=True, size=at))
    for rm_id in ("a", "b", "a"):
        queue.put(WorkItem(list, Future(), rm_id))
    queue.put(WorkItem(list, Future(), size=9))
    taken = [item.rm_id or item.size for item in iter(queue.take, None)]
    assert taken == [9, 0, "a", 1, "b", 2, "a"]
    queue.put(WorkItem(list, left := Future(), in_turn=True))
    queue.abandon()
    assert isinstance(left.exception(), RuntimeError)


def test_a_read_in_slices_goes_on_between_requests() -> None:
    """It ends with what the generator returns or raises; the garbage collector rests meanwhile."""

    def steps(scheduler: Scheduler) -> Steps[int]:
        while not list(scheduler.resource_managers()):
            assert not gc.isenabled()
            yield "dropped"
        return 7

    def fails(scheduler: Scheduler) -> Steps[None]:
        yield
        raise KeyError("gone")

    with SchedulerService() as service:
        slices = Slices[int](steps)
        found = read_in_slices(service, slices)
        service.register_resource_manager(register("rm"), si.NullCallback())
        assert found.result(PATIENCE) == 7
        assert slices.further and slices.began is not None and slices.began <= slices.ended
        with pytest.raises(KeyError):
            read_in_slices(service, Slices[None](fails)).result(PATIENCE)
        at_once = Slices[int](steps)
        service.read(lambda _: read_in_slices(service, at_once)).result(0)  # the owner itself
        assert at_once.over and gc.isenabled()
        unending = read_in_slices(service, Slices[None](lambda _: iter_forever()))
    with pytest.raises(RuntimeError, match="stopped"):
        unending.result(PATIENCE)


def iter_forever() -> Steps[None]:
    while True:
        yield
