"""The table of shapes answers as each shape alone would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core import Options
from quadriga.core.ordering import fitting
from quadriga.core.ordering.fitting import Fitting
from quadriga.core.resources.shapes import Requirements, Shape, Shapes
from quadriga.sim.scripted.script import Script

AMOUNTS = st.tuples(*[st.integers(0, 5)] * 3)


def fit(shapes: list[Shape], free: tuple[int, ...]) -> int:
    return sum(shape.allocate for shape in shapes if shape.fits(free))


@given(st.lists(AMOUNTS, max_size=12), st.data())
def test_the_table_knows_what_fits(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    answers_as_each_shape(vectors, data)


@pytest.mark.interpreted
@given(st.lists(AMOUNTS, max_size=30), st.data())
def test_a_large_table_knows_what_fits(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    """With many shapes it keeps fewer sums."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_MANY", 4)
        patch.setattr(fitting, "_STEP", 3)
        answers_as_each_shape(vectors, data)


def answers_as_each_shape(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    shapes, table, known = Shapes(), Fitting(), dict[int, Shape]()
    for vector in vectors:
        shape, _ = shapes.intern(Requirements(vector))
        assert table.add(shape)
        known[shape.number] = shape
        if data.draw(st.booleans()):
            gone = known.pop(data.draw(st.sampled_from(sorted(known))))
            table.remove(gone)
            table.remove(gone)
        free = data.draw(AMOUNTS)
        assert table.every == sum(each.allocate for each in known.values())
        assert table.within(free) == fit(list(known.values()), free)


@pytest.mark.interpreted
def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_MOST", 1)
    shapes, table = Shapes(), Fitting()
    first, second = (shapes.intern(Requirements((value,)))[0] for value in (1, 2))
    assert table.add(first) and table.add(first)
    assert not table.add(second)
    table.remove(second)
    table.remove(first)
    assert table.add(second)


def test_q2_a_plan_that_is_taken_back_hides_no_room() -> None:
    script = Script(options=Options(gang_admission="atomic"))
    script.node("n1", vcore=4)
    for name in ("n2", "n3", "n4"):
        script.node(name, vcore=1)
    script.app("gang", gang={"vcore": 7})
    script.ask("gang", "large", group="one", placeholder=True, vcore=3)
    script.ask("gang", "small-1", "small-2", group="two", placeholder=True, vcore=2)
    assert not script.schedule()  # each group has room, and both together have not
    script.app("single")
    script.ask("single", "pod", vcore=2)
    assert [line for line in script.schedule() if line.startswith("new single/pod")]
