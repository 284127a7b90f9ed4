"""Tables that must name the same things as another part of the repository (docs/changing.md)."""

import argparse
import re
from pathlib import Path

import pytest

from quadriga.cli import draw, simulate
from quadriga.core.config import SORT_POLICIES, ConfigError, load
from quadriga.core.ordering.policies import NODE_POLICIES
from quadriga.core.scheduling.effects import HANDLERS
from quadriga.diagrams import FORMATS
from quadriga.fsm import Effect
from quadriga.fsm.lifecycles import effects


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
