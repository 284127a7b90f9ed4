"""Asking the rules of a partition, one after the other (2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from quadriga.core.config import PartitionConfig, PlacementRule
from quadriga.core.model.refusal import Refused
from quadriga.core.placement.names import DEFAULT_QUEUE, RECOVERY_QUEUE, above
from quadriga.core.placement.rules import Queues, Rule, Submission, Unmatched

__all__ = ["Placed", "PlacementRules", "rules_of"]

#: what holds where no rules are configured
_IMPLICIT = (PlacementRule("provided"),)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an application goes. The queue may not exist yet: then it can be created."""

    path: str
    by: str
    """Which rule said so."""


class PlacementRules:
    """The rules of a partition in their order. The recovery rule is always the last (2.3)."""

    __slots__ = ("rules",)

    def __init__(self, configs: Iterable[PlacementRule]) -> None:
        self.rules = tuple(Rule(config) for config in tuple(configs) or _IMPLICIT)

    def flaws(self) -> list[str]:
        """The rules that can never match, and why."""
        return [
            f"rule {number} ({rule.title}) never matches: {rule.flaw}"
            for number, rule in enumerate(self.rules, 1)
            if rule.flaw
        ]

    def place(self, submission: Submission, queues: Queues) -> Placed:
        """The first queue that a rule answers and that can be used.

        Raises ``Refused`` with what every rule answered.
        """
        answers: list[str] = []
        for number, rule in enumerate(self.rules, 1):
            title = f"rule {number} ({rule.title})"
            try:
                path = rule.path(submission, queues)
                _check(path, submission, queues)
            except Unmatched as why:
                answers.append(f"{title}: {why}")
            except Refused as end:
                if not submission.forced:
                    raise Refused(f"application rejected by placement {title}: {end}") from None
                break
            else:
                return Placed(path, title)
        if submission.forced:
            return Placed(RECOVERY_QUEUE, "recovery rule")
        try:
            if queues.queue(DEFAULT_QUEUE) is None:
                raise Unmatched("does not exist")
            _check(DEFAULT_QUEUE, submission, queues)
        except Unmatched as why:
            answers.append(f"{DEFAULT_QUEUE}: {why}")
            text = "; ".join(answers)
            raise Refused(f"application rejected: no placement rule matched: {text}") from None
        return Placed(DEFAULT_QUEUE, "no rule: the default queue")


def rules_of(config: PartitionConfig) -> PlacementRules:
    """The placement rules of a partition that is configured like this."""
    return _compiled(config.placement_rules)


@lru_cache(maxsize=64)
def _compiled(configs: tuple[PlacementRule, ...]) -> PlacementRules:
    return PlacementRules(configs)


def _check(path: str, submission: Submission, queues: Queues) -> None:
    """Raise ``Unmatched`` or ``Refused`` where the application cannot use this queue."""
    if path == RECOVERY_QUEUE or path.startswith(f"{RECOVERY_QUEUE}."):
        raise Unmatched(f"no user may submit to {RECOVERY_QUEUE}")
    queue = queues.queue(path)
    if queue is not None and not queue.leaf:
        raise Unmatched(f"queue {path} is a parent")
    nearest, at = queue, path
    while nearest is None:
        at = above(at)
        nearest = queues.queue(at)
    if (closed := nearest.closed_by) is not None:
        raise Unmatched(f"queue {closed.path} is {closed.state} (X33)")
    if not nearest.may_submit(submission.user, submission.groups):
        raise Unmatched(f"user {submission.user} may not submit to {at}")
    if queue is None and nearest.leaf:
        raise Refused(f"queue {path} cannot be created: {at} is a leaf")
