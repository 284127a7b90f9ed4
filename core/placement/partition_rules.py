"""The placement rules of a partition, tried in their order (2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from quadriga.core.config import PartitionConfig, PlacementRule
from quadriga.core.placement.rules import (
    DEFAULT_QUEUE,
    RECOVERY_QUEUE,
    NoMatch,
    QueueTree,
    Rule,
    Submission,
    parent_path,
)
from quadriga.core.runtime.refusal import Refused

_IMPLICIT = (PlacementRule("provided"),)
"""The rules of a partition without configured rules."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The queue of an application. If it does not exist, it can be created."""

    path: str
    by: str
    """The rule that chose the queue."""


class PlacementRules:
    """The rules of a partition in their order, followed by the recovery rule (2.3)."""

    __slots__ = ("rules", "titles")

    def __init__(self, configs: Iterable[PlacementRule]) -> None:
        self.rules = tuple(Rule(config) for config in tuple(configs) or _IMPLICIT)
        #: each rule with its number, for texts
        self.titles = tuple(
            f"rule {number} ({rule.title})" for number, rule in enumerate(self.rules, 1)
        )

    def flaws(self) -> list[str]:
        """Return a sentence for each rule that can never match."""
        return [
            f"{title} never matches: {rule.flaw}"
            for rule, title in zip(self.rules, self.titles, strict=True)
            if rule.flaw
        ]

    def place(self, submission: Submission, queues: QueueTree) -> Placed:
        """Return the queue of the first rule that matches and whose queue can be used.

        Raises ``Refused`` with the answers of all rules if there is none.
        """
        answers: list[str] = []
        for rule, title in zip(self.rules, self.titles, strict=True):
            try:
                path = rule.queue_path(submission, queues)
                _check(path, submission, queues)
            except NoMatch as reason:
                answers.append(f"{title}: {reason}")
            except Refused as error:
                if not submission.forced:
                    raise Refused(f"application rejected by placement {title}: {error}") from None
                break
            else:
                return Placed(path, title)
        if submission.forced:
            return Placed(RECOVERY_QUEUE, "recovery rule")
        try:
            if queues.queue(DEFAULT_QUEUE) is None:
                raise NoMatch("does not exist")
            _check(DEFAULT_QUEUE, submission, queues)
        except NoMatch as reason:
            answers.append(f"{DEFAULT_QUEUE}: {reason}")
            text = "; ".join(answers)
            raise Refused(f"application rejected: no placement rule matched: {text}") from None
        return Placed(DEFAULT_QUEUE, "no rule: the default queue")


def rules_of(config: PartitionConfig) -> PlacementRules:
    """Return the compiled placement rules of a partition with this configuration."""
    return _compiled(config.placement_rules)


@lru_cache(maxsize=64)
def _compiled(configs: tuple[PlacementRule, ...]) -> PlacementRules:
    return PlacementRules(configs)


def _check(path: str, submission: Submission, queues: QueueTree) -> None:
    """Raise ``NoMatch`` or ``Refused`` if the application cannot use this queue."""
    if path == RECOVERY_QUEUE or path.startswith(f"{RECOVERY_QUEUE}."):
        raise NoMatch(f"no user may submit to {RECOVERY_QUEUE}")
    queue = queues.queue(path)
    if queue is not None and not queue.leaf:
        raise NoMatch(f"queue {path} is a parent")
    nearest, nearest_path = queue, path
    while nearest is None:
        nearest_path = parent_path(nearest_path)
        nearest = queues.queue(nearest_path)
    if (closed := nearest.closed_by) is not None:
        raise NoMatch(f"queue {closed.path} is {closed.state}")
    if not nearest.may_submit(submission.user, submission.groups):
        raise NoMatch(f"user {submission.user} may not submit to {nearest_path}")
    if queue is None and nearest.leaf:
        raise Refused(f"queue {path} cannot be created: {nearest_path} is a leaf")
