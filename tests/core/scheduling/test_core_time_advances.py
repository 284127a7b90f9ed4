"""No timer makes a driver loop, none depends on the time of day, and waits for the owner are measured (Q16)."""

import logging
import random
import threading
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preemption_side import TWO_QUEUES, ask, filled

from quadriga.base.times import SECOND
from quadriga.core import Options
from quadriga.core.driver.clock import Standstill, SteadyClock
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.work_queue import WorkItem, WorkQueue, described
from quadriga.fsm import QUEUE
from quadriga.si import AllocationAsk, AllocationRequest, NodeInfo, NodeRequest
from quadriga.si.constants import TAG_CREATION_TIME
from quadriga.sim import Simulation, SimulationError
from quadriga.sim.scripted.script import Script
from quadriga.sim.workload import embedded


def follow(script: Script, seconds: float, most: int = 1000) -> list[int]:
    """Do what ``next_deadline`` says for so long; the instants (ns) at which it was due."""
    end, instants = script.now + round(seconds * SECOND), []
    while (due := script.scheduler.next_deadline()) is not None and due <= end:
        instants.append(max(due, script.now))
        assert len(instants) < most, script.scheduler.describe_next_timer()
        script.advance((instants[-1] - script.now) / SECOND)
        script.schedule()
    return instants


# -- the scheduler ---------------------------------------------------------------------------------


def stopped_with_a_retry_due() -> Script:
    """An ask has found no victims and may try again; then its only node is gone."""
    script = filled(size=2)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    assert script.scheduler.partition().failed_preemptions.by_shape
    script.node("n1", NodeInfo.DECOMISSION)
    return script


def test_q16_a_retry_of_preemption_waits_for_a_node() -> None:
    script = stopped_with_a_retry_due()
    assert len(follow(script, 600)) < 100
    script.node("n2", vcore=2)
    assert "new high/h-0 on n2" in script.schedule()


def test_q16_a_retry_of_preemption_is_not_due_for_ever_in_a_stopped_partition() -> None:
    script = filled(size=2)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.release("low", "n1-0-0")
    QUEUE.fire(script.scheduler.partition(), "stop")
    assert len(follow(script, 60)) < 100


@pytest.mark.parametrize("asked", [0, 1])
def test_q16_an_old_gang_is_looked_at_seldom(asked: int) -> None:
    """Less its age, its timeout is a millisecond; or a client says so."""
    script = Script(options=Options())
    script.node("n1", vcore=4)
    script.advance(7200)
    script.app("g", gang={"vcore": 8}, timeout_ms=asked, tags={TAG_CREATION_TIME: "0"})
    script.ask("g", "a", "b", vcore=4, group="tg", placeholder=True)
    script.schedule()
    assert len(follow(script, 3600)) < 60


GATHERS = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        properties: {gang.gather.after: 1m}
        queues:
          - name: default
            resources: {max: {vcore: 8m}}
          - name: other
"""


def test_q9_a_gang_is_no_longer_protected_when_it_lacks_quota() -> None:
    script = Script(GATHERS, options=Options())
    for name in ("n1", "n2", "n3"):
        script.node(name, vcore=4)
    script.app("busy", "root.other")
    script.ask("busy", "x", "y", vcore=3)
    script.schedule()
    script.app("g", gang={"vcore": 8})
    script.ask("g", "a", "b", vcore=4, group="tg", placeholder=True)
    script.schedule()
    follow(script, 61)
    partition = script.scheduler.partition()
    assert partition.waiting.protected is not None
    assert partition.node_index.planned is not None
    script.app("quick", "root.default")
    script.ask("quick", "z", vcore=1)
    script.schedule()
    for key in ("x-0", "y-0"):
        script.release("busy", key)  # all members fit the nodes, and the gang is tried
    script.schedule()
    assert partition.waiting.protected is None
    assert partition.node_index.planned is None


@settings(max_examples=max(10, settings.default.max_examples // 4))  # each is dear
@given(seed=st.integers(0, 1 << 32))
def test_q16_time_advances_in_any_world(seed: int) -> None:
    """Gangs of any age and timeout, preemption, lost nodes, and a driver that follows the deadlines."""
    rng = random.Random(seed)
    config = TWO_QUEUES.replace(
        "submitacl: '*'", "submitacl: '*', properties: {gang.gather.after: 1s}"
    )
    script = Script(config, options=Options(), check=False)
    script.advance(rng.randrange(5000))
    numbers = count()
    nodes: list[str] = []
    for _ in range(12):
        name = f"x{next(numbers)}"
        match rng.choice(["node", "lost", "gang", "asks", "release", "time"]):
            case "node":
                nodes.append(name)
                script.node(name, vcore=rng.randrange(1, 5))
            case "lost" if nodes:
                script.node(nodes.pop(rng.randrange(len(nodes))), NodeInfo.DECOMISSION)
            case "gang":
                tags = {TAG_CREATION_TIME: str(rng.randrange(5000))} if rng.random() < 0.5 else {}
                timeout = rng.choice([0, 1, 20, 5000])
                queue = rng.choice(["root.low", "root.high"])
                style = rng.choice(["Soft", "Hard"])
                script.app(
                    name, queue, gang={"vcore": 4}, style=style, timeout_ms=timeout, tags=tags
                )
                keys = [f"{name}-{at}" for at in range(rng.randrange(3))]
                script.ask(name, *keys, vcore=2, group="tg", placeholder=True)
            case "asks":
                script.app(name, rng.choice(["root.low", "root.high"]))
                ask(script, name, *(f"{name}-{at}" for at in range(3)), vcore=rng.randrange(1, 4))
            case "release" if script.outstanding:
                script.confirm()
        script.schedule()
        follow(script, rng.choice([0.1, 5, 100]), 3000)
    if rng.random() < 0.5:
        script.scheduler.disconnect("rm", script.now)
    follow(script, 3600, 3000)


# -- drivers ---------------------------------------------------------------------------------------


def test_q16_a_standstill_is_told_once_and_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    standstill = Standstill(lambda: "application.gang_idle of g")
    with caplog.at_level(logging.ERROR, "quadriga.service"):
        pauses = [standstill.pause(changed=False) for _ in range(1020)]
    assert pauses[:999] == [0.0] * 999
    assert (pauses[999:1002], pauses[-1]) == ([0.01, 0.02, 0.04], 1.0)
    (record,) = caplog.records
    assert "application.gang_idle of g" in record.getMessage()
    assert standstill.pause(changed=True) == 0.0
    assert standstill.pause(changed=False) == 0.0


def test_q16_a_simulation_in_which_time_stands_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(embedded(days=1))
    monkeypatch.setattr("quadriga.sim.simulation._MAX_ROUNDS", 100)
    monkeypatch.setattr(type(simulation._core), "next_deadline", lambda core: core.now)
    with pytest.raises(SimulationError, match="time stands still at .*: timer "):
        simulation.run()


class Clocks:
    """A time of day that somebody sets, and a monotonic time."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 10**18, 0
        self.steady = SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def pass_by(self, seconds: float) -> float:
        """Let time pass; how much of it the steady clock shows."""
        before = self.steady()
        self.wall += round(seconds * SECOND)
        self.monotonic += round(seconds * SECOND)
        return (self.steady() - before) / SECOND


