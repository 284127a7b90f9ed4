"""Both message orders, and a script with a node; some files have a ``script`` of their own instead."""

import pytest
from core_world import MESSAGE_ORDERS, scripted

from quadriga.sim.scripted.script import Script


@pytest.fixture(params=MESSAGE_ORDERS)
def order(request: pytest.FixtureRequest) -> str:
    """Both message orders of X8."""
    return str(request.param)


@pytest.fixture
def script(order: str) -> Script:
    """One queue and one node with a memory of 20, in both message orders."""
    return scripted(order=order, memory=20)
