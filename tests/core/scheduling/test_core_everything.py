"""V1 to V10 after every step of arbitrary histories; ``HYPOTHESIS_PROFILE=thorough`` lives through thousands.

What may happen is in ``everything_life``, what is looked at in ``everything_looks`` and its neighbours.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from everything_life import STEPS, Life
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quadriga.core import Options, Scheduler
from quadriga.core.runtime.tally import Tally
from quadriga.core.views import Views, as_text
from tests.histories import compare

GOLDEN = Path(__file__).parents[1] / "golden" / "histories.json"


def history(seed: int, steps: int = 80, *, curious: bool = True) -> Life:
    life = Life(Random(seed), curious=curious)
    for _ in range(steps):
        life.step()
    return life


def shown(life: Life) -> Iterator[object]:
    """All that a scheduler says of itself, the reasons of everybody who waits included."""
    scheduler, views = life.scheduler, Views(life.scheduler)
    yield as_text(views.state_dump())
    yield from (views.counters(), scheduler.notes, scheduler.overdue, scheduler.run_times())
    yield from (scheduler.next_deadline(), scheduler.describe_next_timer())
    yield scheduler.take_summaries()
    yield [getattr(scheduler.tally, name) for name in Tally.__slots__]
    for place, partition in life.partitions():
        yield views.queue_counters(place.name)
        for app in partition.applications.values():
            for key in app.asks:
                found = scheduler.explain(app.app_id, key, place.name, place.voice.rm_id)
                yield from (found, found.verdict)


def lived(life: Life, steps: int) -> Iterator[str]:
    """A digest of what has been said up to each step, with what every fourth one shows."""
    for step in range(steps):
        life.step()
        looks = shown(life) if step % 4 == 0 else ()
        yield "\n".join(map(str, (life.digest.hexdigest(), *looks)))


@pytest.mark.parametrize(
    ("seed", "steps", "released"),
    [(seed, 80, seed >= 8) for seed in range(30)]
    # In these a gang has a member that requires a draining node, and an originator becomes the first ask.
    + [(20265, 120, False), (21330, 120, False)],
)
def test_v1_v2_v3_v4_v5_v6_v7_v8_v9_v10_hold_after_every_step(
    seed: int, steps: int, released: bool
) -> None:
    """V7: when everything is released all applications end by themselves. V10: every process says and shows
    the same, whatever its hash seed is."""
    life = Life(Random(seed), curious=False)
    compare(GOLDEN, seed, lived(life, steps))
    if released:
        life.wind_down()
    life.end()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(108, 116))
def test_v1_v2_v3_v4_v5_v6_v7_v8_v9_hold_in_long_histories(seed: int) -> None:
    life = history(seed, 250)
    if seed % 2:
        life.wind_down()
    life.end()


def test_the_histories_are_worth_looking_at() -> None:
    """All that may happen does happen in a few of them."""
    lives = [history(seed, 60, curious=False) for seed in range(45, 65)]
    assert {where for life in lives for where, _ in life.planned} == {"nodes", "quotas"}
    log = [line for life in lives for line in life.log]
    for what, least in {
        ": new ": 100,
        " placeholder of ": 20,
        " PLACEHOLDER_REPLACED": 5,
        " PREEMPTED_BY_SCHEDULER": 2,
        " TIMEOUT": 10,
        " STOPPED_BY_RM": 20,
        ": FAILED ": 20,
        "rejected app": 10,
        "rejected node ": 5,
        "rejected ask ": 5,
        "rm-2: new ": 10,
    }.items():
        assert sum(what in line for line in log) >= least, what


@pytest.mark.parametrize("seed", [30, 31])
def test_v10_looking_changes_nothing(seed: int) -> None:
    """Whatever is shown in between, and however often, the output is the same."""
    assert history(seed).digest.digest() == history(seed, curious=False).digest.digest()


def test_v10_a_scheduler_has_no_clock_of_its_own() -> None:
    scheduler = Scheduler(Options())
    assert scheduler.now == 0
    assert scheduler.next_deadline() is None


class Anything(RuleBasedStateMachine):
    """Hypothesis picks the steps, so that a failure shrinks to a few of them."""

    life: Life

    @initialize(rng=st.randoms(use_true_random=False))
    def begin(self, rng: Random) -> None:
        self.life = Life(rng)

    @invariant()
    def nothing_is_wrong(self) -> None:
        if hasattr(self, "life"):
            self.life.look()

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()


def _as_rule(name: str) -> Callable[[Anything], None]:
    def step(self: Anything) -> None:
        getattr(self.life, name)()

    step.__name__ = name
    return step


for _name in STEPS:
    setattr(Anything, _name, rule()(_as_rule(_name)))

_EXAMPLES = settings.default.max_examples
_THOROUGH = _EXAMPLES > 200
_SLOW = [HealthCheck.large_base_example, HealthCheck.too_slow, HealthCheck.data_too_large]

TestAnything = Anything.TestCase
TestAnything.settings = settings(
    settings.default,
    stateful_step_count=50 if _THOROUGH else 30,
    max_examples=_EXAMPLES if _THOROUGH else 15,
    suppress_health_check=_SLOW,
)
