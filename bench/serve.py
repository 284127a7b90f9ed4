"""The scheduler as a service: ``quadriga serve`` in a process of its own, resource managers (RMs) in
others, gRPC on loopback between them.

Every ask needs exactly one allocation and every release exactly one confirmation: a lost or repeated
answer fails the measurement. *Burst* sends all asks at once, so its latencies are those of a queue;
*steady* is a rate that the server can sustain. Beside an RM that never reads its messages, the other
RMs must be served as well as without it. Beside *bulk* RMs, which send ten thousand asks in a message
as fast as they can, an RM with a few asks must be served soon, and another one must be registered soon.

The server and the RMs share the machine with other programs. Therefore the processor time of the
server is given beside the elapsed time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import grpc

from bench import Figure
from bench._support import sizes
from bench._support.crowd import Crowd, CrowdTold, Visitor, VisitorTold
from bench._support.rms import QUEUES, Task, Told
from quadriga import si
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from quadriga.sim.scripted.script import resource

#: A process must have started within this time (s).
_PATIENCE = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20
#: At most this much may wait for one RM, so that an RM that does not read reaches the bound soon.
_BACKLOG_MIB = 8
#: Time that the visitor runs alone, for comparison with its run beside bulk RMs (s).
_ALONE = 10.0
#: Asks of the visitor in a second, and registrations of other RMs beside it.
_ASKS_A_SECOND, _REGISTRATIONS_A_SECOND = 10.0, 1.0
#: The goals for asks and for registrations beside bulk RMs (ms).
_SOON, _REGISTERED = 100.0, 1000.0


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one measurement. ``placing`` and ``releasing`` are in s, ``busy`` is the server's
    processor time for both in s, and memory is in bytes."""

    told: Told
    busy: float
    memory: list[int]
    peak: int


def measure() -> list[Figure]:
    """Rates, percentiles of the latency and memory; and the same beside an RM that does not read."""
    rms, asks = (50, 2_000) if sizes.FULL else (10, 500)
    pods = rms * asks
    figures = []
    for batch in (1, 100):
        found = load(rms, asks, batch=batch)
        name = f"{rms} RMs, {pods:,} asks, {batch} a message"
        told = found.told
        figures += [
            Figure(f"{name}: lost or doubled", told.wrong, "", 0),
            Figure(f"{name}: allocations a second", pods / told.placing, "/s"),
            Figure(f"{name}: releases a second", pods / told.releasing, "/s"),
            Figure(
                f"{name}: processor time of an ask and its release", found.busy / pods * 1e6, "us"
            ),
            *_percentiles(f"{name}, burst", told.latencies),
            Figure(f"{name}: memory before", found.memory[0] / _MIB, "MiB"),
            Figure(f"{name}: memory at most", found.peak / _MIB, "MiB"),
            Figure(f"{name}: memory a pod", (found.peak - found.memory[0]) / pods, "bytes"),
        ]
    rate = 10.0 if sizes.FULL else 50.0
    count = min(asks, 300)
    for silent in (False, True):
        found = load(rms, count, rate=rate, silent=silent)
        name = f"{rms} RMs, {rate * rms:,.0f} asks a second" + (", one silent" if silent else "")
        figures += [
            Figure(f"{name}: lost or doubled", found.told.wrong, "", 0),
            *_percentiles(f"{name}, steady", found.told.latencies),
            Figure(f"{name}: memory at most", found.peak / _MIB, "MiB"),
        ]
    return figures + _beside_bulk(3, 1_000_000 if sizes.FULL else 50_000)


def _beside_bulk(rms: int, asks: int) -> list[Figure]:
    alone, beside, bulk = crowded(rms, asks, 10_000)
    name = f"beside {rms} RMs with {asks:,} asks each"
    lost = alone.wrong + beside.wrong + bulk.wrong
    figures = [
        Figure(f"{name}: lost or doubled", lost, "", 0),
        Figure(f"{name}: their allocations a second", bulk.allocations / bulk.placing, "/s"),
    ]
    for when, told, goal in (("alone", alone, None), (name, beside, _SOON)):
        what = f"{_ASKS_A_SECOND:g} asks a second {when}"
        for figure in _percentiles(what, told.latencies):
            if goal is not None and figure.name.endswith("p99"):
                figure = dataclasses.replace(figure, goal=goal)
            figures.append(figure)
        longest = max(told.registrations) * 1e3
        most = _REGISTERED if goal is not None else None
        figures.append(Figure(f"a registration {when}: longest", longest, "ms", most))
    return figures


