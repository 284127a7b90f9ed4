"""What an explanation is made of: checks with their numbers, and who keeps room from the ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["HOLDERS", "Check", "Explanation", "Holder"]

#: holders that a check names; of more it gives the number
HOLDERS: Final = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """Who keeps room from the ask: an application, by the reservation of ``node`` for its ``ask``, or
    as a gang whose placeholders are still to come, by an ``amount`` of a queue's quota."""

    application: str
    ask: str = ""
    node: str = ""
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it is about, whether it passes, and its numbers in words.

    ``remedy`` is the smallest change that would make it pass, where one can be named, ``verdict`` a
    sentence that says what fails. For a reader who spells quantities and makes links, a check of a
    quota, a limit or the room for a gang says whose it is (``subject``), of which resource ``type``,
    and has its ``numbers`` by name: limit, used, kept (for gangs that have started), asked,
    headroom. ``node`` is the node that the text names, ``holders`` are the first of those who keep
    the room; ``held`` is the number of all.
    """

    about: str
    passed: bool
    text: str
    remedy: str = ""
    subject: str = ""
    type: str = ""
    numbers: tuple[tuple[str, int], ...] = ()
    verdict: str = ""
    node: str = ""
    holders: tuple[Holder, ...] = ()
    held: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """All checks of an ask. ``reasons`` are the texts of those that fail, in order; ``verdict`` says
    in one sentence what has to happen first."""

    key: str
    checks: tuple[Check, ...]
    verdict: str = field(default="", compare=False)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(check.text for check in self.checks if not check.passed)

    @property
    def remedies(self) -> tuple[str, ...]:
        return tuple(check.remedy for check in self.checks if not check.passed and check.remedy)

    @property
    def hopeless(self) -> bool:
        """Whether no node could take it even if it were empty."""
        return any(not c.passed and c.about == "node sizes" for c in self.checks)
