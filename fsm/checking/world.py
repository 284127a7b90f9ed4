"""Worlds: the states of all parts, their facts, the messages on their way; and moves, which lead on.

A ``Node`` is a world as a value; a ``World`` is what guards, rules and reactions see of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from quadriga.fsm.checking.facts import Answer
from quadriga.fsm.checking.system import Once, System
from quadriga.fsm.errors import text_of

LOSE, REPEAT, REORDER, DELAY = range(4)


class Life(NamedTuple):
    """A part: its state, the facts that are kept, its history, and those of its time limits that are over
    (by state, or composite around the state)."""

    state: Any
    facts: tuple[Any, ...]
    history: tuple[tuple[str, str], ...] = ()
    over: tuple[Any, ...] = ()


class Message(NamedTuple):
    """A message on its way."""

    sender: str
    to: str
    trigger: Any
    info: tuple[tuple[str, Any], ...]


class Node(NamedTuple):
    """A world as a value. ``budget``: how many messages may still be lost, repeated, overtaken, delayed."""

    lives: tuple[Life, ...]
    mail: tuple[Message, ...]
    budget: tuple[int, ...]


class Move(NamedTuple):
    """What happens next.

    ``kind`` is ``fire`` (from outside), ``timeout``, ``deliver``, ``repeat`` (deliver a message that stays
    on its way) or ``lose``. ``seen`` are the values of the free facts that were read.
    """

    kind: str
    part: str
    trigger: str
    sender: str = ""
    info: tuple[tuple[str, Any], ...] = ()
    seen: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        more = (f", {name}={value!r}" for name, value in self._asdict().items() if value)
        return f"Move({self.kind!r}, {self.part!r}, {self.trigger!r}{''.join([*more][3:])})"


class World:
    """The parts by name (``world["order"].state``), and ``mail``, the messages on their way.

    The facts of a part are its attributes. Only guards and emitters may read free ones.
    """

    def __init__(self, system: System, node: Node, answer: Answer | None = None) -> None:
        self.system, self._answer = system, answer
        self.lives, self.mail = list(node.lives), list(node.mail)

    def __getitem__(self, name: str) -> It:
        return It(self, self.system.index[name])

    def fact(self, number: int, name: str) -> Any:
        """The value of a fact of a part. Raises ``AttributeError``."""
        part, place = self.system.parts[number].name, self.system.kept[number].get(name)
        if place is None:
            fact = self.system.facts[number].get(name, ())
            if callable(fact):
                return fact(self)
            if not fact:
                raise AttributeError(f"{part} has no fact {name!r}: declare its values in facts=")
        else:
            life = self.lives[number]
            fact = life.facts[place]
            if not isinstance(fact, Once):
                return fact
        if self._answer is None:
            if place is not None:
                return None
            raise AttributeError(f"{part}.{name} is free: only guards and emitters can read it")
        value = self._answer(f"{part}.{name}", fact)
        if place is not None:
            self.put(number, name, value)
        return value

    def put(self, number: int, name: str, value: Any) -> None:
        """Change a fact that is kept. Raises ``KeyError`` for others."""
        life, place = self.lives[number], self.system.kept[number][name]
        facts = (*life.facts[:place], value, *life.facts[place + 1 :])
        self.lives[number] = life._replace(facts=facts)


class It:
    """A part as guards, emitters, rules and reactions see it: ``state``, ``key``, ``world``, its facts."""

    __slots__ = ("_number", "history", "state", "world")
    state: Any
    world: World

    def __init__(self, world: World, number: int) -> None:
        life, put = world.lives[number], object.__setattr__
        put(self, "world", world)
        put(self, "_number", number)
        put(self, "state", life.state)
        put(self, "history", dict(life.history))

    @property
    def key(self) -> str:
        """The name of the part."""
        return str(self.world.system.parts[self._number].name)

    def __getattr__(self, name: str) -> Any:
        return self.world.fact(self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "state":
            raise AttributeError(f"{self.key}.{name} is read only: a reaction changes it by put()")
        object.__setattr__(self, name, value)


def beginning(system: System) -> Node:
    """The world in which every run begins."""
    lives = (
        Life(part.lifecycle.initial, tuple(part.facts[name] for name in kept))
        for part, kept in zip(system.parts, system.kept, strict=True)
    )
    network = system.network
    budget = (network.lose, network.repeat, network.reorder, network.delay or 0)
    return Node(tuple(lives), (), budget)


def moves(system: System, node: Node) -> Iterator[tuple[Move, bool]]:
    """What can happen next, and whether it helps: whether it happens at last, if nothing else does."""
    budget, seen = node.budget, set()
    channels: set[tuple[str, str]] = set()
    for message in node.mail:
        is_late = message[:2] in channels
        what = (message.to, text_of(message.trigger), message.sender, message.info)
        if message in seen:
            continue
        if not is_late or budget[REORDER]:
            yield Move("deliver", *what), not is_late
        if not is_late and budget[REPEAT]:
            yield Move("repeat", *what), False
        if not is_late and budget[LOSE]:
            yield Move("lose", *what), False
        channels.add(message[:2])
        seen.add(message)
    if node.mail and system.network.delay is not None and not budget[DELAY]:
        return
    world = World(system, node)
    for number, (part, life) in enumerate(zip(system.parts, node.lives, strict=True)):
        for trigger in dict.fromkeys(trigger for _, trigger in due(system, number, life)):
            yield Move("timeout", part.name, text_of(trigger)), True
        will = system.will[number][life.state]
        for trigger, condition in (system.may[number][life.state] | will).items():
            if condition is None or condition(world):
                yield Move("fire", part.name, text_of(trigger)), trigger in will


def due(system: System, number: int, life: Life) -> Iterator[tuple[Any, Any]]:
    """The states that the part is in and whose time may be over, with the trigger that is fired then."""
    table = system.lifecycles[number]
    for state in (life.state, *table.around(life.state)):
        limit = table.timed.get(state)
        if limit is not None and limit.then is not None and state not in life.over:
            yield state, limit.then
