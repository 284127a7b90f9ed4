"""A broken rule, and the shortest way to it: as text, as a sequence diagram and as a test."""

from __future__ import annotations

import re

from quadriga.fsm.checking.world import Happening, Move

KINDS = {
    "always": "does not hold any more",
    "possible": "is not possible",
    "eventually": "is not reached any more",
    "refused": "a message is illegal",
    "raised": "a step fails",
}


class Violation(AssertionError):
    """A rule that does not hold: ``kind`` (``always``, ``possible``, ``eventually``; ``refused`` and ``raised``
    without a rule), ``rule``, and the shortest way to it: ``moves`` and ``happenings``."""

    def __init__(
        self,
        kind: str,
        rule: str,
        moves: tuple[Move, ...] = (),
        happenings: tuple[Happening, ...] = (),
    ) -> None:
        self.kind, self.rule, self.moves, self.happenings = kind, rule, moves, happenings
        super().__init__(kind, rule, moves, happenings)

    def __str__(self) -> str:
        after = "" if self.kind == "possible" else f" after {len(self.moves)} moves"
        lines = [f"{KINDS[self.kind]}{after}: {self.rule}"]
        lines += [f"  {number}. {each}" for number, each in enumerate(self.happenings, 1)]
        return "\n".join(lines)

    def as_mermaid(self) -> str:
        """The way as a sequence diagram of Mermaid. Lost messages end in a cross."""
        names = dict.fromkeys(n for h in self.happenings for n in (h.sender, h.receiver))
        ids = {name: f"p{number}" for number, name in enumerate(names)}
        lines = ["sequenceDiagram"]
        lines += [f"    participant {ids[name]} as {_escape(name)}" for name in names]
        for each in self.happenings:
            arrow = "-x" if each.kind == "lost" else "->>"
            there = ids[each.receiver]
            lines.append(f"    {ids[each.sender]}{arrow}{there}: {_escape(each.label)}")
            lines.append(f"    Note right of {there}: {_escape(each.note)}")
        if names:
            first, last = ids[next(iter(names))], list(ids.values())[-1]
            over = first if first == last else f"{first},{last}"
            lines.append(f"    Note over {over}: {_escape(f'{KINDS[self.kind]}: {self.rule}')}")
        return "\n".join(lines) + "\n"

    def as_test(self, system: str) -> str:
        """The way as a test for pytest, which fails as long as the rule is broken in this way.

        ``system`` is ``module:NAME`` of the ``System``; values of facts appear in it as their ``repr``.
        """
        module, _, name = system.partition(":")
        title = re.sub(r"\W+", "_", self.rule.lower()).strip("_")[:70]
        use, body = (
            "Move, replay",
            ["replay(", f"    {name},", *(f"    {move!r}," for move in self.moves), ")"],
        )
        if self.kind == "possible":
            use, body = "check", [f"check({name})"]
        return (
            f"from quadriga.fsm.checking import {use}\nfrom {module} import {name}\n\n\n"
            f'def test_{title}() -> None:\n    """{KINDS[self.kind].capitalize()}."""\n    '
            + "\n    ".join(body)
            + "\n"
        )


def _escape(text: str) -> str:
    """Mermaid ends a text at a semicolon and reads ``#`` as the start of an entity."""
    return re.sub("[#;]", lambda found: f"#{ord(found[0])};", " ".join(text.split()))
