"""The words of a composition: its parts, what they do on effects, and what the network does to messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from quadriga.fsm.checking.facts import declared_facts
from quadriga.fsm.errors import DefinitionError, did_you_mean, text_of
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Unbounded

if TYPE_CHECKING:
    from quadriga.fsm.checking.violation import Happening
    from quadriga.fsm.checking.world import It, Move, Node, World

#: A rule: whether it holds in this world.
Rule = Callable[["World"], object]
Rules = Mapping[str, Rule]


class Action:
    """What a reaction does."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Send(Action):
    """``send``, and ``call``, which is carried out at once."""

    to: str
    trigger: Any
    info: tuple[tuple[str, Any], ...]
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Put(Action):
    """``put``"""

    facts: tuple[tuple[str, Any], ...]


def send(to: str, trigger: Any, /, **info: Any) -> Send:
    """A message to a part, which the network delivers later. Values of ``info`` are hashable."""
    return Send(to, trigger, tuple(sorted(info.items())))


def call(to: str, trigger: Any, /, **info: Any) -> Send:
    """Fire a trigger at a part in the same move, after what has begun. It cannot be lost."""
    return Send(to, trigger, tuple(sorted(info.items())), at_once=True)


def put(**facts: Any) -> Put:
    """Change facts of the part itself. Values are hashable."""
    return Put(tuple(sorted(facts.items())))


#: What a part does on an effect or a trigger: actions, or a function of the part and of the effect or the
#: information of the trigger, which returns them.
Reaction = Action | tuple[Action, ...] | Callable[["It", Any], Action | Iterable[Action] | None]
#: Triggers, or triggers with conditions. ``"*"`` are all of the table, or all that its ``lasts`` expect.
Outside = str | Collection[Any] | Mapping[Any, Rule]


class Once(tuple[Any, ...]):
    """A fact with one of these values, the same from the beginning to the end."""

    __slots__ = ()

    def __new__(cls, *values: Any) -> Once:
        return super().__new__(cls, values)


