"""Placement: which queue an application goes to (2.3).

Pure decisions over the names of queues and who may use them: nothing here makes a queue or changes
one. ``PlacementRules.place`` is all there is to call.
"""

from __future__ import annotations

from quadriga.core.placement.names import DEFAULT_QUEUE, RECOVERY_QUEUE
from quadriga.core.placement.placing import Placed, PlacementRules, rules_of
from quadriga.core.placement.rules import Rule, Submission

__all__ = [
    "DEFAULT_QUEUE",
    "RECOVERY_QUEUE",
    "Placed",
    "PlacementRules",
    "Rule",
    "Submission",
    "rules_of",
]
