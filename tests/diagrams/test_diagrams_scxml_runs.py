"""Standard interpreters run the SCXML of every lifecycle, and do what the table says."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from fsm_entities import Device

from quadriga.cli.catalogue import all_lifecycles
from quadriga.diagrams import render
from quadriga.diagrams.wording import identifiers
from quadriga.fsm import STAYS, Effect, Lifecycle, history, row, tour, unbounded
from quadriga.fsm.table import name_of

INTERPRETERS = {"python-statemachine": "statemachine", "PySide6-Addons": "PySide6.QtScxml"}
SCXML, OURS = "{http://www.w3.org/2005/07/scxml}", "{urn:quadriga:lifecycle}"
PROGRAM = Path(__file__).with_name("scxml_interpreters.py")


def require(package: str) -> None:
    module = INTERPRETERS[package]
    if find_spec(module.partition(".")[0]) is None or find_spec(module) is None:
        if package in os.environ.get("QUADRIGA_REQUIRE_SCXML", "").split(","):
            pytest.fail(f"{package} is missing")
        pytest.skip(f"{package} is not installed")


def walks_of(lifecycle: Lifecycle) -> tuple[list[list[Any]], list[list[str | None]]]:
    """Walks that together take every row, with an illegal trigger before each step; and the states."""
    ids: dict[str, str | None] = {**identifiers(lifecycle.states)}
    ids |= dict.fromkeys(lifecycle.final)
    data = ElementTree.fromstring(str(render(lifecycle, "scxml"))).iter(f"{SCXML}data")
    named = {each.get(f"{OURS}name", each.get("id")): each.get("id") for each in data}
    names = [*named.values()]
    illegal = {
        state: [each for each in lifecycle.triggers() if not lifecycle.allows(state, each)]
        for state in lifecycle.states
    }
    walks, states = [], []
    for rows in tour(lifecycle):
        walk: list[Any] = []
        seen = [ids[lifecycle.initial]]
        for number, step in enumerate(rows):
            if wrong := illegal[step.source]:
                walk.append([dict.fromkeys(names, True), wrong[number % len(wrong)]])
                seen.append(ids[step.source])
            agreeing = {named[name_of(step.guard)]} if step.guard else set()
            walk.append([{name: name in agreeing for name in names}, step.trigger])
            seen.append(ids[step.target or step.source])
        walks.append(walk)
        states.append(seen)
    return walks, states


def random_walks(lifecycle: Lifecycle) -> tuple[list[list[Any]], list[list[str | None]]]:
    random = Random(lifecycle.name)
    walks, states = [], []
    for _ in range(5):
        entity, walk = Device(state=lifecycle.initial), []
        seen: list[str | None] = [entity.state]
        while len(walk) < 60 and entity.state not in lifecycle.final:
            info = {"warm": random.random() < 0.5}
            trigger = random.choice(lifecycle.triggers())
            if lifecycle.allows(entity.state, trigger):
                lifecycle.fire(entity, trigger, **info)
            walk.append([info, trigger])
            seen.append(None if entity.state in lifecycle.final else entity.state)
        walks.append(walk)
        states.append(seen)
    return walks, states


def warm(entity: Any, info: Any) -> bool:
    return bool(info["warm"])


def blink(entity: Any, fired: Any) -> tuple[Effect, ...]:
    return ()


# fmt: off
BURNER = Lifecycle(
    "burner",
    initial="Low",
    final=("Burnt",),
    lasts={"Low": unbounded("more"), "High": unbounded("less")},
    rows=(
        row("more", "Low",  "High"),
        row("less", "High", "Low",   emit=blink),
        row("burn", "High", "Burnt"),
        row("lamp", "Low",  STAYS,   emit=blink),
    ),
)
STOVE = Lifecycle(
    "stove",
    initial="Idle",
    final=(),
    lasts={
        "Idle": unbounded("heat"), "Hot": unbounded("cool"), "Hot_Burnt": unbounded("cool"),
    },
    rows=(
        row("heat", "Idle", "Hot"),
        row("cool", "Hot",  "Idle"),
        row("back", "Idle", history("Hot")),
    ),
    inside={"Hot": BURNER},
)
KITCHEN = Lifecycle(
    "kitchen",
    initial="Off",
    final=("Sold",),
    lasts={"Off": unbounded("start"), "On": unbounded("stop")},
    rows=(
        row("start", "Off",                 "On"),
        row("again", "Off",                 history("On"),              when=warm),
        row("again", "Off",                 history("On", deep=True)),
        row("stop",  "On",                  "Off",                      emit=blink),
        row("reset", "On",                  "On"),
        row("turbo", "On",                  "On_Hot_High"),
        row("less",  "On_Hot_Low",          "On"),
        row("lamp",  "On",                  STAYS,                      emit=blink),
        row("cool",  "On_Hot",              "Off",                      when=warm),
        row("sell",  ("On_Hot_Burnt",),     "Sold"),
    ),
    on_enter={"On": blink},
    on_exit={"On_Hot": blink},
    inside={"On": STOVE},
)
# fmt: on


def run(lifecycle: Lifecycle, package: str, folder: Path, walks: list[list[Any]]) -> Any:
    document = folder / "lifecycle.scxml"
    document.write_text(str(render(lifecycle, "scxml")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), package, str(document)],
        input=json.dumps(walks),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,  # only what hangs reaches it
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("package", INTERPRETERS)
def test_an_interpreter_runs_a_nested_lifecycle(package: str, tmp_path: Path) -> None:
    require(package)
    walks, states = random_walks(KITCHEN)
    assert {state for seen in states for state in seen} == {*KITCHEN.states[:-1], None}
    assert run(KITCHEN, package, tmp_path, walks) == states


@pytest.mark.parametrize("package", INTERPRETERS)
@pytest.mark.parametrize("name", all_lifecycles())
def test_an_interpreter_takes_the_tables_rows(name: str, package: str, tmp_path: Path) -> None:
    require(package)
    lifecycle = all_lifecycles()[name]
    walks, states = walks_of(lifecycle)
    assert run(lifecycle, package, tmp_path, walks) == states
