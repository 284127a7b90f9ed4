"""Worlds: the states of all parts, their facts, the messages on their way; and moves, which lead on.

A ``Node`` is a world as a value; a ``World`` is what guards, rules and reactions see of it. A ``Trial``
carries out a move: a trigger is fired, reactions follow, until nothing is left to do. A ``Violation`` is the way to
a broken rule.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from quadriga.fsm.checking.facts import Answer, Answers, Info
from quadriga.fsm.checking.system import Once, Put, Role, Send, System
from quadriga.fsm.errors import DefinitionError, text_of
from quadriga.fsm.firing import Step
from quadriga.fsm.table import Row

#: Information, or values of facts, by name.
Pairs = tuple[tuple[str, Any], ...]
#: The sender of what comes from outside.
OUTSIDE = "outside"
#: A move that calls more often than this does not come to an end.
MOST_CALLS = 1_000

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
    info: Pairs


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
    info: Pairs = ()
    seen: Pairs = ()

    def __repr__(self) -> str:
        more = (f", {name}={value!r}" for name, value in self._asdict().items() if value)
        return f"Move({self.kind!r}, {self.part!r}, {self.trigger!r}{''.join([*more][3:])})"


@dataclass(frozen=True, slots=True)
class Happening:
    """A trigger that is fired, or a message that is lost (``kind``): from whom, at whom, and what it does.

    ``quadriga.diagrams.sequence`` draws them too: they have all that it reads.
    """

    sender: str
    receiver: str
    label: str
    kind: str
    note: str
    time_ns: int = 0

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}: {self.label}   ({self.note})"


class World:
    """The parts by name (``world["order"].state``), and ``mail``, the messages on their way.

    The facts of a part are its attributes. Only guards and emitters may read free ones.
    """

    def __init__(self, system: System, node: Node, answer: Answer | None = None) -> None:
        self.system, self._answer = system, answer
        self.lives, self.mail = list(node.lives), list(node.mail)

    def __getitem__(self, name: str) -> It:
        return It(self, self.system.roles[name])

    def fact(self, role: Role, name: str) -> Any:
        """The value of a fact of a part. Raises ``AttributeError``."""
        if name in role.kept:
            fact = self.lives[role.number].facts[role.kept[name]]
            if isinstance(fact, Once):
                if self._answer is None:
                    return None
                fact = self._answer(f"{role.name}.{name}", fact)
                self.put(role, name, fact)
            return fact
        fact = role.facts.get(name, ())
        if callable(fact):
            return fact(self)
        if not fact:
            raise AttributeError(f"{role.name} has no fact {name!r}: declare its values in facts=")
        if self._answer is None:
            raise AttributeError(f"{role.name}.{name} is free: only guards and emitters read it")
        return self._answer(f"{role.name}.{name}", fact)

    def put(self, role: Role, name: str, value: Any) -> None:
        """Change a fact that is kept. Raises ``DefinitionError`` for others."""
        if name not in role.kept:
            raise DefinitionError(f"part {role.name}: put() of {name!r}, no first value")
        life, place = self.lives[role.number], role.kept[name]
        facts = (*life.facts[:place], value, *life.facts[place + 1 :])
        self.lives[role.number] = life._replace(facts=facts)


class It:
    """A part as guards, emitters, rules and reactions see it: ``state``, ``key``, ``world``, its facts."""

    key: str
    state: Any
    history: dict[str, str]
    world: World

    def __init__(self, world: World, role: Role) -> None:
        life = world.lives[role.number]
        about = {"state": life.state, "history": dict(life.history), "key": role.name}
        self.__dict__.update(about, world=world, _role=role)

    def __getattr__(self, name: str) -> Any:
        return self.world.fact(self.__dict__["_role"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "state":
            raise AttributeError(f"{self.key}.{name} is read only: a reaction changes it by put()")
        object.__setattr__(self, name, value)


def beginning(system: System) -> Node:
    """The world in which every run begins."""
    lives = [
        Life(role.table.initial, tuple(map(role.facts.get, role.kept)))
        for role in system.roles.values()
    ]
    network = system.network
    budget = (network.lose, network.repeat, network.reorder, network.delay or 0)
    return Node(tuple(lives), (), budget)


def moves(system: System, node: Node) -> Iterator[tuple[Move, bool]]:
    """What can happen next, and whether it helps: whether it happens at last, if nothing else does."""
    budget = node.budget
    channels: set[tuple[str, str]] = set()
    for message in dict.fromkeys(node.mail):
        what = (message.to, text_of(message.trigger), message.sender, message.info)
        if message[:2] not in channels:
            channels.add(message[:2])
            yield Move("deliver", *what), True
            if budget[REPEAT]:
                yield Move("repeat", *what), False
            if budget[LOSE]:
                yield Move("lose", *what), False
        elif budget[REORDER]:
            yield Move("deliver", *what), False
    if node.mail and system.network.delay is not None and not budget[DELAY]:
        return
    world = World(system, node)
    for role, life in zip(system.roles.values(), node.lives, strict=True):
        for trigger in dict.fromkeys(trigger for _, trigger in due(role, life)):
            yield Move("timeout", role.name, text_of(trigger)), True
        will = role.will[life.state]
        for trigger, condition in (role.may[life.state] | will).items():
            if condition is None or condition(world):
                yield Move("fire", role.name, text_of(trigger)), trigger in will


def due(role: Role, life: Life) -> Iterator[tuple[Any, Any]]:
    """The states that the part is in and whose time may be over, with the trigger that is fired then."""
    for state in (life.state, *role.table.around(life.state)):
        limit = role.table.timed.get(state)
        if limit is not None and limit.then is not None and state not in life.over:
            yield state, limit.then


class Broken(Exception):
    """A move breaks a rule that nobody has to write down: ``kind`` is ``refused`` or ``raised``."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Overflow(Exception):
    """More messages would be on their way than the network allows."""


