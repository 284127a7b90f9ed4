"""The words of a composition: its parts, what they do on effects, and what the network does to messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quadriga.fsm.checking.facts import declared_facts
from quadriga.fsm.errors import DefinitionError, did_you_mean, text_of
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Unbounded


class Once(tuple[Any, ...]):
    """A fact with one of these values, which is chosen when a guard or an emitter first reads it.

    Until then it is ``None`` for rules and reactions.
    """

    __slots__ = ()

    def __new__(cls, *values: Any) -> Once:
        return super().__new__(cls, values)


@dataclass(frozen=True, slots=True)
class Send:
    """``send``, and ``call``, which is carried out at once."""

    to: str
    trigger: Any
    info: tuple[tuple[str, Any], ...]
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """``put``"""

    facts: Mapping[str, Any]


def send(to: str, trigger: Any, /, **info: Any) -> Send:
    """A message to a part, which the network delivers later. Values of ``info`` are hashable."""
    return Send(to, trigger, tuple(sorted(info.items())))


def call(to: str, trigger: Any, /, **info: Any) -> Send:
    """Fire a trigger at a part in the same move, after what has begun. It cannot be lost."""
    return Send(to, trigger, tuple(sorted(info.items())), at_once=True)


def put(**facts: Any) -> Put:
    """Change facts of the part itself. Values are hashable."""
    return Put(facts)


#: A rule: whether it holds in this ``World``.
Rule = Callable[[Any], object]
Rules = Mapping[str, Rule]
#: What a part does on an effect or a trigger: actions, or a function of the part and of the effect or
#: the information of the trigger, which returns them.
Actions = Send | Put | Iterable[Send | Put]
Reaction = Actions | Callable[[Any, Any], Actions]
#: Triggers, or triggers with conditions; ``"*"``: see ``Part``.
Outside = Collection[Any] | Mapping[Any, Rule | None]


@dataclass(frozen=True, eq=False)
class Part:
    """One entity of a composition.

    ``facts`` are the attributes that its guards and emitters read. A tuple has the values of a *free* fact, any of
    them whenever it is read; ``Once(...)`` those of which it keeps one; a function of the ``World`` follows from
    other parts; anything else is the first value, which ``put`` changes. Facts whose type is ``bool``, a ``Literal``
    or an ``Enum`` are free if they are not given. So is ``info``: the values of what comes with triggers from
    outside, by name. ``timeout_info`` comes with the triggers of time limits.

    ``may`` are the triggers that can come from outside, whenever they are legal, and ``will`` those that
    come at last if nothing else happens. ``"*"`` is every trigger in ``may``, and in ``will`` the one that
    ends a state without a limit (``unbounded``). Both may be mappings with conditions. The triggers of
    time limits need not be named.

    ``on`` has the reactions, by kind of effect and by trigger; other effects are not executed. A message
    for a part in a final state is dropped: the receiver is gone; ``late`` reacts to its trigger. With
    ``refuses``, other messages that are illegal in the state are dropped too, else they are violations.
    """

    name: str
    lifecycle: Lifecycle[Any, Any, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    timeout_info: Mapping[str, Any] = field(default_factory=dict)
    may: Outside = ()
    will: Outside = ()
    on: Mapping[Any, Reaction] = field(default_factory=dict)
    late: Reaction = ()
    refuses: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """How many messages of a run are lost, repeated, and overtaken by another in the same channel.

    A channel has one sender and one receiver. Runs with more than ``in_flight`` messages in one are not looked at.
    While messages are on their way, triggers of time limits and from outside come at most ``delay`` times.
    """

    lose: int = 0
    repeat: int = 0
    reorder: int = 0
    delay: int | None = None
    in_flight: int = 2


class Role:
    """A part as a search needs it. ``number``: the place of its life in a world."""

    def __init__(self, number: int, part: Part) -> None:
        self.number, self.part, self.name = number, part, part.name
        #: a copy, so that the search does not count as coverage and nothing observes it
        self.table = part.lifecycle.copy()
        self.triggers = frozenset(self.table.triggers())
        self.facts = {**declared_facts(part.lifecycle), **part.facts}
        kept = [n for n, v in part.facts.items() if isinstance(v, Once) or not _is_free(v)]
        #: the facts that a world contains, with their places; others are free, or follow
        self.kept = {name: place for place, name in enumerate(kept)}
        #: the triggers from outside by state, with their conditions
        self.may = {state: self._outside(part.may, state) for state in self.table.states}
        self.will = {state: self._outside(part.will, state) for state in self.table.states}

    def _outside(self, named: Outside, state: Any) -> dict[Any, Rule | None]:
        conditions = dict(named) if isinstance(named, Mapping) else dict.fromkeys(named)
        legal = dict.fromkeys(self.table.triggers(state))
        found: dict[Any, Rule | None] = {t: each for t, each in conditions.items() if t in legal}
        if "*" in conditions:
            around = [self.table.composites[each].lasts for each in self.table.around(state)]
            limits = (self.table.lasts.get(state), *around)
            ends = [limit.ends for limit in limits if isinstance(limit, Unbounded)]
            found |= {t: None for t in legal if named is self.part.may or t in ends}
        return found


def _is_free(value: Any) -> bool:
    """Whether a fact is not kept: it has several values, or follows from others."""
    return isinstance(value, tuple) or callable(value)


class System:
    """A composition of lifecycles with its rules.

    ``always`` has rules that hold in every world, by name; ``possible`` those that hold in some world;
    ``eventually`` those that are reached at last from every world, by messages that arrive, time limits
    and ``will``, without ``may``: by default, that all parts with final states are in one.
    Raises ``DefinitionError``.
    """

    def __init__(
        self,
        *parts: Part,
        network: Network | None = None,
        always: Rules | None = None,
        possible: Rules | None = None,
        eventually: Rules | None = None,
    ) -> None:
        self.network = network or Network()
        self.always, self.possible = dict(always or {}), dict(possible or {})
        self.eventually = dict(_all_end(parts) if eventually is None else eventually)
        self.roles = {part.name: Role(number, part) for number, part in enumerate(parts)}
        if len(self.roles) < len(parts):
            raise DefinitionError("two parts of a composition have the same name")
        for part in parts:
            for key in (*part.may, *part.will, *part.on):
                if key != "*" and not isinstance(key, type):
                    self.check_receiver(part.name, key)

    def check_receiver(self, name: str, trigger: Any) -> None:
        """Raise ``DefinitionError`` if there is no such part, or if it does not know the trigger."""
        if name not in self.roles:
            raise DefinitionError(f"no part has the name {name!r}{did_you_mean(name, self.roles)}")
        known = self.roles[name].triggers
        if trigger not in known:
            near = did_you_mean(trigger, sorted(known, key=text_of))
            raise DefinitionError(f"part {name}: unknown trigger {text_of(trigger)!r}{near}")


def _all_end(parts: tuple[Part, ...]) -> Rules:
    final = {part.name: part.lifecycle.final for part in parts if part.lifecycle.final}
    ends: Rule = lambda world: all(world[name].state in final[name] for name in final)  # noqa: E731
    return {"every part ends": ends} if final else {}