def crowded(
    rms: int, asks: int, batch: int, alone: float = _ALONE
) -> tuple[VisitorTold, VisitorTold, CrowdTold]:
    """A visitor runs alone for some seconds, and another one beside the bulk ``rms`` until these have all
    their allocations. Returns the results of both visitors and of the bulk RMs."""
    names = tuple(f"bulk-{at}" for at in range(rms))
    with served("--max-backlog", "64") as (port, _):

        def visitor(name: str) -> Visitor:
            return Visitor(port, name, _ASKS_A_SECOND, _REGISTRATIONS_A_SECOND)

        with _processes([visitor("alone")], "bench._support.crowd") as [client]:
            _say(client, "go")
            sleep(alone)
            _say(client, "stop")
            before = VisitorTold(**json.loads(_line(client)))
        tasks: list[Task | Crowd | Visitor] = [visitor("beside"), Crowd(port, names, asks, batch)]
        with _processes(tasks, "bench._support.crowd") as [client, crowd]:
            _say(client, "go")
            _say(crowd, "go")
            bulk = CrowdTold(**json.loads(_line(crowd)))
            _say(client, "stop")
            beside = VisitorTold(**json.loads(_line(client)))
    if before.wrong or beside.wrong or bulk.wrong or bulk.allocations != rms * asks:
        raise AssertionError(f"lost or doubled: {before.wrong}, {beside.wrong}, {bulk}")
    return before, beside, bulk


def _percentiles(name: str, latencies: Sequence[float]) -> Iterator[Figure]:
    row = sorted(latencies)
    for share, word in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (1.0, "max")):
        at = min(len(row) - 1, int(share * len(row)))
        yield Figure(f"{name}: latency {word}", row[at] * 1e3, "ms")


def load(
    rms: int,
    asks: int,
    *,
    batch: int = 1,
    rate: float = 0.0,
    silent: bool = False,
    processes: int = 2,
) -> Run:
    """Each of the ``rms`` sends ``asks`` asks; ``processes`` processes share the RMs."""
    with served() as (port, pid):
        watch = _Watch(pid)
        with silence(port) if silent else _nothing():
            names = [f"rm-{at:02}" for at in range(rms)]
            shares = [names[first::processes] for first in range(min(processes, rms))]
            tasks = [Task(port, tuple(some), asks, batch, rate) for some in shares]
            with _processes(tasks) as clients:
                busy = watch.busy()
                for client in clients:
                    _say(client, "go")
                told = [Told(**json.loads(_line(client))) for client in clients]
                busy = watch.busy() - busy
        memory, peak = watch.end()
    whole = Told()
    for one in told:
        whole.latencies += one.latencies
        whole.allocations += one.allocations
        whole.confirmations += one.confirmations
        whole.wrong += one.wrong
        whole.messages += one.messages
        whole.placing = max(whole.placing, one.placing)
        whole.releasing = max(whole.releasing, one.releasing)
    if whole.wrong or whole.allocations != rms * asks or whole.confirmations != rms * asks:
        raise AssertionError(
            f"{whole.allocations} allocations, {whole.confirmations} confirmations"
            f" of {rms * asks}, {whole.wrong} wrong"
        )
    return Run(whole, busy, memory, peak)