@dataclass(frozen=True, eq=False)
class Part:
    """One entity of a composition.

    ``facts`` are the attributes that its guards and emitters read, each

    - a tuple: the fact is free, any of these values whenever it is read;
    - ``Once(...)``: one of these values, for ever;
    - a function of the ``World``: it follows from other parts;
    - anything else: the first value, which ``put`` changes.

    Facts whose type is ``bool``, a ``Literal`` or an ``Enum`` are free if they are not given. ``info`` has the
    values of the information that comes with triggers from outside, by name, which are free too;
    ``timeout_info`` is what comes with the triggers of time limits.

    ``may`` are the triggers that can come from outside, whenever they are legal, and ``will`` those that come
    at last if nothing else happens. ``"*"`` in ``may`` stands for every trigger of the table, in ``will`` for
    the one that ends a state without a limit (``unbounded``). Both may be mappings with conditions. The
    triggers of time limits need not be named.

    ``on`` has the reactions, by kind of effect and by trigger; other effects are not executed. With
    ``refuses``, a message that is illegal in the state is dropped; otherwise it is a violation.
    """

    name: str
    lifecycle: Lifecycle[Any, Any, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    timeout_info: Mapping[str, Any] = field(default_factory=dict)
    may: Outside = ()
    will: Outside = ()
    on: Mapping[Any, Reaction] = field(default_factory=dict)
    refuses: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """How many messages of a run are lost, repeated and overtaken by another of the same sender and receiver.

    A message may be delayed while the triggers of time limits and from outside come ``delay`` times;
    ``None``: any number of times. ``in_flight`` messages of one sender to one receiver are on their way at most;
    the runs with more are not looked at.
    """

    lose: int = 0
    repeat: int = 0
    reorder: int = 0
    delay: int | None = None
    in_flight: int = 2


class System:
    """A composition of lifecycles with its rules.

    ``always`` has rules that hold in every world, by name; ``possible`` those that hold in some world;
    ``eventually`` those that are reached at last from every world, by messages that arrive, time limits and
    ``will``, without ``may``. By default that is: every part whose lifecycle has final states is in one.

    A message for a part in a final state is dropped: its receiver is gone. Raises ``DefinitionError`` for a
    composition with a mistake.
    """

    def __init__(
        self,
        *parts: Part,
        network: Network | None = None,
        always: Rules | None = None,
        possible: Rules | None = None,
        eventually: Rules | None = None,
    ) -> None:
        self.parts = parts
        self.network = network or Network()
        self.always, self.possible = dict(always or {}), dict(possible or {})
        self.eventually = dict(_all_end(parts) if eventually is None else eventually)
        self.index = {part.name: number for number, part in enumerate(parts)}
        if len(self.index) < len(parts):
            raise DefinitionError("two parts of a composition have the same name")
        #: copies, so that the search does not count as coverage and nothing observes it
        self.lifecycles = tuple(part.lifecycle.copy() for part in parts)
        #: facts that a world contains, by part; others are free, or follow
        self.kept = tuple(_kept(part) for part in parts)
        self.facts = tuple({**declared_facts(part.lifecycle), **part.facts} for part in parts)
        self.may = tuple(_outside(part, "may") for part in parts)
        self.will = tuple(_outside(part, "will") for part in parts)
        for part in parts:
            known = part.lifecycle.triggers()
            for key in (each for each in part.on if not isinstance(each, type)):
                check_trigger(part, key, known)

    def __repr__(self) -> str:
        return f"<System {' '.join(self.index)}>"

    def check_receiver(self, name: str, trigger: Any) -> None:
        """Raise ``DefinitionError`` if there is no such part, or if it does not know the trigger."""
        if name not in self.index:
            raise DefinitionError(f"no part has the name {name!r}{did_you_mean(name, self.index)}")
        part = self.parts[self.index[name]]
        check_trigger(part, trigger, part.lifecycle.triggers())

    def replay(self, *moves: Move, given: Mapping[str, Any] | None = None) -> tuple[Happening, ...]:
        """Carry out moves from the beginning with the facts ``given``, as far as they are possible.

        Raises the ``Violation`` if a rule of ``always`` is broken on the way or one of ``eventually`` is not
        reached from the end. This is how a counterexample becomes a test (``Violation.as_test``).
        """
        from quadriga.fsm.checking.search import replay

        return replay(self, moves, given)

    def beginnings(self) -> Iterator[tuple[dict[str, Any], Node]]:
        """Each world in which a run begins, with the facts that it has been given for ever."""
        from quadriga.fsm.checking.world import Life, Node

        once = [
            (part.name, name, value)
            for part in self.parts
            for name, value in part.facts.items()
            if isinstance(value, Once)
        ]
        network = self.network
        budget = (network.lose, network.repeat, network.reorder, network.delay or 0)
        for values in product(*(value for _, _, value in once)):
            given = {f"{p}.{name}": v for (p, name, _), v in zip(once, values, strict=True)}
            lives = tuple(
                Life(
                    part.lifecycle.initial,
                    tuple(given.get(f"{part.name}.{name}", part.facts[name]) for name in kept),
                )
                for part, kept in zip(self.parts, self.kept, strict=True)
            )
            yield given, Node(lives, (), budget)


def check_trigger(part: Part, trigger: Any, known: Collection[Any]) -> None:
    if trigger not in known:
        near = did_you_mean(trigger, tuple(known))
        raise DefinitionError(f"part {part.name}: unknown trigger {text_of(trigger)!r}{near}")


def _kept(part: Part) -> dict[str, int]:
    is_free = lambda value: isinstance(value, tuple) and not isinstance(value, Once)  # noqa: E731
    names = [
        name for name, value in part.facts.items() if not is_free(value) and not callable(value)
    ]
    return {name: number for number, name in enumerate(names)}


def _outside(part: Part, which: str) -> dict[Any, dict[Any, Rule | None]]:
    """The triggers from outside by state, with their conditions."""
    table, named = part.lifecycle, getattr(part, which)
    found: dict[Any, dict[Any, Rule | None]] = {}
    all_of_them = named == "*" or (not isinstance(named, str) and "*" in named)
    conditions = named if isinstance(named, Mapping) else {}
    listed = [each for each in ((named,) if isinstance(named, str) else named) if each != "*"]
    for trigger in listed:
        check_trigger(part, trigger, table.triggers())
    for state in table.states:
        here = dict.fromkeys(t for t in listed if table.allows(state, t))
        if all_of_them and which == "may":
            here = dict.fromkeys(table.triggers(state))
        elif all_of_them:
            limits = [
                table.lasts.get(state),
                *(table.composites[c].lasts for c in table.around(state)),
            ]
            ends = (limit.ends for limit in limits if isinstance(limit, Unbounded))
            here |= dict.fromkeys(end for end in ends if table.allows(state, end))
        found[state] = {trigger: conditions.get(trigger) for trigger in here}
    return found


def _all_end(parts: tuple[Part, ...]) -> Rules:
    ending = {part.name: part.lifecycle.final for part in parts if part.lifecycle.final}
    if not ending:
        return {}
    return {
        "every part ends": lambda world: all(
            world[name].state in final for name, final in ending.items()
        )
    }
