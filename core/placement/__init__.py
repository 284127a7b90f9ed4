"""Placement: which queue an application goes to (2.3).

The rules are pure functions of an application, the queue tree and its access lists. This package
never creates or changes a queue. ``PlacementRules.place`` is the entry point.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from quadriga.core.placement.partition_rules import Placed, PlacementRules, rules_of
from quadriga.core.placement.rules import DEFAULT_QUEUE, RECOVERY_QUEUE, Rule, Submission

__all__ = [
    "DEFAULT_QUEUE",
    "RECOVERY_QUEUE",
    "Placed",
    "PlacementRules",
    "Rule",
    "Submission",
    "rules_of",
]
