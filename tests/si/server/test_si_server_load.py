"""Many resource managers at once, with a server in a process of its own; `bench serve --full` has more."""

import asyncio

import pytest

from bench.serve import crowded, load
from tests.si.wire import House, ask, until

MIB = 1 << 20


def test_every_ask_is_answered_once_and_every_release() -> None:
    found = load(4, 100, processes=1)  # raises for what is lost or doubled
    assert len(found.told.latencies) == 400


@pytest.mark.parametrize(
    ("rms", "asks", "rate", "limit"),
    [
        pytest.param(3, 60, 120.0, 250 * MIB, id="few"),
        pytest.param(5, 400, 40.0, 40 * MIB, id="many", marks=pytest.mark.slow),
    ],
)
def test_an_rm_that_does_not_read_is_in_nobodys_way_and_memory_comes_to_an_end(
    rms: int, asks: int, rate: float, limit: int
) -> None:
    found = load(rms, asks, rate=rate, silent=True, processes=1)
    assert len(found.told.latencies) > 90
    assert found.peak < 250 * MIB
    half = found.memory[len(found.memory) // 2 :]
    assert max(half) - half[0] < limit


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "asks"), [(1, 100), (50, 400)])
def test_fifty_rms_lose_nothing(batch: int, asks: int) -> None:
    found = load(50, asks, batch=batch)
    assert found.told.allocations == found.told.confirmations == 50 * asks
    assert found.peak - found.memory[0] < 50 * asks * 8_000  # bytes for each pod, all in all
    # what came back was joined into fewer messages
    assert batch == 1 or found.told.messages < 50 * asks


@pytest.mark.slow
def test_a_visitor_beside_bulk_rms_loses_nothing() -> None:
    alone, beside, bulk = crowded(2, 3_000, 1_000, alone=1.0)  # raises for what is lost or doubled
    assert bulk.allocations == 6_000
    assert alone.latencies and beside.latencies
    assert alone.registrations and beside.registrations


async def test_queues_that_take_long_to_read_hold_up_nobody(place: House) -> None:
    """A registration with thousands of queues takes long, and most of them in another thread."""
    below = "".join(f"\n          - {{name: q{number}}}" for number in range(4_000))
    config = (
        "partitions:\n  - name: default\n    queues:\n      - name: root\n        queues:" + below
    )
    quick = await place.rm("quick").begin()
    await quick.has_node(vcore=1_000_000)
    await quick.submits()
    slow = place.rm("slow")
    registering = asyncio.create_task(slow.register(config=config))
    pods = 0
    while not registering.done():
        pods += 1
        await quick.say(ask("app-1", f"pod-{pods}", 1))
        await until(lambda pods=pods: len(quick.allocations) == pods)  # type: ignore[misc]
    await registering
    assert pods > 2
