"""Q15: what an explanation says that helps is carried out, in random worlds, and the ask starts."""

from __future__ import annotations

import pytest
from remedy_worlds import count_claims


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
