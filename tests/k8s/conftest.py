"""Every coroutine among these tests runs on a loop of its own; a world has one node of four cores."""

from inspect import iscoroutinefunction

import pytest
from k8s_world import World, cluster


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(name: str, obj: object) -> None:
    if name.startswith("test") and iscoroutinefunction(obj):
        pytest.mark.asyncio(obj)


@pytest.fixture
def world() -> World:
    return cluster()
