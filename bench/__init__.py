"""Measurements, run from a checkout: ``python -m bench`` or ``python -m bench fsm --json``.

Every module here whose name does not begin with an underscore has a ``measure()`` that returns
figures. Times are processor time of this process, so other programs on the machine disturb them
little. A comparison is a ratio of two things measured in the same run, or a number of bytes, because
a time alone depends on the machine. ``bench.quality`` alone is no measurement of costs: it compares
schedules.
"""

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its name, its unit (``ns``, ``floors``, ``x`` for a ratio, ``bytes``) and, if
    there is a goal, the largest value allowed. Figures in floors have no goal: the ratio between Python
    and protobuf differs from machine to machine."""

    name: str
    value: float
    unit: str
    goal: float | None = None
