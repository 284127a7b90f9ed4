"""What a soak has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Sample(NamedTuple):
    """At a ``minute`` of the soak: ``memory`` in bytes, live ``pods``, audits so far, differences that stand
    now, and those that ever stood, by kind."""

    minute: float
    memory: int
    pods: int
    audits: int
    standing: int
    stood: dict[str, int]

    def __str__(self) -> str:
        stood = ", ".join(f"{count} {kind}" for kind, count in sorted(self.stood.items())) or "none"
        return (
            f"minute {self.minute:6.0f}: {self.memory >> 20} MiB, {self.pods} pods, {self.audits} audits,"
            f" {self.standing} differences stand, have stood: {stood}"
        )


@dataclass
class Soaked:
    samples: list[Sample] = field(default_factory=list)
    #: what was done, what went wrong, and what is left at the end, by kind
    made: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    #: as they were told
    differences: list[str] = field(default_factory=list)
