"""What can go wrong with a simulation itself."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ConfigurationRefused", "SimulationError"]


class SimulationError(RuntimeError):
    """The run found something wrong with the scheduler, or with what it was told to do.

    `violations` are the invariants that do not hold, in words, where it was a check that failed.
    """

    def __init__(self, reason: str, violations: Sequence[str] = ()) -> None:
        super().__init__(reason, tuple(violations))
        self.reason = reason
        self.violations = tuple(violations)

    def __str__(self) -> str:
        return "; ".join((self.reason, *self.violations))


class ConfigurationRefused(SimulationError):
    """The scheduler does not take the queue configuration, and says why."""
