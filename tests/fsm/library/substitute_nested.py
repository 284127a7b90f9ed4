"""A plugin of pytest: wherever a module of the library or of its tests says ``HierarchicalMachine``,
``FastHierarchicalMachine`` is meant.
"""

import importlib
import importlib.util
import pkgutil
import sys

import pytest
import transitions

assert not any(name.startswith("transitions.extensions") for name in sys.modules), "imported before"

# The package of the extensions imports all of them. Here nesting comes first, and alone.
_spec = importlib.util.find_spec("transitions.extensions")
assert _spec is not None
assert _spec.loader is not None
_extensions = importlib.util.module_from_spec(_spec)
sys.modules["transitions.extensions"] = transitions.extensions = _extensions  # type: ignore[attr-defined]
nesting = importlib.import_module("transitions.extensions.nesting")
STOCK = nesting.HierarchicalMachine

from quadriga.fsm import FastHierarchicalMachine  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    nesting.HierarchicalMachine = FastHierarchicalMachine  # type: ignore[attr-defined]
    _spec.loader.exec_module(_extensions)  # type: ignore[union-attr]
    for found in pkgutil.walk_packages(transitions.__path__, "transitions."):
        importlib.import_module(found.name)


def pytest_collection_finish(session: pytest.Session) -> None:
    nesting.HierarchicalMachine = STOCK  # type: ignore[attr-defined]  # its own code calls super() with its name
    from transitions.extensions import factory

    classes = {cls for cls in vars(factory).values() if isinstance(cls, type)}
    machines = {cls for cls in classes if issubclass(cls, STOCK)}
    assert len(machines) >= 6, machines
    assert all(issubclass(cls, FastHierarchicalMachine) for cls in machines), machines


def pytest_report_header(config: pytest.Config) -> str:
    return f"transitions {transitions.__version__}, with FastHierarchicalMachine for HierarchicalMachine"
