"""The placement rules: what each makes of a submission (2.3).

A rule answers with the path of a queue. It raises ``Unmatched`` where it has none, and the next rule
is asked, or ``Refused`` where the application must not be placed at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from quadriga.core.config import PlacementRule
from quadriga.core.model.refusal import Refused
from quadriga.core.placement.filters import Filter
from quadriga.core.placement.names import ROOT, check, flat, is_qualified

__all__ = ["QueueLike", "Queues", "Rule", "Submission", "Unmatched"]


class Unmatched(Exception):
    """This rule places the application nowhere; the text says why."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What rules know of an application. The names of tags are in lower case."""

    user: str
    groups: tuple[str, ...] = ()
    queue: str = ""
    """As the request names it."""
    tags: dict[str, str] = field(default_factory=dict)
    forced: bool = False
    """It runs already and is to be taken in: the tag ``application.create.force``."""


class QueueLike(Protocol):
    """What placement looks at in a queue."""

    @property
    def path(self) -> str: ...

    @property
    def leaf(self) -> bool: ...

    @property
    def state(self) -> str: ...

    @property
    def closed_by(self) -> QueueLike | None: ...

    def may_submit(self, user: str, groups: tuple[str, ...]) -> bool: ...


class Queues(Protocol):
    """The tree in which the application is placed."""

    def queue(self, path: str) -> QueueLike | None: ...


class Rule:
    """One configured rule with its parent rules, ready to be asked.

    A rule that YuniKorn's validation lets pass but that cannot work (an unknown name, a tag rule
    without a tag) is never matched, and says so to everybody who asks.
    """

    __slots__ = ("config", "create", "filter", "flaw", "parent", "title")

    def __init__(self, config: PlacementRule) -> None:
        self.config = config
        self.create = config.create
        self.filter = Filter(config.filter)
        self.parent = Rule(config.parent) if config.parent is not None else None
        #: how it is called in reasons
        self.title = f"{config.name} {config.value}" if config.value else config.name
        #: why it can never match, or an empty text
        self.flaw = ""
        if config.name not in _NAME_OF:
            self.flaw = "there is no such rule"
        elif config.name in _NEED_A_VALUE and not config.value:
            self.flaw = "it has no value"
        elif self.parent is not None and self.parent.flaw:
            self.flaw = f"parent rule {self.parent.title}: {self.parent.flaw}"

    def path(self, submission: Submission, queues: Queues) -> str:
        """The queue for the submission. Raises ``Unmatched`` and ``Refused``."""
        if self.flaw:
            raise Unmatched(self.flaw)
        if not self.filter.passes(submission.user, submission.groups):
            raise Unmatched(f"its filter keeps user {submission.user} out")
        qualified, name = _NAME_OF[self.config.name](self.config, submission)
        path = name.lower()
        if not qualified:
            path = f"{self._parent_path(submission, queues)}.{path}"
        if queues.queue(path) is None:
            if not self.create:
                raise Unmatched(f"queue {path} does not exist, and create is false")
            check(path)
        return path

    def _parent_path(self, submission: Submission, queues: Queues) -> str:
        if self.parent is None:
            return ROOT
        try:
            path = self.parent.path(submission, queues)
        except Unmatched as why:
            raise Unmatched(f"parent rule {self.parent.title}: {why}") from None
        parent = queues.queue(path)
        if parent is not None and parent.leaf:
            raise Refused(f"parent rule {self.parent.title} returned a leaf queue: {path}")
        return path


# -- what each kind of rule makes of a submission: whether a path from the root, and the name ---------


def _provided(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    if not submission.queue:
        raise Unmatched("the request names no queue")
    return _unless_qualified(submission.queue)


def _fixed(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    return rule.value.lower() == ROOT or is_qualified(rule.value), rule.value


def _user(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    return False, flat(submission.user)


def _tag(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    value = submission.tags.get(rule.value.lower())
    if not value:
        raise Unmatched("the application has no such tag")
    return _unless_qualified(value)


def _unless_qualified(name: str) -> tuple[bool, str]:
    return (True, name) if is_qualified(name) else (False, flat(name))


# fmt: off
_NAME_OF: dict[str, Callable[[PlacementRule, Submission], tuple[bool, str]]] = {
    "provided": _provided,
    "fixed":    _fixed,
    "user":     _user,
    "tag":      _tag,
}
# fmt: on

_NEED_A_VALUE = ("fixed", "tag")
