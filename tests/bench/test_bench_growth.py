"""``python -m bench growth``: each dimension runs, and the exponents are those of the times."""

import pytest

from bench import growth
from bench.growth import DIMENSIONS, Dimension


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=lambda each: f"{each.step} {each.of}")
def test_each_dimension_has_a_cost(dimension: Dimension, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "TURNS", 2)
    assert growth.cost(dimension, 1_000 if dimension.of == "running allocations" else 20) > 0


def test_the_exponent_is_that_of_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (
        Dimension("flat", "things", lambda size: iter([9, 7]), 10, 1000, 0.2),
        Dimension("even", "things", lambda size: iter([5 * size]), 10, 1000),
    )
    monkeypatch.setattr(growth, "DIMENSIONS", steps)
    found = {figure.name: figure.value for figure in growth.measure()}
    assert found == {
        "flat: 10 things": 0.007, "flat: 1,000 things": 0.007, "flat: exponent in things": 0,
        "even: 10 things": 0.05, "even: 1,000 things": 5, "even: exponent in things": 1,
    }  # fmt: skip
