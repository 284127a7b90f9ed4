"""docs/glossary.md has a sentence for every state and every word of the house."""

import re
from pathlib import Path

import pytest

from quadriga.fsm import LIFECYCLES
from tests.packaging.conftest import text_of

#: words with which the code replaced its own; each has to be explained
WORDS = """
    accounting, ask, batch, best nodes, charge, deferred ask, demand, encoded template, epoch,
    event producer, eviction, failed preemption, feasible, group of asks, last quota event, node index,
    pending question, placement, preemption queue, queue snapshot, quota cohort, quota event, refund,
    remote predicates, repeated asks, replay buffer, reservation to retry, reserve_headroom, score,
    shortfall, work item
"""


def section(repository: Path, title: str) -> dict[str, list[str]]:
    """The rows of a section: word -> its sentence, YuniKorn's word, Kubernetes' word."""
    text = text_of(repository / "docs" / "glossary.md")
    found = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows: dict[str, list[str]] = {}
    for line in found.splitlines():
        if not line.startswith("| **"):
            continue
        first, yunikorn, kubernetes = (cell.strip() for cell in line.strip("|").split(" | "))
        word, sentence = re.fullmatch(r"\*\*(.+?)\*\*: (.+)", first).groups()  # type: ignore[union-attr]
        assert word not in rows, f"{word} is explained twice"
        rows[word] = [sentence, yunikorn, kubernetes]
    return rows


@pytest.mark.parametrize("title", ["Words", "States"])
def test_each_word_has_one_sentence_and_stands_in_order(repository: Path, title: str) -> None:
    rows = section(repository, title)
    assert list(rows) == sorted(rows, key=str.lower)
    for word, (sentence, yunikorn, kubernetes) in rows.items():
        assert re.fullmatch(r"[A-Z][^.]*(\.\w[^.]*)*\.", sentence), f"{word}: one sentence"
        assert yunikorn, word
        assert kubernetes, word


def test_words_of_the_house_and_states_are_explained(repository: Path) -> None:
    wanted = {word.strip() for word in WORDS.split(",")}
    assert sorted(wanted - section(repository, "Words").keys()) == []
    states = {state for lifecycle in LIFECYCLES.values() for state in lifecycle.states}
    assert section(repository, "States").keys() == states
