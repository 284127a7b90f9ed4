"""The lease: who leads, for how long, and when a leader has to end (K11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from quadriga.k8s.api.lease import Guarded, Lease, LeaseTimes
from quadriga.k8s.api.requester import JSON, NoAnswer
from tests.k8s.virtual_time import clock, freeze, run, wall

PATH = "/apis/coordination.k8s.io/v1/namespaces/quadriga/leases"


@dataclass
class Server:
    """Keeps one lease, as the API server does."""

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
        at = (clock() - 1_000_000_000_000) / 1e9
        self.writes.append((round(at, 1), method, sent["spec"]["holderIdentity"]))
        return (201 if method == "POST" else 200), self._answer()

    def replace(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.version += 1

    def _answer(self) -> bytes:
        metadata = {"resourceVersion": str(self.version)}
        return json.dumps({"metadata": metadata, "spec": self.spec}).encode()


def candidate(server: Server, name: str) -> Lease:
    return Lease(
        server,
        namespace="quadriga",
        identity=name,
        random=lambda: 0.5,
        wall=wall,
        clock=clock,
    )


def scene(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(work())


def seconds() -> float:
    return (clock() - 1_000_000_000_000) / 1e9


def test_k11_the_first_candidate_makes_the_lease() -> None:
    async def work() -> None:
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

    scene(work)


def test_k11_a_leader_renews_every_two_seconds() -> None:
    async def work() -> None:
        server = Server()
        lease = candidate(server, "a")
        await lease.acquire()
        keeping = asyncio.create_task(lease.keep())
        await asyncio.sleep(60)
        assert lease.held
        assert not keeping.done()
        assert [at for at, _, _ in server.writes] == [float(at) for at in range(0, 60, 2)]
        assert server.spec is not None
        assert server.spec["acquireTime"] == "2026-11-23T00:00:00.000000Z"
        assert server.spec["renewTime"] == "2026-11-23T00:00:58.000000Z"
        keeping.cancel()

    scene(work)


def test_k11_a_follower_waits_as_long_as_the_leader_renews() -> None:
    async def work() -> None:
        server = Server()
        leader, follower = candidate(server, "a"), candidate(server, "b")
        await leader.acquire()
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
        assert server.spec is not None
        assert server.spec["leaseTransitions"] == 1

    scene(work)


def test_k11_only_the_own_clock_counts() -> None:
    """The lease's times may be hours off: they come from another machine."""

    async def work() -> None:
        old = {"holderIdentity": "a", "leaseDurationSeconds": 15}
        server = Server({**old, "renewTime": "2020-01-01T00:00:00.000000Z"})
        lease = candidate(server, "b")
        await lease.acquire()
        assert 15 <= seconds() < 18, "it was watched for its whole duration, and did not change"

        server = Server({**old, "renewTime": "2099-01-01T00:00:00.000000Z"})
        before = seconds()
        await candidate(server, "b").acquire()
        assert 15 <= seconds() - before < 18

    scene(work)


def test_k11_the_holder_says_how_long_its_lease_lasts() -> None:
    async def work() -> None:
        server = Server({"holderIdentity": "a", "leaseDurationSeconds": 40})
        await candidate(server, "b").acquire()
        assert 40 <= seconds() < 43

    scene(work)


def test_k11_of_two_candidates_one_becomes_the_leader() -> None:
    async def work() -> None:
        server = Server()
        first, second = candidate(server, "a"), candidate(server, "b")
        tasks = [asyncio.create_task(each.acquire()) for each in (first, second)]
        await asyncio.sleep(5)
        assert [task.done() for task in tasks] == [True, False]
        assert (first.held, second.held) == (True, False)
        tasks[1].cancel()

    scene(work)


def test_k11_a_conflict_while_taking_the_lease_is_no_success() -> None:
    async def work() -> None:
        server = Server({"holderIdentity": "", "leaseDurationSeconds": 1})

        def rival() -> None:
            server.before_write = lambda: None
            server.replace({"holderIdentity": "c", "leaseDurationSeconds": 15})

        server.before_write = rival
        lease = candidate(server, "a")
        await lease.acquire()
        assert 15 <= seconds() < 20, "the rival's lease was respected"

    scene(work)


def test_k11_a_leader_that_cannot_renew_for_ten_seconds_has_lost_the_lease() -> None:
    async def work() -> None:
        server = Server()
        lease = candidate(server, "a")
        await lease.acquire()
        server.down = True
        reason = await lease.keep()
        assert 10 <= seconds() < 13, "before another one may take it"
        assert reason == (
            "lease quadriga/quadriga not renewed for 10 s:"
            " the API server cannot be reached: connection refused"
        )
        assert not lease.held

    scene(work)