class Trial(World):
    """A world in which a move is carried out, with answers for the free facts.

    ``rows``, with the names of the parts, are those that were taken. With ``twice``, guards and emitters
    are called again, to see whether they waver.
    """

    _answer: Answer

    def __init__(self, system: System, node: Node, answer: Answer, *, twice: bool = False) -> None:
        #: the values of the free facts that were read, which they keep within a move
        self.seen: dict[str, Any] = {}

        def once(name: str, values: tuple[Any, ...]) -> Any:
            if name not in self.seen:
                self.seen[name] = answer(name, values)
            return self.seen[name]

        super().__init__(system, node, once)
        self.budget, self._twice = list(node.budget), twice
        self.happenings: list[Happening] = []
        self.rows: list[tuple[str, Row | None]] = []
        self._calls: deque[tuple[str, Send]] = deque()

    def result(self, move: Move) -> Node | Broken | Overflow:
        """Carry out one of ``moves``, and return the world that it leads to, or an error."""
        try:
            return self._run(move)
        except (Broken, Overflow) as error:
            return error

    def _run(self, move: Move) -> Node:
        mail, network = self.mail, self.system.network
        if move.sender:
            self._deliver(move)
        else:
            self.budget[DELAY] -= bool(mail) and network.delay is not None
            self._from_outside(move)
        for _ in range(MOST_CALLS):
            if not self._calls:
                break
            sender, call = self._calls.popleft()
            self._arrive(sender, call.to, call.trigger, call.info)
        else:
            raise Broken("raised", f"{move} calls without an end")
        channels = [message[:2] for message in mail]
        if max(map(channels.count, channels), default=0) > network.in_flight:
            raise Overflow
        mail.sort(key=lambda message: message[:2])  # stable: the order in a channel is kept
        return Node(tuple(self.lives), tuple(mail), tuple(self.budget))

    def _deliver(self, move: Move) -> None:
        mail, budget = self.mail, self.budget
        channel = [message for message in mail if message[:2] == (move.sender, move.part)]
        wanted = move.trigger, move.info
        message = next(m for m in channel if (text_of(m.trigger), m.info) == wanted)
        budget[REORDER] -= message != channel[0]
        budget[REPEAT] -= move.kind == "repeat"
        budget[LOSE] -= move.kind == "lose"
        if move.kind != "repeat":
            mail.remove(message)
        if move.kind == "lose":
            said = _said(message.trigger, message.info)
            self._tell(move.sender, move.part, said, "is lost", "lost")
        else:
            again = " (and again)" if move.kind == "repeat" else ""
            self._arrive(move.sender, move.part, message.trigger, message.info, again)

    def _from_outside(self, move: Move) -> None:
        role = self.system.roles[move.part]
        life = self.lives[role.number]
        trigger = next(t for t in role.table.triggers(life.state) if text_of(t) == move.trigger)
        if move.kind == "fire":
            info = Info({}, role.part.info, self._answer)
            self._fire(role, trigger, info, OUTSIDE, move.trigger)
            return
        over = next(state for state, then in due(role, life) if then == trigger)
        info = Info(role.part.timeout_info, {}, self._answer)
        step = self._fire(role, trigger, info, role.name, f"time limit: {move.trigger}")
        if not step.entered and role.table.timed[over].backoff_to is None:  # it is fired once only
            life = self.lives[role.number]
            self.lives[role.number] = life._replace(over=(*life.over, over))

    def _arrive(self, sender: str, to: str, trigger: Any, info: Pairs, more: str = "") -> None:
        """A message or a call is there."""
        role, said = self.system.roles[to], _said(trigger, info) + more
        state = self.lives[role.number].state
        if role.table.allows(state, trigger):
            self._fire(role, trigger, Info(dict(info), {}, self._answer), sender, said)
        elif state in role.table.final or role.part.refuses:
            self._tell(sender, to, said, f"dropped in {text_of(state)}")
            if state in role.table.final:
                self._react(role, role.part.late, trigger)
        else:
            self._tell(sender, to, said, f"illegal in {text_of(state)}")
            raise Broken("refused", f"{to} cannot {text_of(trigger)!r} in state {text_of(state)}")

    def _fire(self, role: Role, trigger: Any, info: Info, sender: str, said: str) -> Step:
        table, on, it = role.table, role.part.on, It(self, role)
        source = it.state
        try:
            step = table.take(it, trigger, info)
            if self._twice:
                again = table.take(It(self, role), trigger, info)
                if (again.row, again.effects) != (step.row, step.effects):
                    raise AssertionError(f"two results: {step.effects}, then {again.effects}")
        except Exception as error:
            self._tell(sender, role.name, said, "raises")
            raise Broken("raised", f"{type(error).__name__}: {error}") from error
        self.rows.append((role.name, step.row))
        arrow = f"{text_of(source)} → {text_of(step.target)}"
        self._tell(sender, role.name, said, arrow if step.entered else f"stays {text_of(source)}")
        if step.entered:
            life = self.lives[role.number]
            left, _ = table.crossed(step.edge)
            around = table.around(step.target)
            over = tuple(each for each in life.over if each in around and each not in left)
            history = tuple(sorted(it.history.items()))
            self.lives[role.number] = life._replace(state=step.target, history=history, over=over)
        for kind, cause in ((trigger, info), *((type(effect), effect) for effect in step.effects)):
            if kind in on:
                self._react(role, on[kind], cause)
        return step

    def _react(self, role: Role, reaction: Any, cause: Any) -> None:
        done = reaction(It(self, role), cause) if callable(reaction) else reaction
        for action in done if isinstance(done, Iterable) else (done,):
            if isinstance(action, Put):
                for fact, value in action.facts.items():
                    self.put(role, fact, value)
            elif isinstance(action, Send):
                self.system.check_receiver(action.to, action.trigger)
                if action.at_once:
                    self._calls.append((role.name, action))
                else:
                    self.mail.append(Message(role.name, action.to, action.trigger, action.info))
            else:
                raise DefinitionError(
                    f"part {role.name}: a reaction returned {action!r}, no action"
                )

    def _tell(self, sender: str, to: str, said: str, note: str, kind: str = "message") -> None:
        self.happenings.append(Happening(sender, to, said, kind, note))


