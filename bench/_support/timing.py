"""The clock of all measurements, and the floor with which costs are compared."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean, median
from time import process_time_ns
from types import FrameType
from typing import Any

from quadriga import si
from quadriga.cli.memory import look_less_often
from quadriga.sim.scripted.script import resource

ROUNDS = 3


class Clock:
    """The processor time of this process spent inside ``with clock:`` (ns)."""

    def __init__(self) -> None:
        self.spent = 0

    def __enter__(self) -> Clock:
        self._began = process_time_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        self.spent += process_time_ns() - self._began


class Opcodes:
    """The instructions of Python, in functions that are called inside ``with opcodes:``. Other programs on the
    machine do not change their number. What one instruction does in C is not looked at."""

    def __init__(self) -> None:
        self.spent = 0

    def __enter__(self) -> Opcodes:
        sys._getframe().f_trace_opcodes = True  # else some versions report none
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._before)  # coverage has one and would measure nothing more

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, frame: FrameType, event: str, _: object) -> Any:
        self.spent += event == "opcode"
        return self._executed


@contextmanager
def service_memory() -> Iterator[None]:
    """Set the garbage collector as the command line does, after collecting earlier garbage."""
    before = gc.get_threshold()
    gc.collect()
    look_less_often()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def floor(calls: int = 5_000) -> float:
    """Time to copy a prepared SI Allocation, fill it in and serialise it (ns): the least that a decision
    can cost.

    It is measured again beside every figure, or during its measurement (``Pace``).
    """
    template = si.Allocation(
        applicationID="app-1",
        partitionName="default",
        resourcePerAlloc=resource({"vcore": 1000, "memory": 10**6}),
    )

    def once() -> None:
        message = si.Allocation()
        message.CopyFrom(template)
        message.allocationKey = "pod-1"
        message.UUID = "pod-1-0"
        message.nodeID = "n000001"
        message.SerializeToString()

    return per_call(once, calls)


class Pace:
    """The floor during a measurement. Other programs on the machine slow the floor and the measured code,
    and not evenly, so the floor is measured again from time to time."""

    def __init__(self) -> None:
        self._seen: list[float] = []
        self.look()

    def look(self) -> None:
        self._seen.append(floor(500))

    @property
    def floor(self) -> float:
        """The mean of the floors measured so far (ns)."""
        return mean(self._seen)


def per_call(work: Callable[[], object], calls: int = 2_000) -> float:
    """The time of one call (ns): the median of several turns."""

    def turn() -> float:
        with Clock() as clock:
            for _ in range(calls):
                work()
        return clock.spent / calls

    return median(turn() for _ in range(ROUNDS))


def median_of(work: Callable[[], float], rounds: int = ROUNDS) -> float:
    return median(work() for _ in range(rounds))