def test_k11_a_request_that_hangs_does_not_keep_the_leader_alive() -> None:
    async def work() -> None:
        server = Server()
        lease = candidate(server, "a")
        await lease.acquire()
        server.hangs = True
        reason = await lease.keep()
        assert seconds() == pytest.approx(12, abs=2)
        assert "does not answer in time" in reason

    scene(work)


def test_k11_a_short_outage_is_survived() -> None:
    async def work() -> None:
        server = Server()
        lease = candidate(server, "a")
        await lease.acquire()
        keeping = asyncio.create_task(lease.keep())
        server.down = True
        await asyncio.sleep(7)
        server.down = False
        await asyncio.sleep(60)
        assert not keeping.done()
        assert lease.held
        keeping.cancel()

    scene(work)


def test_t22_a_frozen_leader_ends_without_another_write() -> None:
    async def work() -> None:
        server = Server()
        leader = candidate(server, "a")
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        await asyncio.sleep(1)
        freeze(30)
        assert not leader.held, "the fence is down before anything runs"
        server.replace({"holderIdentity": "b", "leaseDurationSeconds": 15})
        writes = len(server.writes)
        reason = await keeping
        assert reason.startswith("lease quadriga/quadriga not renewed for 10 s")
        assert len(server.writes) == writes

    scene(work)


def test_t22_a_write_that_a_thawed_leader_tries_again_is_not_sent() -> None:
    async def work() -> None:
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

    scene(work)


def test_k11_a_leader_whose_lease_was_taken_says_by_whom() -> None:
    async def work() -> None:
        server = Server()
        leader = candidate(server, "a")
        await leader.acquire()
        server.replace({"holderIdentity": "b", "leaseDurationSeconds": 15})
        assert await leader.keep() == "b has taken the lease quadriga/quadriga"
        assert not leader.held

    scene(work)


def test_k11_a_lease_that_somebody_deleted_is_made_again() -> None:
    async def work() -> None:
        server = Server()
        leader = candidate(server, "a")
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        server.spec = None
        await asyncio.sleep(3)
        assert server.writes[-1] == (2.0, "POST", "a")
        assert leader.held
        keeping.cancel()

    scene(work)


def test_k11_a_clean_stop_gives_the_lease_back() -> None:
    async def work() -> None:
        server = Server()
        leader, follower = candidate(server, "a"), candidate(server, "b")
        await leader.acquire()
        following = asyncio.create_task(follower.acquire())
        await asyncio.sleep(5)
        await leader.release()
        assert not leader.held
        assert server.spec is not None
        assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
        released = seconds()
        await following
        assert seconds() - released < 3
        assert server.spec["leaseDurationSeconds"] == 15

    scene(work)


@pytest.mark.parametrize("trouble", ["down", "hangs"])
def test_k11_giving_back_never_holds_up_a_stop(trouble: str) -> None:
    async def work() -> None:
        server = Server()
        lease = candidate(server, "a")
        await lease.acquire()
        setattr(server, trouble, True)
        await lease.release()
        assert seconds() <= 2

    scene(work)


def test_k11_what_is_not_held_is_not_given_back() -> None:
    async def work() -> None:
        server = Server({"holderIdentity": "b", "leaseDurationSeconds": 15})
        await candidate(server, "a").release()
        assert server.writes == []

    scene(work)


def test_k18_a_missing_right_is_said_once_and_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        server = Server(refuses=403)
        lease = candidate(server, "a")
        acquiring = asyncio.create_task(lease.acquire())
        await asyncio.sleep(60)
        server.refuses = 0
        await acquiring

    scene(work)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == [
        "lease quadriga/quadriga: reading it, the API server answers 403: no right to do this"
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"spec": 3, "metadata": {}}', b"null"])
def test_an_answer_that_is_no_lease_is_no_lease(body: bytes) -> None:
    async def work() -> None:
        class Odd:
            async def request(self, *_: Any) -> tuple[int, bytes]:
                return 200, body

        server = Odd()
        lease = Lease(
            server, namespace="q", identity="a", random=lambda: 0.5, wall=wall, clock=clock
        )
        acquiring = asyncio.create_task(lease.acquire())
        await asyncio.sleep(60)
        assert not acquiring.done()
        assert not lease.held
        acquiring.cancel()

    scene(work)


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 9), (0, 10, 2), (15, 10, 0)])
def test_times_that_cannot_work_are_refused(times: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="a lease of"):
        LeaseTimes(*times)
