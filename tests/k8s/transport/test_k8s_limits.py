"""How many requests are sent: a second, at once, at a time, and when the server asks for a pause (K13)."""

import asyncio

import pytest

from quadriga.k8s.transport.limits import Lane, Limits
from quadriga.k8s.tuning import TUNING
from tests.k8s.fake_api import FakeApi, client_of
from tests.k8s.virtual_time import clock, virtual


def limits(qps: int = 1_000_000, burst: int = 1_000_000, inflight: int = 1_000_000) -> Limits:
    return Limits(qps, burst, inflight, clock=clock)


@virtual
async def test_k13_the_bucket_fills_again_and_no_further_than_its_depth() -> None:
    bucket, at = limits(qps=10, burst=2), []
    for pause in (0, 0, 100):
        await asyncio.sleep(pause)
        began = clock()
        for _ in range(3):
            await bucket.enter()
            bucket.leave()
        at.append(round((clock() - began) / 1e9, 3))
    assert at == [0.1, 0.3, 0.1]


@virtual
async def test_k13_only_so_many_are_under_way_and_the_others_keep_their_order() -> None:
    bucket, order, most, now = limits(inflight=3), [], 0, 0

    async def one(number: int) -> None:
        nonlocal most, now
        await bucket.enter()
        now += 1
        most = max(most, now)
        order.append(number)
        await asyncio.sleep(1)
        now -= 1
        bucket.leave()

    await asyncio.gather(*(one(number) for number in range(10)))
    assert most == 3
    assert order == list(range(10))
    assert bucket.waiting == 0


@virtual
async def test_k13_nobody_overtakes_those_who_wait() -> None:
    bucket, order = limits(inflight=1), []
    await bucket.enter()

    async def one(name: str) -> None:
        await bucket.enter()
        order.append(name)

    first = asyncio.create_task(one("first"))
    await asyncio.sleep(0)
    bucket.leave()
    second = asyncio.create_task(one("second"))
    await first
    bucket.leave()
    await second
    assert order == ["first", "second"]


@virtual
async def test_k13_after_a_pause_all_go_on() -> None:
    bucket, began = limits(inflight=2), clock()
    bucket.pause(7)
    bucket.pause(3)  # a shorter one changes nothing
    await asyncio.gather(bucket.enter(), bucket.enter())
    assert (clock() - began) / 1e9 == pytest.approx(7, abs=0.01)


@virtual
async def test_k11_the_lease_does_not_wait_for_binds_and_events_have_their_share() -> None:
    bucket, order = limits(inflight=1), []
    await bucket.enter("pods")

    async def one(lane: Lane) -> None:
        await bucket.enter(lane)
        order.append(lane[0])
        bucket.leave()

    lanes: list[Lane] = ["pods"] * 20 + ["other"] * 4 + ["urgent"]
    tasks = [asyncio.create_task(one(lane)) for lane in lanes]
    await asyncio.sleep(0)
    bucket.leave()
    await asyncio.gather(*tasks)
    assert "".join(order) == "u" + "ppppppp" + "o" + "ppppppp" + "o" + "pppppp" + "oo"


