"""Whoever reads changes nothing, and holds nothing that changes."""

from __future__ import annotations

import copy
import random

import pytest
from core_steps import serve
from everything_life import Life
from test_core_views_fields import everything

from quadriga.core.views import Views, as_text
from quadriga.sim.script import Script


def digest(seed: int, *, read: bool) -> str:
    """Everything that is said in a random run, with its stories; every view read after each step."""
    life = Life(random.Random(seed), alone=True, curious=False)
    views = Views(life.script.scheduler)
    for _ in range(80):
        life.step()
        if read:
            everything(views)
            views.counters()
            views.queue_counters("default")
    said = life.digest
    for record in life.script.scheduler.journal:
        said.update(str(record).encode())
    return said.hexdigest()


@pytest.mark.parametrize("seed", [340, 341])
def test_v10_reading_changes_no_byte_of_what_follows(seed: int) -> None:
    assert digest(seed, read=True) == digest(seed, read=False)


def test_what_was_read_stays_as_it_was() -> None:
    life = Life(random.Random(343), alone=True)
    views = Views(life.script.scheduler)
    for _ in range(60):
        life.step()
    views.sample()
    views.check_health()
    before = everything(views)
    kept = copy.deepcopy(before)
    for _ in range(60):
        life.step()
        views.sample()
        views.check_health()
    assert before == kept


def test_what_a_reader_does_to_his_copy_is_his_own_business() -> None:
    script = Script()
    script.node("n1", attributes={"a": "b"}, vcore=4000)
    script.app("app", tags={"t": "v"})
    serve(script, "app", "k", tags={"x": "y"}, repeat=2, vcore=3000)
    views = Views(script.scheduler)
    views.check_health()
    untouched = as_text(views.state_dump())
    health = views.health()

    def spoil(value: object) -> None:
        if isinstance(value, dict):
            for each in value.values():
                spoil(each)
            value.clear()
        elif isinstance(value, list):
            for each in value:
                spoil(each)
            value.clear()

    for _, value in everything(views):
        spoil(value)
    assert as_text(views.state_dump()) == untouched
    assert views.health() == health
