"""Many resource managers (RMs) at once over gRPC, with a server in a process of its own: every ask gets
one allocation, every release one confirmation, nobody waits for somebody who does not read, and memory
stays within bounds. `python -m bench serve --full` has the large sizes."""

from __future__ import annotations

import asyncio

import pytest

from bench.serve import crowded, load
from tests.si.wire import House, ask, until

MIB = 1 << 20


def test_every_ask_is_answered_once_and_every_release() -> None:
    found = load(4, 100, processes=1)  # raises for what is lost or doubled
    assert len(found.told.latencies) == 400


def test_an_rm_that_does_not_read_is_in_nobodys_way() -> None:
    found = load(3, 60, rate=60.0, silent=True, processes=1)
    assert len(found.told.latencies) > 90
    assert found.peak < 250 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 50])
def test_fifty_rms_lose_nothing(batch: int) -> None:
    found = load(50, 400, batch=batch)
    assert found.told.allocations == found.told.confirmations == 20_000
    assert found.peak - found.memory[0] < 20_000 * 8_000  # bytes for each pod, all in all
    # what came back was joined into fewer messages
    assert batch == 1 or found.told.messages < 20_000


@pytest.mark.slow
def test_a_visitor_beside_bulk_rms_loses_nothing() -> None:
    alone, beside, bulk = crowded(2, 3_000, 1_000, alone=1.0)  # raises for what is lost or doubled
    assert bulk.allocations == 6_000
    assert alone.latencies and beside.latencies
    assert alone.registrations and beside.registrations


@pytest.mark.slow
def test_memory_comes_to_an_end_when_an_rm_reads_nothing() -> None:
    found = load(5, 400, rate=40.0, silent=True)
    half = found.memory[len(found.memory) // 2 :]
    assert max(half) - half[0] < 40 * MIB
    assert found.peak < 250 * MIB


@pytest.mark.asyncio
async def test_queues_that_take_long_to_read_hold_up_nobody(place: House) -> None:
    """A registration with thousands of queues takes long, and most of them in another thread."""
    lines = [
        "partitions:",
        "  - name: default",
        "    queues:",
        "      - name: root",
        "        queues:",
    ]
    lines += [f"          - {{name: q{number}}}" for number in range(4_000)]
    quick = await place.rm("quick").begin()
    await quick.has_node(vcore=1_000_000)
    await quick.submits()
    slow = place.rm("slow")
    registering = asyncio.create_task(slow.register(config="\n".join(lines)))
    pods = 0
    while not registering.done():
        pods += 1
        await quick.say(ask("app-1", f"pod-{pods}", 1))
        await until(lambda pods=pods: len(quick.allocations) == pods)  # type: ignore[misc]
    await registering
    assert pods > 2
