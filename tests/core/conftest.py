"""A script with a node; some files have a ``script`` of their own instead."""

import pytest
from core_world import scripted

from quadriga.sim.scripted.script import Script


@pytest.fixture
def script(order: str) -> Script:
    """One queue and one node with a memory of 20, in both message orders."""
    return scripted(order=order, memory=20)
