"""Every coroutine among these tests runs on a loop of its own."""

from __future__ import annotations

from inspect import iscoroutinefunction

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(name: str, obj: object) -> None:
    if name.startswith("test") and iscoroutinefunction(obj):
        pytest.mark.asyncio(obj)
