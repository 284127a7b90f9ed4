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
