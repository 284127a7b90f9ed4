"""Measurements, run from a checkout: ``python -m bench`` or ``python -m bench fsm --json``.

Each module here that does not begin with an underscore has a ``measure()`` that returns figures.
Times are the processor's, of this one process, so that what else the machine does disturbs them
little. Whatever is compared is a ratio of two things measured in the same run, or a number of bytes:
a time by itself says something about one machine.
"""

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: what it is, in which unit (``ns``, ``floors``, ``x`` for a ratio, ``bytes``), and
    the most that it should be, where there is such a goal. What is measured in floors has none: how dear
    Python is beside protobuf differs from machine to machine."""

    name: str
    value: float
    unit: str
    goal: float | None = None
