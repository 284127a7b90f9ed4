"""The data of an explanation: checks with their numbers, and the holders of the missing room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quadriga.si.explained import FailedCheck

#: at most this number of holders is named in a check; it counts the others
HOLDERS: Final = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """An application that holds room which the ask needs.

    It holds ``node`` by a reservation for its ``ask``, or, as a gang that waits for placeholders, an
    ``amount`` of a queue's quota.
    """

    application: str
    ask: str = ""
    node: str = ""
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it is about, whether it passes, and its numbers in words.

    ``remedy`` is a change that alone makes the ask start at the next round, if there is one (Q15);
    ``verdict`` is a sentence that says what fails. ``until`` is what has to happen where no change of
    quotas, limits or nodes makes the check pass. For programs, a check of a quota, a limit or the room for a gang has
    its owner (``subject``), its resource ``type``, and its ``numbers`` by name: limit, used, kept (for
    gangs that have started), asked, headroom. ``node`` is the node that the text names, ``holders``
    are the first holders of the room, and ``held`` is the number of all holders.
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
    until: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All checks of an ask.

    ``reasons`` are the texts of failed checks, in order; ``verdict`` says what has to happen first.
    ``together`` are the changes that are needed together where no single one is enough; the last check
    says so as well.
    """

    key: str
    checks: tuple[Check, ...]
    verdict: str = field(default="", compare=False)
    together: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(check.text for check in self.checks if not check.passed)

    @property
    def failing(self) -> tuple[FailedCheck, ...]:
        """The checks that fail, in words only."""
        return tuple(
            FailedCheck(each.about, each.subject, each.text, each.remedy, each.verdict)
            for each in self.checks
            if not each.passed
        )

    @property
    def remedies(self) -> tuple[str, ...]:
        """The changes of which each alone makes the ask start (Q15)."""
        found = [check.remedy for check in self.checks if not check.passed and check.remedy]
        return tuple(dict.fromkeys(found))

    @property
    def hopeless(self) -> bool:
        """Whether the ask is larger than every node."""
        return any(not c.passed and c.about == "node sizes" for c in self.checks)