@contextmanager
def served(*options: str) -> Iterator[tuple[int, int]]:
    """A running server; yields its port and its process id."""
    with tempfile.TemporaryDirectory() as folder:
        ports = Path(folder) / "ports"
        words = ["serve", "--http", "off", "--grpc", "0", "--ports-file", str(ports)]
        words += ["--log-level", "warning", "--max-backlog", str(_BACKLOG_MIB), *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "quadriga.cli", *words], stdout=subprocess.DEVNULL
        )
        try:
            end = monotonic() + _PATIENCE
            while not ports.exists():
                if process.poll() is not None or monotonic() > end:
                    raise RuntimeError("the server has not started")
                sleep(0.02)
            yield json.loads(ports.read_text(encoding="utf-8"))["grpc"], process.pid
        finally:
            process.terminate()
            if code := process.wait(_PATIENCE):
                raise RuntimeError(f"the server ended with {code}")


class _Watch:
    """The memory and the processor time of a process (Linux)."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._memory = [self._status("VmRSS")]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _status(self, name: str) -> int:
        text = (self._folder / "status").read_text(encoding="ascii")
        return int(text.partition(f"{name}:")[2].split()[0]) * 1024

    def _look(self) -> None:
        with suppress(OSError):  # the process has ended
            while not self._over.wait(0.25):
                self._memory.append(self._status("VmRSS"))

    def busy(self) -> float:
        """Processor time of all threads until now (s)."""
        words = (self._folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def end(self) -> tuple[list[int], int]:
        """The bytes over time, and the largest number."""
        self._over.set()
        self._thread.join()
        return self._memory, self._status("VmHWM")


@contextmanager
def _processes(
    tasks: Sequence[Task | Crowd | Visitor], module: str = "bench._support.rms"
) -> Iterator[list[subprocess.Popen[str]]]:
    clients = []
    try:
        for task in tasks:
            client = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[1],
            )
            clients.append(client)
            _say(client, json.dumps(dataclasses.asdict(task)))
        for client in clients:
            assert _line(client) == "ready"
        yield clients
    finally:
        for client in clients:
            client.terminate()
            with client:
                client.wait()


def _say(client: subprocess.Popen[str], line: str) -> None:
    assert client.stdin is not None
    client.stdin.write(line + "\n")
    client.stdin.flush()


def _line(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    line = client.stdout.readline().rstrip("\n")
    if not line:
        raise RuntimeError("the resource managers have ended")
    return line


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def silence(port: int) -> Iterator[None]:
    """Inside the block one RM asks for more than may wait for it and reads nothing."""
    asking = threading.Event()
    over = threading.Event()

    def run() -> None:
        asyncio.run(_silent(port, asking, over))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        if not asking.wait(_PATIENCE):
            raise RuntimeError("the silent resource manager has not begun")
        yield
    finally:
        over.set()
        thread.join()


async def _silent(port: int, asking: threading.Event, over: threading.Event) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = SchedulerStub(channel)
        request = si.RegisterResourceManagerRequest(rmID="silent", config=QUEUES)
        await stub.RegisterResourceManager(request)
        metadata = (("quadriga-rm-id", "silent"),)
        nodes: Any = stub.UpdateNode(metadata=metadata)
        apps: Any = stub.UpdateApplication(metadata=metadata)
        pods: Any = stub.UpdateAllocation(metadata=metadata)
        info = si.NodeInfo(
            nodeID="n", action=si.NodeInfo.CREATE, schedulableResource=resource({"vcore": 10**12})
        )
        await nodes.write(si.NodeRequest(nodes=[info]))
        user = si.UserGroupInformation(user="user", groups=["group"])
        app = si.AddApplicationRequest(applicationID="app", queueName="root.a", ugi=user)
        await apps.write(si.ApplicationRequest(new=[app]))
        number = 0
        while not over.is_set():
            more = si.AllocationRequest()
            for _ in range(100):
                more.asks.add(
                    # long keys: the waiting messages reach their bound soon
                    allocationKey=f"pod-{number}-{'x' * 1000}",
                    applicationID="app",
                    resourceAsk=resource({"vcore": 1}),
                    maxAllocations=1,
                )
                number += 1
            try:
                await asyncio.wait_for(pods.write(more), 0.5)
            except TimeoutError:  # the server does not read from this RM any more
                asking.set()
                while not over.is_set():
                    await asyncio.sleep(0.05)
        for call in (nodes, apps, pods):
            call.cancel()
