"""The service looks at its inbox between two slices of decisions, however many partitions there are."""

import threading
from typing import Any

from service_side import PATIENCE, apps, asks, nodes, of, register

from quadriga import si
from quadriga.core.driver.service import SchedulerService

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
