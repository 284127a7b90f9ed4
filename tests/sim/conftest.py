"""What simulations share: the lifecycles that are counted; ``by_hand`` has more."""

from quadriga.fsm.pytest_plugin import track
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK

track(SHIM_APPLICATION)
track(SHIM_TASK)
