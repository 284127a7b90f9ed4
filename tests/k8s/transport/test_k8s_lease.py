"""The lease: who leads, for how long, and when a leader has to end (K11)."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from quadriga.k8s.transport.requester import JSON, NoAnswer
from quadriga.k8s.writers.lease import Guarded, Lease, LeaseTimes
from tests.k8s.virtual_time import clock, freeze, seconds, virtual, wall

PATH = "/apis/coordination.k8s.io/v1/namespaces/quadriga/leases"


@dataclass
class Server:
    spec: dict[str, Any] | None = None
    version: int = 1
    down: bool = False
    hangs: bool = False
    refuses: int = 0
    writes: list[tuple[float, str, str]] = field(default_factory=list)
    #: called before a write is looked at
    before_write: Callable[[], None] = lambda: None

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        if self.down:
            raise NoAnswer("connection refused")
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.refuses:
            return self.refuses, b'{"message": "no right to do this"}'
        if method == "GET":
            assert path == f"{PATH}/quadriga"
            return (404, b"{}") if self.spec is None else (200, self._answer())
        assert body is not None
        self.before_write()
        sent = json.loads(body)
        if method == "POST":
            assert path == PATH
            if self.spec is not None:
                return 409, b'{"message": "already exists"}'
        elif sent["metadata"]["resourceVersion"] != str(self.version):
            return 409, b'{"message": "the object has been modified"}'
        self.replace(sent["spec"])
        self.writes.append((round(seconds(), 1), method, sent["spec"]["holderIdentity"]))
        return (201 if method == "POST" else 200), self._answer()

    def replace(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.version += 1

    def _answer(self) -> bytes:
        metadata = {"resourceVersion": str(self.version)}
        return json.dumps({"metadata": metadata, "spec": self.spec}).encode()


def candidate(server: Any, name: str) -> Lease:
    return Lease(
        server, namespace="quadriga", identity=name, random=lambda: 0.5, wall=wall, clock=clock
    )


async def leading() -> tuple[Server, Lease]:
    server = Server()
    lease = candidate(server, "a")
    await lease.acquire()
    return server, lease


def held_by(name: str, seconds: int = 15, **more: str) -> dict[str, Any]:
    return {"holderIdentity": name, "leaseDurationSeconds": seconds, **more}


@virtual
async def test_k11_the_first_candidate_makes_the_lease_and_again_when_it_was_deleted() -> None:
    server = Server()
    lease = candidate(server, "a")
    assert not lease.held
    await lease.acquire()
    assert lease.held
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-23T00:00:00.000000Z",
        "renewTime": "2026-11-23T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    server, leader = await leading()
    keeping = asyncio.create_task(leader.keep())
    server.spec = None
    await asyncio.sleep(3)
    assert server.writes[-1] == (2.0, "POST", "a")
    assert leader.held
    keeping.cancel()


@virtual
async def test_k11_a_leader_renews_every_two_seconds_and_survives_a_short_outage() -> None:
    server, lease = await leading()
    keeping = asyncio.create_task(lease.keep())
    await asyncio.sleep(60)
    assert lease.held
    assert not keeping.done()
    assert [at for at, _, _ in server.writes] == [float(at) for at in range(0, 60, 2)]
    assert server.spec["acquireTime"] == "2026-11-23T00:00:00.000000Z"
    assert server.spec["renewTime"] == "2026-11-23T00:00:58.000000Z"
    keeping.cancel()
    server, lease = await leading()
    keeping = asyncio.create_task(lease.keep())
    server.down = True
    await asyncio.sleep(7)
    server.down = False
    await asyncio.sleep(60)
    assert not keeping.done()
    assert lease.held
    keeping.cancel()


@virtual
async def test_k11_a_follower_waits_as_long_as_the_leader_renews() -> None:
    server, leader = await leading()
    follower = candidate(server, "b")
    keeping = asyncio.create_task(leader.keep())
    following = asyncio.create_task(follower.acquire())
    await asyncio.sleep(300)
    assert not following.done()
    assert not follower.held
    assert follower.holder == "a"

    keeping.cancel()  # kill -9
    died = seconds()
    await following
    assert 15 <= seconds() - died + 2 < 20
    assert follower.held
    assert not leader.held
    assert server.spec["leaseTransitions"] == 1


@virtual
async def test_k11_the_clock_of_a_follower_and_the_duration_of_the_holder_count() -> None:
    """The lease's times may be hours off: they come from another machine."""
    for renewed in ("2020-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"):
        before = seconds()
        await candidate(Server(held_by("a", renewTime=renewed)), "b").acquire()
        assert 15 <= seconds() - before < 18, "it was watched for its whole duration"
    before = seconds()
    await candidate(Server(held_by("a", 40)), "b").acquire()
    assert 40 <= seconds() - before < 43