def _said(trigger: Any, info: Pairs) -> str:
    named = ", ".join(f"{name}={value}" for name, value in info)
    return f"{text_of(trigger)}({named})" if named else text_of(trigger)


def outcomes(
    system: System, node: Node, move: Move
) -> Iterator[tuple[Move, Trial, Node | Broken | Overflow]]:
    """Each outcome of a move, by what the free facts are: the world that it leads to, or an error."""
    answers: Answers | None = Answers()
    while answers is not None:
        trial = Trial(system, node, answers)
        found = trial.result(move)
        yield move._replace(seen=tuple(trial.seen.items())), trial, found
        answers = answers.following()


# -- broken rules ----------------------------------------------------------------------------------


KINDS = {
    "always": "does not hold any more",
    "possible": "is not possible",
    "eventually": "is not reached any more",
    "refused": "a message is illegal",
    "raised": "a step fails",
}


@dataclass(eq=False)
class Violation(AssertionError):
    """A rule that does not hold: ``kind`` (``always``, ``possible``, ``eventually``; ``refused`` and ``raised``
    without a rule), ``rule``, and the shortest way to it: ``moves`` and ``happenings``."""

    kind: str
    rule: str
    moves: tuple[Move, ...] = ()
    happenings: tuple[Happening, ...] = ()

    def __str__(self) -> str:
        after = "" if self.kind == "possible" else f" after {len(self.moves)} moves"
        lines = [f"{KINDS[self.kind]}{after}: {self.rule}"]
        lines += [f"  {number}. {each}" for number, each in enumerate(self.happenings, 1)]
        return "\n".join(lines)

    def as_mermaid(self) -> str:
        """The way as a sequence diagram of Mermaid. Lost messages end in a cross."""
        names = dict.fromkeys(n for h in self.happenings for n in (h.sender, h.receiver))
        ids = {name: f"p{number}" for number, name in enumerate(names)}
        lines = ["sequenceDiagram"]
        lines += [f"    participant {ids[name]} as {_escape(name)}" for name in names]
        for each in self.happenings:
            arrow = "-x" if each.kind == "lost" else "->>"
            there = ids[each.receiver]
            lines.append(f"    {ids[each.sender]}{arrow}{there}: {_escape(each.label)}")
            lines.append(f"    Note right of {there}: {_escape(each.note)}")
        if names:
            over = ",".join(dict.fromkeys(("p0", f"p{len(names) - 1}")))
            lines.append(f"    Note over {over}: {_escape(f'{KINDS[self.kind]}: {self.rule}')}")
        return "\n".join(lines) + "\n"

    def as_test(self, system: str) -> str:
        """The way as a test for pytest, which fails as long as the rule is broken in this way.

        ``system`` is ``module:NAME`` of the ``System``; values of facts appear in it as their ``repr``.
        """
        module, _, name = system.partition(":")
        title = re.sub(r"\W+", "_", self.rule.lower()).strip("_")[:70]
        if self.kind == "possible":
            use, body = "check", f"    check({name})\n"
        else:
            steps = "".join(f"        {move!r},\n" for move in self.moves)
            use, body = "Move, replay", f"    replay(\n        {name},\n{steps}    )\n"
        return (
            f"from quadriga.fsm.checking import {use}\nfrom {module} import {name}\n\n\n"
            f'def test_{title}() -> None:\n    """{KINDS[self.kind].capitalize()}."""\n{body}'
        )


def _escape(text: str) -> str:
    """Mermaid ends a text at a semicolon and reads ``#`` as the start of an entity."""
    return re.sub("[#;]", lambda found: f"#{ord(found[0])};", " ".join(text.split()))