@virtual
async def test_who_gives_up_waiting_takes_no_turn() -> None:
    bucket = limits(inflight=1)
    await bucket.enter()
    waiting = [asyncio.create_task(bucket.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    # Cancelled when it has its turn already, and does not know it yet.
    bucket.leave()
    waiting[1].cancel()
    await asyncio.wait_for(waiting[2], 1)
    assert bucket.waiting == 0


@pytest.mark.parametrize(
    ("said", "paused"), [("7", 7), ("soon", 1), ("nan", 1), ("-5", 0), ("100000", 60)]
)
async def test_k13_retry_after_holds_every_worker_back(said: str, paused: float) -> None:
    api = FakeApi()
    async with api.serve(), client_of(api) as client:
        api.fault("GET /a", (429, {"Retry-After": said}))
        status, _ = await client.request("GET", "/a")
        before = client._limits._clock()
        await client.request("GET", "/b")
        assert status == 429
        assert (client._limits._clock() - before) / 1e9 == pytest.approx(paused, abs=0.001)


@pytest.mark.parametrize("waiting", [0, 100])
@virtual
async def test_q16_writes_to_placeholders_come_later_and_are_not_forgotten(waiting: int) -> None:
    """Behind 5,000 of them a bind waits for those under way only, and they have every eighth turn."""
    bucket, order = limits(inflight=4), []

    async def one(lane: Lane) -> None:
        await bucket.enter(lane)
        order.append(lane)
        await asyncio.sleep(1)
        bucket.leave(lane)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(50):
            tasks.create_task(one("placeholders"))
        await asyncio.sleep(0.5)
        assert order == ["placeholders"] * 2, "half of what may be under way"
        for _ in range(waiting):
            tasks.create_task(one("pods"))
    if waiting:
        first = order[2:102]
        assert first[:2] == ["pods", "pods"], "the other half was free"
        assert 80 <= first.count("pods") <= 95
    assert order.count("placeholders") == 50


@virtual
async def test_q16_placeholders_that_slow_the_others_down_get_fewer_turns() -> None:
    """On a server whose answers take 1 ms for each request under way, as one that is busy."""
    bucket, under_way, took = limits(inflight=32), 0, [0.0]

    async def one(lane: Lane) -> None:
        nonlocal under_way
        began = await bucket.enter(lane)
        under_way += 1
        await asyncio.sleep(under_way / 1_000)
        under_way -= 1
        bucket.leave(lane, began)
        if lane != "placeholders":
            took.append((clock() - began) / 1e6)

    async def pods(count: int, lane: Lane = "pods") -> float:
        """The median time of this many pods (ms), one each 20 ms."""
        del took[:]
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(one(lane))
                await asyncio.sleep(0.02)
        return sorted(took)[count // 2]

    assert await pods(20) == pytest.approx(1, abs=0.1)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(3_000):
            tasks.create_task(one("placeholders"))
        assert await pods(10, "members") > 15, "members of gangs wait for these very writes"
        assert bucket._allowed == 16
        assert await pods(10) < 17  # half of what may be under way, at first
        assert await pods(50) < 5
    assert await pods(50) == pytest.approx(1, abs=0.1)
    assert bucket._allowed == 16, "nothing is slow any more"


@virtual
async def test_q16_pauses_separate_placeholders_while_even_one_at_a_time_slows_the_others_down() -> (
    None
):
    """A pod takes 1 ms, and 20 ms while a placeholder is written, which takes 10 ms."""
    bucket, under_way, begun, left = limits(inflight=32), 0, 0, 2_000

    async def placeholders() -> None:
        nonlocal under_way, begun, left
        while left:
            left -= 1
            began = await bucket.enter("placeholders")
            under_way, begun = under_way + 1, begun + 1
            await asyncio.sleep(0.01)
            under_way -= 1
            bucket.leave("placeholders", began)

    async def pods(count: int) -> int:
        """The number of placeholders that are begun meanwhile."""
        before = begun
        for _ in range(count):
            began = await bucket.enter("pods")
            await asyncio.sleep(0.02 if under_way else 0.001)
            bucket.leave("pods", began)
            await asyncio.sleep(0.05)
        return begun - before

    await pods(10)
    assert not bucket.pods_wait
    async with asyncio.TaskGroup() as tasks:
        for _ in range(16):
            tasks.create_task(placeholders())
        await pods(50)
        assert bucket.pods_wait, "events leave the server to the pods"
        assert await pods(100) < 150, "one after the other they would be 500"
        await asyncio.sleep(TUNING.slow_forgotten_ns / 1e9 + 1)
        assert not bucket.pods_wait
        await asyncio.sleep(20)
        assert left == 0, "nobody is slowed down any more"
    assert bucket._allowed == 16
