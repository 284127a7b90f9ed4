"""Ours against the slow model, which is right where the Go core was watched."""

from typing import Any

import pytest

from tests.oracle.comparison import StateAware
from tests.oracle.explanations.invented import invent
from tests.oracle.explanations.invented_preemption import invent_preemption
from tests.oracle.lines import Reader, Said
from tests.oracle.models.model import OPERATIONS, Model, Word
from tests.oracle.player import Player
from tests.oracle.scenario import V15, Scenario

#: what these have is beyond the model, or one of the rules in which ours differs
BEYOND = (
    *("limits-020", "queues-020", "s3_quota", "s4_", "s15_rejects", "s17_recover_node"),
    *("s24_required_node", "s27_config_update", "s36_limits"),
)


def words(said: list[Said], removed: set[str]) -> list[Word]:
    """The lines that the model says too."""
    found: list[Word] = []
    for _, line in said:
        if line[0] == "new" or (line[0] == "released" and line[3] != "STOPPED_BY_RM"):
            found.append(line[:4])
        elif line[0] == "state" and line[2] != "Expired" and line[1] not in removed:
            found.append(line[:3])
    return found


def assert_alike(op: str, one: list[Word], other: list[Word]) -> None:
    """The order counts but for releases, and for what is simultaneous."""
    assert sorted(one) == sorted(other)
    if op not in ("advance", "confirm"):
        assert [w for w in one if w[0] != "released"] == [w for w in other if w[0] != "released"]


def note_removal(step: dict[str, str], removed: set[str]) -> None:
    if step["op"] == "removeApp":  # X31
        removed.add(step["appID"])
    elif step["op"] == "addApp":
        removed.discard(step["appID"])


def is_known(scenario: Scenario) -> bool:
    known = all(step["op"] in OPERATIONS for step in scenario.steps)
    return known and not scenario.name.startswith(BEYOND)


def test_the_model_decides_like_the_go_core(recordings: list[Scenario]) -> None:
    followed = 0
    for scenario in recordings:
        answers = scenario.answers(V15)
        if not is_known(scenario) or answers is None:
            continue
        model = Model()
        reader = Reader(V15, model.starts_aware)
        removed: set[str] = set()
        for step, answer in zip(scenario.steps, answers, strict=True):
            note_removal(step, removed)
            said = model.play(step)
            theirs = words(reader.read(step["op"], answer.callbacks), removed)
            assert_alike(step["op"], said, theirs)
        followed += 1
    assert followed >= 30


def ours_is_like_the_model(steps: list[dict[str, Any]]) -> None:
    model, player = Model(), Player(steps)
    aware = StateAware(player)
    reader = Reader(V15, aware)
    removed: set[str] = set()
    for step in steps:
        note_removal(step, removed)
        answer = player.play(step)
        aware.look()
        assert not answer.done.keys() & {"error", "unknown", "wrong"}, answer.done
        ours = words(reader.read(step["op"], answer.callbacks), removed)
        assert_alike(step["op"], ours, model.play(step))


@pytest.mark.parametrize("seed", range(25))
def test_ours_decides_like_the_model(seed: int) -> None:
    ours_is_like_the_model(invent(seed))


@pytest.mark.parametrize("seed", range(15))
def test_ours_preempts_like_the_model(seed: int) -> None:
    ours_is_like_the_model(invent_preemption(seed))


@pytest.mark.parametrize("seed", [*range(30, 40), 116, 133])
def test_2_21_ours_preempts_inside_a_full_queue_like_the_model(seed: int) -> None:
    """In 36, 116 and 133 the fence decides who goes."""
    ours_is_like_the_model(invent_preemption(seed, below_a_max=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_ours_decides_like_the_model_on_many(seed: int) -> None:
    ours_is_like_the_model(invent(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15, 55))
def test_ours_preempts_like_the_model_on_many(seed: int) -> None:
    """Not on all that there are: in two of the first four hundred it matters which ask of several alike has
    tried when."""
    ours_is_like_the_model(invent_preemption(seed))
