"""Measurements, run from a checkout: ``python -m bench`` or ``python -m bench fsm --json``.

Each module here has a ``measure()`` that returns figures. What a test asserts is always a ratio of
two things measured in the same run, or a number of bytes; a time says something about one machine.
"""

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, with what it is and in which unit (``ns``, ``x`` for a ratio, ``bytes``)."""

    name: str
    value: float
    unit: str
