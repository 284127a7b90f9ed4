"""A plugin of pytest: wherever a module of the library or of its tests says ``Machine``, ``FastMachine`` is
meant.
"""

import importlib
import pkgutil
import sys

import pytest
import transitions
from transitions import core

from quadriga.fsm import FastMachine

STOCK = core.Machine


def pytest_configure(config: pytest.Config) -> None:
    early = [name for name in sys.modules if name.startswith("transitions.extensions")]
    assert not early, (
        f"{early} have been imported before, and derive from the library's own machine"
    )
    transitions.Machine = core.Machine = FastMachine  # type: ignore[misc]
    for found in pkgutil.walk_packages(transitions.__path__, "transitions."):
        importlib.import_module(found.name)


def pytest_collection_finish(session: pytest.Session) -> None:
    core.Machine = STOCK  # type: ignore[misc]  # its own code calls super(Machine, self)
    from transitions.extensions import factory

    classes = {cls for cls in vars(factory).values() if isinstance(cls, type)}
    machines = {cls for cls in classes if issubclass(cls, STOCK) and cls is not STOCK}
    assert len(machines) >= 12, machines
    assert all(issubclass(cls, FastMachine) for cls in machines), machines


def pytest_report_header(config: pytest.Config) -> str:
    return f"transitions {transitions.__version__}, with FastMachine for Machine"
