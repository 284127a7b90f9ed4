"""What a stranger finds in REST when he opens ``quadriga serve --demo``."""

from __future__ import annotations

import httpx
import pytest

from quadriga.web.app import create_app
from tests.sim.test_sim_demo import Watched


@pytest.mark.asyncio
async def test_within_five_seconds_a_gang_waits_a_quota_binds_and_services_preempt() -> None:
    """At 60 simulated seconds a second; the first minute of a look shows all three."""
    watched = Watched()
    watched.live(5)
    transport = httpx.ASGITransport(create_app(watched.service, watched.views))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9080") as client:
        address = "/ws/v1/partition/default/applications/active"
        active = (await client.get(address)).json()
        waiting = {
            (app["queueName"], ask["placeholder"], entry["message"])
            for app in active
            if app["applicationState"] == "Accepted"
            for ask in app["requests"]
            for entry in ask["allocationLog"]
        }
        whole = "Not enough queue quota for the whole gang"
        assert ("root.research.training", True, whole) in waiting
        assert ("root.batch", False, "The cluster is full") in waiting
        events = (await client.get("/ws/v1/events/batch?count=10000")).json()["EventRecords"]
        preempted = [
            each for each in events if each.get("message", "").startswith("Preempted by shop-")
        ]
        assert len(preempted) >= 5
        assert all(each["message"].endswith(" in root.services") for each in preempted)
