"""Every object of every view has the fields and types of 2.14 and of docs/views.md, whatever the cluster does."""

import json
import random
import re
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from everything_life import Life
from views_fields import FIELDS, flaws

from quadriga.core.checks import health
from quadriga.core.views import Views, objects


def everything(views: Views, partition: str = "default") -> list[tuple[str, Any]]:
    """All that can be asked, with the name of what it must be."""
    ended = ("rejected", "completed")
    found: list[tuple[str, Any]] = [
        ("[Cluster]", views.clusters()),
        ("[Partition]", views.partitions()),
        ("Queue", views.queues(partition)),
        ("Queue", views.queue(partition, "root")),
        ("[Node]", views.nodes(partition)),
        ("[User]", views.users(partition)),
        ("[Group]", views.groups(partition)),
        ("[Rule]", views.placement_rules(partition)),
        ("[PartitionUtilisation]", views.node_utilisations()),
        ("TypeUtilisation", views.node_utilisation(partition)),
        ("Configuration", views.configuration()),
        ("Health", views.check_health()),
        ("Health", views.health()),
        ("StateDump", views.state_dump()),
        *(("[Application]", views.applications(partition, state)) for state in ("active", *ended)),
    ]
    for node in views.nodes(partition):
        found.append(("Node", views.node(partition, node["nodeID"])))
    for user in views.users(partition):
        found.append(("User", views.user(partition, user["userName"])))
    for group in views.groups(partition):
        found.append(("Group", views.group(partition, group["groupName"])))
    for app in views.applications(partition, "active"):
        name, queue = app["applicationID"], app["queueName"]
        found.append(("Application", views.application(partition, name)))
        found.append(("Application", views.application(partition, name, queue)))
        found.append(("[Application]", views.queue_applications(partition, queue)))
    return found


def check(views: Views) -> None:
    for kind, value in everything(views):
        wrong = flaws(value, kind, kind)
        assert not wrong, "\n".join(wrong[:20])
        json.dumps(value, allow_nan=False)  # nothing that JSON has no word for


@pytest.mark.parametrize("seed", range(300, 304))
def test_2_14_every_object_in_the_middle_of_a_faulty_run(seed: int) -> None:
    """Gangs, lost and wrong confirmations, dying nodes, reloads, restarts: no null, no odd type."""
    life = Life(random.Random(seed), alone=True)
    views = Views(life.script.scheduler)
    for at in range(120):
        life.step()
        if at % 20 == 0:
            views.sample()
            check(views)


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_types_for_readers_agree_with_the_table(name: str) -> None:
    """``views.objects`` is what a type checker of a reader sees."""
    names = f"{name}Object", _CLASSES.get(name, name)
    kinds = (getattr(module, each, None) for module in (objects, health) for each in names)
    kind = next(filter(None, kinds), None)
    if kind is None:
        assert name in ("Configuration", "StateDump")  # of many parts, plain dicts
        return
    full = get_type_hints(kind, include_extras=True)
    spelled = {f"{n}?" if get_origin(hint) is NotRequired else n for n, hint in full.items()}
    assert spelled == set(FIELDS[name])
    hints = get_type_hints(kind)
    for field, wanted in FIELDS[name].items():
        hint = hints[field.rstrip("?")]
        assert (getattr(hint, "__origin__", hint) is list) == wanted.startswith("["), field
        if wanted in _SIMPLE:
            assert hint is _SIMPLE[wanted], field


_SIMPLE = {"int": int, "str": str, "bool": bool}

_CLASSES = {"AskLog": "AskLogEntry", "State": "StateEntry", "Filter": "RuleFilter"}


PAGE = Path(__file__).resolve().parents[3] / "docs" / "views.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("docs/ is part of a checkout only")
    return PAGE.read_text(encoding="utf-8")


def test_every_sample_runs_and_the_table_names_every_question(page: str) -> None:
    samples = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in samples} == {"python"}
    for _, code in samples:
        exec(compile(code, str(PAGE), "exec"), {"__name__": "sample"})
    table = page[page.index("| question |") : page.index("`Views(scheduler, dialect)`")]
    for name in vars(Views):
        if not name.startswith("_"):
            assert f"`{name}(" in table, name
    for file in re.findall(r"`(\w+\.py)`", table):
        assert (PAGE.parents[1] / "core" / "views" / file).is_file(), file
