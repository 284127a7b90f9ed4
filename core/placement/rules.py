"""The kinds of placement rules, and the queue that each chooses for an application (2.3).

A rule returns the path of a queue. It raises ``NoMatch`` if it does not apply, so that the next rule
is tried, or ``Refused`` if the application must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from quadriga.core.config import QUEUE_NAME, PlacementFilter, PlacementRule
from quadriga.core.config.expression import Expression, is_group_name, is_user_name
from quadriga.core.config.placement import as_pattern
from quadriga.core.runtime.refusal import Refused


class Filter:
    """Users and groups that a rule allows or denies, each by names or by one regular expression.

    A filter without names includes all users, so an empty filter that denies excludes all of them.
    Names are case-sensitive; an expression matches anywhere in a name.
    """

    __slots__ = ("allow", "groups", "users")

    def __init__(self, config: PlacementFilter) -> None:
        self.allow = config.allow
        self.users = _names(config.users, is_user_name)
        self.groups = _names(config.groups, is_group_name)

    def passes(self, user: str, groups: Iterable[str]) -> bool:
        """Return True if the rule applies to this user, a member of these groups."""
        if self.users is None and self.groups is None:
            return self.allow
        if _matches(self.users, user) or any(_matches(self.groups, group) for group in groups):
            return self.allow
        return not self.allow


_Names = frozenset[str] | Expression | None


def _names(names: tuple[str, ...], valid: Callable[[str], bool]) -> _Names:
    """Return the names, or the expression if there is only one entry and it is one. Invalid names are
    left out."""
    if not names:
        return None
    if len(names) == 1:
        pattern = as_pattern(names[0])
        if pattern is not None:
            return pattern
    return frozenset(filter(valid, names))


def _matches(names: _Names, name: str) -> bool:
    if names is None:
        return False
    if isinstance(names, Expression):
        return names.search(name)
    return name in names


class NoMatch(Exception):
    """The rule does not apply to the application; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The properties of an application that rules use. The names of tags are in lower case."""

    user: str
    groups: tuple[str, ...] = ()
    queue: str = ""
    """The queue in the request, as written there."""
    tags: dict[str, str] = field(default_factory=dict)
    forced: bool = False
    """True if it already runs and must be accepted: the tag ``application.create.force``."""


class QueueFacts(Protocol):
    """The attributes of a queue that placement reads."""

    @property
    def path(self) -> str: ...

    @property
    def leaf(self) -> bool: ...

    @property
    def state(self) -> str: ...

    @property
    def closed_by(self) -> QueueFacts | None: ...

    def may_submit(self, user: str, groups: tuple[str, ...]) -> bool: ...


class QueueTree(Protocol):
    """The queue tree of the partition."""

    def queue(self, path: str) -> QueueFacts | None: ...


class Rule:
    """One configured rule with its parent rules, compiled.

    YuniKorn's validation accepts some rules that cannot work, such as a tag rule without a tag.
    Such a rule has a flaw, which is the reason why it never matches.
    """

    __slots__ = ("config", "create", "filter", "flaw", "parent", "title")

    def __init__(self, config: PlacementRule) -> None:
        self.config = config
        self.create = config.create
        self.filter = Filter(config.filter)
        self.parent = Rule(config.parent) if config.parent is not None else None
        self.title = f"{config.name} {config.value}" if config.value else config.name
        """The name of the rule in messages."""
        self.flaw = ""
        """The reason why the rule can never match; empty if it can."""
        if config.name not in _KINDS:
            self.flaw = "there is no such rule"
        elif config.name in _KINDS_WITH_VALUE and not config.value:
            self.flaw = "it has no value"
        elif self.parent is not None and self.parent.flaw:
            self.flaw = f"parent rule {self.parent.title}: {self.parent.flaw}"

    def queue_path(self, submission: Submission, queues: QueueTree) -> str:
        """Return the path of the queue. Raises ``NoMatch`` or ``Refused``."""
        if self.flaw:
            raise NoMatch(self.flaw)
        if not self.filter.passes(submission.user, submission.groups):
            raise NoMatch(f"its filter keeps user {submission.user} out")
        qualified, name = _KINDS[self.config.name](self.config, submission)
        path = name.lower()
        if not qualified:
            path = f"{self._parent_path(submission, queues)}.{path}"
        if queues.queue(path) is None:
            if not self.create:
                raise NoMatch(f"queue {path} does not exist, and create is false")
            check_queue_path(path)
        return path

    def _parent_path(self, submission: Submission, queues: QueueTree) -> str:
        if self.parent is None:
            return ROOT
        try:
            path = self.parent.queue_path(submission, queues)
        except NoMatch as reason:
            raise NoMatch(f"parent rule {self.parent.title}: {reason}") from None
        parent = queues.queue(path)
        if parent is not None and parent.leaf:
            raise Refused(f"parent rule {self.parent.title} returned a leaf queue: {path}")
        return path


# -- each function returns whether the name is a path from the root, and the name --------------------


def _provided(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    if not submission.queue:
        raise NoMatch("the request names no queue")
    return _qualify(submission.queue)


def _fixed(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    return rule.value.lower() == ROOT or is_qualified(rule.value), rule.value


def _user(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    return False, escape_dots(submission.user)


def _tag(rule: PlacementRule, submission: Submission) -> tuple[bool, str]:
    value = submission.tags.get(rule.value.lower())
    if not value:
        raise NoMatch("the application has no such tag")
    return _qualify(value)


def _qualify(name: str) -> tuple[bool, str]:
    return (True, name) if is_qualified(name) else (False, escape_dots(name))


# fmt: off
_KINDS: dict[str, Callable[[PlacementRule, Submission], tuple[bool, str]]] = {
    "provided": _provided,
    "fixed":    _fixed,
    "user":     _user,
    "tag":      _tag,
}
# fmt: on

_KINDS_WITH_VALUE = ("fixed", "tag")


ROOT: Final = "root"
DEFAULT_QUEUE: Final = "root.default"
"""The queue of an application that matches no rule, if the queue exists."""
MAX_LEVELS: Final = 100
"""A queue path has at most this many levels, about as many as a configuration can have. Every
operation on a queue passes through all of its levels."""
RECOVERY_QUEUE: Final = "root.@recovery@"
"""The queue of a forced application that no rule places. It already runs and must be accepted."""


def is_qualified(name: str) -> bool:
    """Return True if the name is a path from the root. ``root`` alone is an ordinary name."""
    return name.lower().startswith(f"{ROOT}.")


def escape_dots(name: str) -> str:
    """Return the name as one level of a path, in which dots separate levels."""
    return name.replace(".", "_dot_")


def check_queue_path(path: str) -> None:
    """Raise ``Refused`` if the path has too many levels, or a level that is not a queue name (2.2)."""
    levels = path.split(".")
    if len(levels) > MAX_LEVELS:
        raise Refused(f"a queue path with {len(levels)} levels; at most {MAX_LEVELS} are allowed")
    for level in levels:
        if QUEUE_NAME.fullmatch(level) is None:
            raise Refused(f"{level!r} in {path!r} is not a queue name")


def parent_path(path: str) -> str:
    """Return the path of the queue's parent."""
    return path.rpartition(".")[0]
