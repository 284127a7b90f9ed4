"""The service looks at its inbox between two slices of decisions, however many partitions there are."""

from __future__ import annotations

import threading
from typing import Any

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.sim.script import resource

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
"""
RMS, ASKS = 10, 20


def test_a_slice_is_of_decisions_and_not_of_rounds() -> None:
    decided: list[int] = []
    done = threading.Event()
    with SchedulerService(slice_size=RMS) as service:

        class Callback(si.NullCallback):
            def update_allocation(self, response: Any) -> None:
                if not decided:
                    service.begin(look)

        def look() -> list[Any]:
            scheduler = service.scheduler
            decided.append(
                sum(len(n.allocations) for p in scheduler.partitions() for n in p.nodes.values())
            )
            done.set()
            return []

        names = [f"rm-{at}" for at in range(RMS)]
        user = si.UserGroupInformation(user="u", groups=["g"])
        for name in names:
            service.register_resource_manager(
                si.RegisterResourceManagerRequest(rmID=name, config=QUEUES), Callback()
            )
            node = si.NodeInfo(
                nodeID="n", action=si.NodeInfo.CREATE, schedulableResource=resource({"vcore": 100})
            )
            service.update_node(si.NodeRequest(rmID=name, nodes=[node]))
            app = si.AddApplicationRequest(applicationID="app", queueName="root.a", ugi=user)
            service.update_application(si.ApplicationRequest(rmID=name, new=[app]))
        hold = threading.Event()

        def wait() -> list[Any]:
            hold.wait(20)
            return []

        service.begin(wait)
        for name in names:
            request = si.AllocationRequest(rmID=name)
            for at in range(ASKS):
                request.asks.add(
                    allocationKey=f"pod-{at}",
                    applicationID="app",
                    resourceAsk=resource({"vcore": 1}),
                    maxAllocations=1,
                )
            service.submit(request)
        hold.set()
        assert done.wait(20)
    assert 0 < decided[0] <= 2 * RMS < RMS * ASKS
