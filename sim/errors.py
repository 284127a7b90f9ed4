"""The errors of a simulation."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Sequence


class SimulationError(RuntimeError):
    """The run found an error in the scheduler, or in its own input.

    `violations` are the violated invariants in words, if a check has failed.
    """

    def __init__(self, reason: str, violations: Sequence[str] = ()) -> None:
        super().__init__(reason, tuple(violations))
        self.reason = reason
        self.violations = tuple(violations)

    def __str__(self) -> str:
        return "; ".join((self.reason, *self.violations))


class ConfigurationRefused(SimulationError):
    """The scheduler rejects the queue configuration; the text says why."""