@virtual
async def test_k11_a_conflict_while_taking_the_lease_is_no_success() -> None:
    server = Server(held_by("", 1))

    def rival() -> None:
        server.before_write = lambda: None
        server.replace(held_by("c"))

    server.before_write = rival
    await candidate(server, "a").acquire()
    assert 15 <= seconds() < 20, "the rival's lease was respected"


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("down", "the API server cannot be reached: connection refused"),
        ("hangs", "the API server does not answer in time"),
    ],
)
@virtual
async def test_k11_ten_seconds_without_renewal_and_it_is_lost(trouble: str, why: str) -> None:
    server, lease = await leading()
    setattr(server, trouble, True)
    reason = await lease.keep()
    assert 10 <= seconds() < 13, "before another one may take it"
    assert reason == f"lease quadriga/quadriga not renewed for 10 s: {why}"
    assert not lease.held


@virtual
async def test_t22_a_frozen_leader_ends_without_another_write() -> None:
    server, leader = await leading()
    keeping = asyncio.create_task(leader.keep())
    await asyncio.sleep(1)
    freeze(30)
    assert not leader.held, "the fence is down before anything runs"
    server.replace(held_by("b"))
    writes = len(server.writes)
    assert (await keeping).startswith("lease quadriga/quadriga not renewed for 10 s")
    assert len(server.writes) == writes


@virtual
async def test_t22_a_write_that_a_thawed_leader_tries_again_is_not_sent() -> None:
    server, pods = Server(), Server({"holderIdentity": "none"})
    leader = candidate(server, "a")
    guarded = Guarded(pods, lambda: leader.held)
    with pytest.raises(NoAnswer, match="the lease is over"):
        await guarded.request("GET", f"{PATH}/quadriga")
    await leader.acquire()
    assert (await guarded.request("GET", f"{PATH}/quadriga"))[0] == 200
    freeze(30)
    with pytest.raises(NoAnswer, match="the lease is over"):
        await guarded.request("GET", f"{PATH}/quadriga")


@virtual
async def test_k11_a_leader_whose_lease_was_taken_says_by_whom_and_gives_nothing_back() -> None:
    server, leader = await leading()
    server.replace(held_by("b"))
    assert await leader.keep() == "b has taken the lease quadriga/quadriga"
    assert not leader.held
    server = Server(held_by("b"))
    await candidate(server, "a").release()
    assert server.writes == []


@virtual
async def test_k11_a_clean_stop_gives_the_lease_back() -> None:
    server, leader = await leading()
    follower = candidate(server, "b")
    following = asyncio.create_task(follower.acquire())
    await asyncio.sleep(5)
    await leader.release()
    assert not leader.held
    assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
    released = seconds()
    await following
    assert seconds() - released < 3
    assert server.spec["leaseDurationSeconds"] == 15


@pytest.mark.parametrize("trouble", ["down", "hangs"])
@virtual
async def test_k11_giving_back_never_holds_up_a_stop(trouble: str) -> None:
    server, lease = await leading()
    setattr(server, trouble, True)
    await lease.release()
    assert seconds() <= 2


@virtual
async def test_k18_a_missing_right_is_told_and_awaited(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(refuses=403)
    acquiring = asyncio.create_task(candidate(server, "a").acquire())
    await asyncio.sleep(60)
    server.refuses = 0
    await acquiring
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == [
        "lease quadriga/quadriga: reading it, the API server answers 403: no right to do this"
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"spec": 3, "metadata": {}}', b"null"])
@virtual
async def test_an_answer_that_is_no_lease_is_no_lease(body: bytes) -> None:
    class Odd:
        async def request(self, *_: Any) -> tuple[int, bytes]:
            return 200, body

    lease = candidate(Odd(), "a")
    acquiring = asyncio.create_task(lease.acquire())
    await asyncio.sleep(60)
    assert not acquiring.done()
    assert not lease.held
    acquiring.cancel()


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 9), (0, 10, 2), (15, 10, 0)])
def test_times_that_cannot_work_are_refused(times: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="a lease of"):
        LeaseTimes(*times)
