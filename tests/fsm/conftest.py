"""Entities for the seven tables, and the facts that make each guard agree."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from quadriga.fsm import LIFECYCLES, Lifecycle, Row
from quadriga.fsm.lifecycles.allocation import PREEMPTION, TIMEOUT
from quadriga.fsm.table import name_of
from quadriga.sim.lifecycles import LIFECYCLES as SIMULATED


@dataclass(slots=True, eq=False)
class Life:
    """All that any guard or emitter looks at. As it is made, every guard says no, but those of RUN."""

    key: str
    state: str
    starts_aware: bool = False
    has_asks: bool = False
    has_allocations: bool = False
    has_placeholders: bool = False
    gathers: bool = True
    gang_complete: bool = False
    hard: bool = False
    run_limit: int = 0
    started: bool = False
    gang_wait_limit: int = 0
    gained: bool = False
    patience: int = 0
    pending: int = 1
    reason: str | None = None


#: what makes a guard say yes: facts of the entity, and information that comes with the trigger
YES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "in_stateaware_queue": ({"starts_aware": True}, {}),
    "first_replacement": ({}, {"first_replacement": True}),
    "placeholders_left": ({"has_placeholders": True}, {}),
    "anything_left": ({"has_allocations": True}, {}),
    "has_work": ({"has_asks": True}, {}),
    "not (has_allocation or gang_complete)": ({"has_allocations": False}, {}),
    "not (has_allocation or time_is_up)": ({"has_allocations": False}, {}),
    "not has_allocation": ({"has_allocations": False}, {}),
    "not gathers": ({"gathers": False}, {}),
    "is_hard": ({"hard": True}, {}),
    "repeats_remain": ({"pending": 2}, {}),
    "has_run_limit": ({"run_limit": 1}, {}),
    "unconfirmed": ({}, {"timer": True}),
    "timed_out": ({"reason": TIMEOUT}, {}),
    "preempted": ({"reason": PREEMPTION}, {}),
    "has_gained": ({"gained": True}, {}),
    "created_draining": ({}, {"draining": True}),
}

Birth = Callable[..., Life]
Steering = Callable[[Life, Row], dict[str, Any]]

#: facts with which the guards of a trigger's rows say no, where that is not how a life is made
NO: dict[str, dict[str, Any]] = {"run": {"has_allocations": True}}


@pytest.fixture(scope="session")
def born() -> Birth:
    def make(state: str, **facts: Any) -> Life:
        return Life("it-1", state, **facts)

    return make


@pytest.fixture(scope="session")
def steer() -> Steering:
    """Let only the guard of this row agree, of all of its trigger; returns the information for ``fire``."""

    def arrange(life: Life, row: Row) -> dict[str, Any]:
        fresh = Life(life.key, life.state, **NO.get(row.trigger, {}))
        facts, info = YES[name_of(row.guard)] if row.guard else ({}, {})
        for name in Life.__slots__:
            setattr(life, name, facts.get(name, getattr(fresh, name)))
        return dict(info)

    return arrange


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def example(repository: Path) -> Callable[[str], ModuleType]:
    def load(name: str) -> ModuleType:
        path = repository / "examples" / f"{name}.py"
        if not path.is_file():
            pytest.skip("examples/ is part of a checkout only")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(params=[*LIFECYCLES.values(), *SIMULATED.values()], ids=[*LIFECYCLES, *SIMULATED])
def lifecycle(request: pytest.FixtureRequest) -> Lifecycle:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def twin() -> Callable[..., Lifecycle]:
    """Build a lifecycle again from its rows, for example on the library's own machine."""

    def build(lifecycle: Lifecycle, *, stock: bool = False) -> Lifecycle:
        return Lifecycle(
            lifecycle.name,
            initial=lifecycle.initial,
            final=lifecycle.final,
            lasts=lifecycle.lasts,
            rows=[tuple(line) for _, line in groupby(lifecycle.rows, key=lambda row: row.line)],
            stock=stock,
        )

    return build
