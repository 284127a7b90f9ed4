"""What simulations share: both message orders, the lifecycles that are counted; ``by_hand`` has more."""

import pytest

from quadriga.fsm.pytest_plugin import track
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK

track(SHIM_APPLICATION)
track(SHIM_TASK)


@pytest.fixture(params=["design", "k8shim"])
def order(request: pytest.FixtureRequest) -> str:
    """Both message orders of X8."""
    return str(request.param)
