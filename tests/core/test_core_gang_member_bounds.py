"""One ask must not stand for more members of a gang than a plan can visit (Q16)."""

from __future__ import annotations

from core_world import queues, scripted

from quadriga.core import Options
from quadriga.sim.script import Script


def two_nodes(members: int = 10_000) -> Script:
    options = Options(journal_size=None, gang_members=members)
    return scripted(queues("default"), nodes=("n1", "n2"), options=options, vcore=4)


def rejected(outputs: object) -> str:
    return str(outputs)


def test_q16_a_placeholder_ask_with_two_billion_repeats_is_rejected_by_name() -> None:
    script = two_nodes()
    script.app("a", gang={"vcore": 1})
    answer = rejected(script.ask("a", "p", group="g", placeholder=True, vcore=1, repeat=2**31 - 1))
    assert "maxAllocations 2147483647 of ask p would give the gang of application a" in answer
    assert "at most 10000 are allowed" in answer
    script.schedule()
    script.app("other")
    script.ask("other", "x", vcore=1)
    assert "x" in str(script.schedule())


def test_q16_the_repeats_of_several_asks_count_together() -> None:
    script = two_nodes(members=6)
    script.app("a", gang={"vcore": 8})
    script.ask("a", "p", group="g", placeholder=True, vcore=1, repeat=4)
    assert "6 are allowed" in rejected(
        script.ask("a", "q", group="g", placeholder=True, vcore=1, repeat=4)
    )
    again = rejected(script.ask("a", "p", group="g", placeholder=True, vcore=1, repeat=6))
    assert "allowed" not in again, "the ask in place of the earlier one"


def test_q16_ordinary_asks_of_a_gang_are_bounded_as_well() -> None:
    script = two_nodes(members=6)
    script.app("a", gang={"vcore": 2})
    assert "6 are allowed" in rejected(script.ask("a", "r", vcore=1, repeat=7))
    script.app("b")
    assert "allowed" not in rejected(script.ask("b", "r", vcore=1, repeat=7))
