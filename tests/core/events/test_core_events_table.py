"""The table of event records: one row for each change, whose function takes what it is reported with."""

import ast
from functools import cache
from pathlib import Path

from core_steps import partitions

from quadriga.core.events import observers
from quadriga.fsm import LIFECYCLES
from quadriga.sim.scripted.script import Script

CORE = Path(__file__).parents[3] / "core"


def _functions_of_the_observer() -> dict[str, list[str]]:
    """By name, the types that each function is called with."""
    found = {}
    for node in ast.walk(ast.parse((CORE / "model" / "observer.py").read_text())):
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Attribute)
            assert isinstance(node.annotation, ast.Subscript)  # Callable[[...], None]
            types = node.annotation.slice.elts[0].elts  # type: ignore[attr-defined]
            found[node.target.attr] = [ast.unparse(each) for each in types]
    return found


@cache
def _functions_in(module: str) -> dict[str, list[str]]:
    """By name, the types of the parameters but for the first one, the log or ``self``."""
    found = {}
    for node in ast.walk(ast.parse((CORE / "events" / module).read_text())):
        if isinstance(node, ast.FunctionDef):
            types = [each.annotation for each in node.args.args[1:]]
            found[node.name] = [ast.unparse(each) for each in types if each is not None]
    return found


REPORTED = _functions_of_the_observer()


def test_every_change_has_one_row_and_is_reported_somewhere() -> None:
    by_listener = {"settings_changed", "state_dropped"}
    assert sorted([*observers.CHANGES, *observers.QUOTA_CHANGES, *by_listener]) == sorted(REPORTED)
    for change, record in observers.CHANGES.items():
        module = f"{record.__module__.rpartition('.')[2]}.py"
        assert _functions_in(module)[record.__name__] == REPORTED[change], change
    for change, method in observers.QUOTA_CHANGES.items():
        assert _functions_in("quota_events.py")[method.__name__] == REPORTED[change], change
    assert set(observers.TRANSITIONS) <= set(LIFECYCLES.values())
    # A function that nothing calls would be a record that is never made.
    calls = {
        node.func.attr
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert calls >= REPORTED.keys()


def test_quota_events_follow_the_partitions_that_there_are() -> None:
    script = Script(partitions("default", "other"))
    recorder = script.scheduler.resource_managers()[0].observer
    assert isinstance(recorder, observers.Recorder)
    followed = recorder.quota_events.partitions
    assert [partition.name for partition in followed] == ["default", "other"]
    script.configure(partitions("default"))
    assert [partition.name for partition in recorder.quota_events.partitions] == ["default"]
