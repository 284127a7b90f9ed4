"""Q15: what an explanation says that helps is carried out, in random worlds, and the ask starts."""

from __future__ import annotations

from typing import Any

import pytest
from remedy_worlds import GIB, World, claims_of, count_claims


@pytest.mark.parametrize("first", [0, 4, 8])
def test_q15_what_is_said_to_help_helps(first: int) -> None:
    counts, false = count_claims(range(first, first + 4))
    assert not false, "\n".join(false)
    assert sum(counts.values()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1450, 50))
def test_q15_a_thousand_remedies_are_true(first: int) -> None:
    """Each part has more than a hundred remedies of single asks and of gangs."""
    counts, false = count_claims(range(first, first + 50))
    assert not false, "\n".join(false)
    assert counts["single alone", True] + counts["gang alone", True] > 50


class LargeAskWithoutSlot(World):
    """An old ask waits for a slot. With one it finds no room, and reserves the node on which a member of the
    gang would find some."""

    def _configuration(self) -> dict[str, Any]:
        x = {"name": "x", "maxapplications": 1, "resources": {"max": {"vcore": "3000m"}}}
        a = {"name": "a", "maxapplications": 1, "queues": [x, {"name": "y", "maxapplications": 1}]}
        c = {"name": "c", "resources": {"max": {"memory": str(2 * GIB)}}}
        root = {"name": "root", "submitacl": "*", "queues": [a, c]}
        partition = {"name": "default", "queues": [root], "nodesortpolicy": {"type": "fair"}}
        return {"partitions": [partition]}

    def _app(self, app: str, leaf: str, *asks: dict[str, int], gang: bool = False) -> None:
        whole = {"vcore": sum(each["vcore"] for each in asks)} if gang else {}
        self.do("app", app, leaf, user=app, gang=whole)
        more = {"group": "g", "placeholder": True} if gang else {}
        for number, ask in enumerate(asks):
            self.do("ask", app, f"k{number}", **more, **ask)

    def _grow(self) -> None:
        for number, (cores, memory) in enumerate([(1, 5), (3, 6), (4, 1), (2, 1)]):
            self.do("node", f"n{number}", vcore=cores * 1000, memory=memory * GIB)
        one = {"vcore": 1000}
        self._app("holder", "root.a.y", one, {**one, "memory": GIB})
        self.do("schedule")
        self._app("large", "root.a.x", {"vcore": 3000, "memory": 2 * GIB, "priority": 5})
        self._app("other", "root.a.y", *[{**one, "memory": GIB // 2}] * 2, gang=True)
        self._app("small", "root.a.x", {"vcore": 2000}, {**one, "memory": GIB // 2, "priority": 1})
        self._app("free", "root.c", {"vcore": 3000, "memory": 2 * GIB, "priority": 5})
        self.do("ask", "free", "k1", vcore=500, memory=2 * GIB)
        self._app("gang", "root.a.y", one, one, gang=True)
        self.do("schedule")
        self._app("late", "root.a.y", {**one, "priority": 5})
        self.do("advance", 5)
        self.do("schedule")


def test_q15_a_rival_that_only_reserves_a_node_counts() -> None:
    claims = claims_of(LargeAskWithoutSlot(0))
    assert {app for _, app, *_ in claims} >= {"large", "gang"}
    assert [claim for claim in claims if not claim[-1]] == []
