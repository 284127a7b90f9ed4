"""A plugin of pytest: where a test of the library says ``LockedMachine``, ``FastLockedMachine`` is meant."""

import pytest
import transitions
from transitions import extensions
from transitions.extensions import factory

from quadriga.fsm.fast_locked import FastLockedMachine


def pytest_configure(config: pytest.Config) -> None:
    # not in the module of the class itself, whose code calls super(LockedMachine, self)
    for module in (extensions, factory):
        module.LockedMachine = FastLockedMachine  # type: ignore[attr-defined]
    factory._CLASS_MAP[False, False, True, False] = FastLockedMachine  # type: ignore[attr-defined]


def pytest_collection_finish(session: pytest.Session) -> None:
    test = next(item for item in session.items if "TestLockedTransitions" in item.nodeid)
    used = vars(test.module)["LockedMachine"]  # type: ignore[attr-defined]
    assert used is FastLockedMachine, used


def pytest_report_header(config: pytest.Config) -> str:
    return f"transitions {transitions.__version__}, with FastLockedMachine for LockedMachine"
