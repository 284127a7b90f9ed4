"""Worlds: the states of all parts, their facts and the messages on their way; and moves, which lead on.

A ``Node`` is a world as a value that can be compared; a ``World`` is what rules, facts and reactions see of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.fsm.checking.facts import Answer
from quadriga.fsm.errors import text_of

if TYPE_CHECKING:
    from quadriga.fsm.checking.system import System

OUTSIDE = "outside"


class Life(NamedTuple):
    """A part: its state, the facts that are kept, what is left in its history, and those of its time limits
    that are over (states, or composites around the state)."""

    state: Any
    facts: tuple[Any, ...]
    history: tuple[tuple[str, str], ...] = ()
    over: tuple[Any, ...] = ()


class Message(NamedTuple):
    """A message on its way."""

    sender: str
    to: str
    trigger: Any
    info: tuple[tuple[str, Any], ...] = ()


class Node(NamedTuple):
    """A world as a value. ``budget`` is how many messages may still be lost, repeated, overtaken, delayed."""

    lives: tuple[Life, ...]
    mail: tuple[Message, ...]
    budget: tuple[int, ...]


LOSE, REPEAT, REORDER, DELAY = range(4)


class Move(NamedTuple):
    """What happens next.

    ``kind`` is ``fire`` (from outside), ``timeout``, ``deliver``, ``repeat`` (deliver a message that stays on
    its way) or ``lose``. ``seen`` are the values of the free facts that were read.
    """

    kind: str
    part: str
    trigger: str
    sender: str = ""
    info: tuple[tuple[str, Any], ...] = ()
    seen: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        more = "".join(
            f", {name}={value!r}"
            for name, value in zip(self._fields[3:], self[3:], strict=True)
            if value
        )
        return f"Move({self.kind!r}, {self.part!r}, {self.trigger!r}{more})"


class World:
    """The parts by name (``world["order"].state``), and ``mail``, the messages on their way.

    The facts of a part are its attributes. Only guards and emitters may read free ones.
    """

    def __init__(self, system: System, node: Node, answer: Answer | None = None) -> None:
        self.system = system
        self.lives = list(node.lives)
        self.mail = list(node.mail)
        self._answer = answer

    def __getitem__(self, name: str) -> It:
        return It(self, self.system.index[name])

    def __iter__(self) -> Iterator[It]:
        """All parts."""
        return (It(self, number) for number in range(len(self.lives)))

    def fact(self, number: int, name: str) -> Any:
        kept = self.system.kept[number]
        if name in kept:
            return self.lives[number].facts[kept[name]]
        part = self.system.parts[number].name
        try:
            fact = self.system.facts[number][name]
        except KeyError:
            raise AttributeError(
                f"{part} has no fact {name!r}: declare its values in facts= of the part"
            ) from None
        if callable(fact):
            return fact(self)
        if self._answer is None:
            raise AttributeError(f"{part}.{name} is free: only guards and emitters can read it")
        return self._answer(f"{part}.{name}", fact)


class It:
    """A part as guards, emitters, rules and reactions see it: ``state``, ``key``, and its facts."""

    __slots__ = ("_number", "history", "state", "world")

    state: Any
    world: World
    history: dict[str, str]
    _number: int

    def __init__(self, world: World, number: int) -> None:
        life = world.lives[number]
        put = object.__setattr__
        put(self, "world", world)
        put(self, "_number", number)
        put(self, "state", life.state)
        put(self, "history", dict(life.history))

    @property
    def key(self) -> str:
        """The name of the part."""
        return self.world.system.parts[self._number].name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.world.fact(self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "state":
            raise AttributeError(
                f"{self.key}.{name} is changed by a guard or an emitter: use put()"
            )
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<{self.key} in {text_of(self.state)}>"


def moves(system: System, node: Node) -> Iterator[tuple[Move, bool]]:
    """What can happen next, and whether it helps: whether it happens at last, if nothing else does."""
    budget = node.budget
    for message, is_late in _waiting(node.mail):
        what = (message.to, text_of(message.trigger), message.sender, message.info)
        if not is_late or budget[REORDER]:
            yield Move("deliver", *what), not is_late
        if not is_late and budget[REPEAT]:
            yield Move("repeat", *what), False
        if not is_late and budget[LOSE]:
            yield Move("lose", *what), False
    if node.mail and system.network.delay is not None and not budget[DELAY]:
        return
    for number, part in enumerate(system.parts):
        life, table = node.lives[number], system.lifecycles[number]
        for trigger in dict.fromkeys(trigger for _, trigger in due(system, number, life)):
            yield Move("timeout", part.name, text_of(trigger)), True
        if life.state in table.final:
            continue
        world = World(system, node)
        will = system.will[number].get(life.state, {})
        may = system.may[number].get(life.state, {})
        for trigger, condition in {**may, **will}.items():
            if condition is None or condition(world):
                yield Move("fire", part.name, text_of(trigger)), trigger in will


def _waiting(mail: tuple[Message, ...]) -> Iterator[tuple[Message, bool]]:
    """The messages that are different, and whether each overtakes another one to arrive now."""
    before: dict[tuple[str, str], set[Message]] = {}
    for message in mail:
        earlier = before.setdefault(message[:2], set())
        if message not in earlier:
            yield message, bool(earlier)
        earlier.add(message)


def due(system: System, number: int, life: Life) -> Iterator[tuple[Any, Any]]:
    """The states that the part is in and whose time may be over, with the trigger that is fired then."""
    table = system.lifecycles[number]
    for state in (life.state, *table.around(life.state)):
        limit = table.timed.get(state)
        if limit is not None and limit.then is not None and state not in life.over:
            yield state, limit.then