def test_q16_timers_do_not_follow_the_time_of_day() -> None:
    clocks = Clocks()
    assert clocks.pass_by(3) == 3
    clocks.wall += 3600 * SECOND
    assert clocks.pass_by(4) == pytest.approx(4.2)
    clocks.wall -= 3600 * SECOND
    assert clocks.pass_by(1) == pytest.approx(0.95)


def test_q16_the_clock_comes_back_to_the_time_of_day_and_never_goes_back() -> None:
    clocks = Clocks()
    clocks.wall -= 10 * SECOND
    for _ in range(300):
        assert clocks.pass_by(1) > 0
    assert clocks.steady() == clocks.wall


def item(rm_id: str, request: Any = None) -> WorkItem:
    return WorkItem(partial(list, request or ()), Future(), rm_id)


def test_q16_the_oldest_request_of_each_rm_and_all_waiting_times_are_measured() -> None:
    now = 0
    queue = WorkQueue(threading.Thread(), 256, lambda: now)
    queue.put(item("a"))
    now = 3 * SECOND
    queue.put(item("b"))
    chunked = queue.take()
    assert chunked is not None
    queue.put_back(chunked)  # it waits until its last chunk is taken
    queue.put(item(""))
    now = 4 * SECOND
    assert queue.delays() == {"a": 4 * SECOND, "b": SECOND}
    while queue.take() is not None:
        pass
    assert queue.delays() == {}
    assert (queue.taken, queue.waited) == (3, 8 * SECOND)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            AllocationRequest(rmID="rm", asks=[AllocationAsk(allocationKey="ask-1")]),
            "AllocationRequest of rm with 1 items, the first of asks is 'ask-1'",
        ),
        (
            NodeRequest(rmID="rm", nodes=[NodeInfo(nodeID="n" * 5_000)]),
            f"NodeRequest of rm with 1 items, the first of nodes is '{'n' * 100}'",
        ),
        (None, "a look at the scheduler of rm"),
    ],
)
def test_q16_the_watchdog_names_the_request_and_its_first_item(request_: Any, text: str) -> None:
    work = partial(list, request_) if request_ is not None else partial(list)
    assert described(WorkItem(work, Future(), "rm")) == text


def test_q16_a_service_whose_owner_does_not_come_back_says_what_it_is_at() -> None:
    """A read blocks the owner until the test lets it go on; a request behind it waits."""
    service = SchedulerService()
    at_it, go_on = threading.Event(), threading.Event()

    def block(scheduler: object) -> None:
        at_it.set()
        go_on.wait(30)

    try:
        done = service.read_later(block)
        assert at_it.wait(30)
        waits = service.submit(AllocationRequest(rmID="rm"))
        said = service.slow(-1)
        assert said.startswith("its loop has been at a look at the scheduler for 0.")
        assert "a request of rm has waited for 0." in said
        assert service.slow(3600 * SECOND) == ""
    finally:
        go_on.set()
        done.result(30)
        assert waits.exception(30) is not None
        service.stop()
    assert service.delays() == {}
    assert service.taken_and_waited[0] == 1
