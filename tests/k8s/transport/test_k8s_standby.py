"""A process that stands by: ready as soon as it could take over, and only then (K11, K16)."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quadriga.cli.serving.kubernetes_part import KubernetesPart
from quadriga.k8s.driver.kubernetes import Health, health_of
from tests.k8s.test_k8s_driver import OPTIONS, WithLease, at_work
from tests.k8s.transport.test_k8s_lease import Server, candidate, held_by, leading
from tests.k8s.virtual_time import virtual

LEASE = "/apis/coordination.k8s.io/v1/namespaces/quadriga/leases/quadriga"


@virtual
async def test_k16_a_follower_knows_its_leader_only_while_it_can_read_the_lease() -> None:
    server, leader = await leading()
    assert leader.rival == ""
    follower = candidate(server, "b")
    assert follower.rival == ""
    following = asyncio.create_task(follower.acquire())
    await asyncio.sleep(1)
    assert follower.rival == "a"
    server.down = True
    await asyncio.sleep(7)
    assert follower.rival == "a", "a short outage changes nothing"
    await asyncio.sleep(5)
    assert follower.rival == "", "it could not take over"
    following.cancel()


@virtual
async def test_k16_a_lease_without_a_holder_has_no_leader() -> None:
    server = Server(spec=held_by(""))
    server.before_write = lambda: server.replace(held_by(""))  # somebody is always faster
    follower = candidate(server, "b")
    following = asyncio.create_task(follower.acquire())
    await asyncio.sleep(5)
    assert follower.rival == ""
    following.cancel()


STANDS_BY: dict[str, Any] = {
    "now": 20_000_000_000,
    "turned_at": 19_000_000_000,
    "leads": False,
    "unsynced": (),
    "serves": False,
    "stopped": "",
    "rival": "one",
}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"unsynced": ("pods",)},
        {"turned_at": 0},
        {"stopped": "lost"},
        {"rival": ""},
        {"leads": True},
    ],
    ids=lambda change: next(iter(change), "nothing more"),
)
def test_k16_a_process_that_lacks_only_the_lease_stands_by(change: dict[str, Any]) -> None:
    health = health_of(**STANDS_BY | change)
    assert (health.ready, health.leader) == (False, "" if change else "one")
    assert change or health == Health(True, False, ("one leads",), "one")


async def test_k16_with_a_leader_elsewhere_the_shim_stands_by_once_its_caches_are_filled() -> None:
    def led(api: Any) -> None:
        api.found[LEASE] = {
            "metadata": {"name": "quadriga", "resourceVersion": "1"},
            "spec": held_by("other", 900),
        }

    options = replace(OPTIONS, leader_election=True)
    async with at_work(prepare=led, make=WithLease, options=options) as found:
        await found.until(lambda: found.shim.health().leader == "other")
        health = found.shim.health()
        assert (health.alive, health.ready, health.reasons) == (True, False, ("other leads",))


def test_k16_the_probe_takes_a_process_that_stands_by_as_ready_and_names_the_leader() -> None:
    part = KubernetesPart.__new__(KubernetesPart)
    part._service = None
    part.shim = SimpleNamespace(health=lambda: health_of(**STANDS_BY))
    assert (part._not_ready(), part._standby()) == ("", "one leads, this process stands by")
    part.shim = SimpleNamespace(health=lambda: health_of(**STANDS_BY | {"rival": ""}))
    assert (part._not_ready(), part._standby()) == ("another process leads", "")
