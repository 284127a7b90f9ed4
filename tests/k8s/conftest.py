"""What tests of the shim share: a world has one node of four cores."""

import pytest
from k8s_world import World, cluster


@pytest.fixture
def world() -> World:
    return cluster()
