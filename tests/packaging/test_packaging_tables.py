"""Tables and the glossary must name the same things as other parts of the repository (docs/changing.md)."""

import argparse
import re
from pathlib import Path

import pytest

from quadriga.cli import draw, simulate
from quadriga.core.config import SORT_POLICIES, ConfigError, load
from quadriga.core.ordering.policies import NODE_POLICIES
from quadriga.core.scheduling.effects import HANDLERS
from quadriga.diagrams import FORMATS
from quadriga.fsm import LIFECYCLES, Effect
from quadriga.fsm.lifecycles import effects
from tests.packaging.conftest import text_of


def choices(command: object, name: str, option: str) -> set[str]:
    commands = argparse.ArgumentParser().add_subparsers()
    command.configure(commands)  # type: ignore[attr-defined]
    actions = commands.choices[name]._actions
    (found,) = (action for action in actions if option in action.option_strings)
    assert found.choices is not None
    return set(found.choices)


def policy(name: str) -> str:
    return f"""
partitions:
  - name: default
    nodesortpolicy: {{type: {name}}}
    queues: [{{name: root}}]
"""


def test_every_node_ordering_policy_can_be_chosen_and_no_other(repository: Path) -> None:
    page = (repository / "docs" / "configuration.md").read_text(encoding="utf-8")
    for name in NODE_POLICIES:
        (partition,) = load(policy(name)).partitions
        assert partition.node_sort_policy == name
        assert f"`{name}`" in page
    with pytest.raises(ConfigError):
        load(policy("another"))
    assert choices(simulate, "simulate", "--node-sort") == set(NODE_POLICIES)


def test_every_order_of_applications_can_be_chosen_and_is_described(repository: Path) -> None:
    page = (repository / "docs" / "configuration.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `application.sort.policy` .+", page, re.MULTILINE)
    assert [name for name in SORT_POLICIES if f"`{name}`" not in row] == []
    assert choices(simulate, "simulate", "--policy") == set(SORT_POLICIES)


def test_every_diagram_format_can_be_drawn_and_is_described(repository: Path) -> None:
    assert choices(draw, "draw", "--format") == {*FORMATS, "text"}
    page = (repository / "docs" / "diagrams.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    assert {name for cell in table for name in re.findall(r"`(\w+)`", cell)} == set(FORMATS)


def test_every_effect_has_a_handler() -> None:
    named = {getattr(effects, name) for name in effects.__all__}
    assert all(issubclass(each, Effect) for each in named)
    # The kernel itself fires what Fire names.
    assert named - HANDLERS.keys() == {effects.Fire}
    assert HANDLERS.keys() <= named


#: words with which the code replaced its own; each has to be explained
WORDS = """
    accounting, ask, batch, best nodes, charge, deferred ask, demand, encoded template, epoch,
    event producer, eviction, failed preemption, feasible, group of asks, last quota event, node index,
    pending question, placement, preemption queue, queue snapshot, quota cohort, quota event, refund,
    remote predicates, repeated asks, replay buffer, reservation to retry, reserve_headroom, score,
    shortfall, work item
"""


def section(repository: Path, title: str) -> dict[str, str]:
    """The entries of a section: word -> its sentence, without the words that others have for it."""
    text = text_of(repository / "docs" / "glossary.md")
    found = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    entries: dict[str, str] = {}
    for line in found.splitlines():
        if line.startswith("- "):
            entry = re.fullmatch(
                r"- \*\*(.+?)\*\*: (.+?\.)(?: \((?:YuniKorn|Kubernetes)[^.]+\))?", line
            )
            assert entry, line
            assert entry[1] not in entries, f"{entry[1]} is explained twice"
            entries[entry[1]] = entry[2]
    return entries


@pytest.mark.parametrize("title", ["Words", "States"])
def test_each_word_has_one_sentence_and_stands_in_order(repository: Path, title: str) -> None:
    entries = section(repository, title)
    assert list(entries) == sorted(entries, key=str.lower)
    for word, sentence in entries.items():
        assert re.fullmatch(r"[A-Z][^.]*(\.\w[^.]*)*\.", sentence), f"{word}: one sentence"


def test_words_of_the_house_and_states_are_explained(repository: Path) -> None:
    wanted = {word.strip() for word in WORDS.split(",")}
    assert sorted(wanted - section(repository, "Words").keys()) == []
    states = {state for lifecycle in LIFECYCLES.values() for state in lifecycle.states}
    assert section(repository, "States").keys() == states
