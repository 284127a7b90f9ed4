"""Random runs of a system with Hypothesis, which is needed for this module alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from quadriga.fsm.checking.search import Subject, alone, broken
from quadriga.fsm.checking.system import System
from quadriga.fsm.checking.world import (
    Broken,
    Happening,
    Move,
    Overflow,
    Trial,
    Violation,
    World,
    beginning,
    moves,
)
from quadriga.fsm.errors import InvalidTransition

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine


def stateful(subject: Subject, **options: Any) -> type[RuleBasedStateMachine]:
    """A state machine of Hypothesis for a system, or for a lifecycle ``alone`` with ``options``.

    ``TestOrder = stateful(ORDER).TestCase`` is a test. It carries out random moves, and checks ``always``, that
    guards and emitters give the same answer when they are asked again, and that triggers which are illegal in
    a state are refused and change nothing. The class may be derived from, with more rules and invariants; its
    attribute ``node`` is the present world, ``moves`` and ``happenings`` how it came to that.
    """
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

    system = subject if isinstance(subject, System) else alone(subject, **options)

    class Runs(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.node = beginning(system)
            self.moves: list[Move] = []
            self.happenings: list[Happening] = []

        @rule(data=st.data())
        def move(self, data: Any) -> None:
            possible = [move for move, _ in moves(system, self.node)]
            if not possible:
                return
            move = data.draw(st.sampled_from(possible), label="move")
            trial = Trial(
                system,
                self.node,
                lambda name, values: data.draw(st.sampled_from(values), label=name),
                twice=True,
            )
            found = trial.result(move)
            if isinstance(found, Overflow):
                return
            if isinstance(found, Broken):
                self._fail(found.kind, str(found), trial.happenings)
            self.node = found
            self.moves.append(move._replace(seen=tuple(trial.seen.items())))
            self.happenings += trial.happenings

        @rule(data=st.data())
        def refuse(self, data: Any) -> None:
            it = World(system, self.node)[data.draw(st.sampled_from([*system.roles]), label="part")]
            table, state = system.roles[it.key].table, it.state
            illegal = [t for t in table.triggers() if not table.allows(state, t)]
            if not illegal:
                return
            trigger = data.draw(st.sampled_from(illegal), label="illegal")
            try:
                table.fire(it, trigger)
            except InvalidTransition:
                assert it.state == state
            else:
                self._fail("raised", f"{it.key} takes {trigger!r}, which is illegal")

        @invariant()
        def keeps_its_rules(self) -> None:
            if name := broken(system, World(system, self.node)):
                self._fail("always", name)

        def _fail(self, kind: str, text: str, more: Iterable[Happening] = ()) -> NoReturn:
            raise Violation(kind, text, tuple(self.moves), (*self.happenings, *more))

    return Runs
