"""What a lifecycle's table says: states, rows, what is legal, which states are lifecycles themselves.

The answers are those of the machine as it is now, so they are read again after it has changed. Nothing
here changes a lifecycle or fires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from quadriga.fsm.compiling import Live
from quadriga.fsm.errors import DefinitionError, text_of, unknown_state
from quadriga.fsm.loading import check_state
from quadriga.fsm.nesting import Composite, Nesting, WrittenTable
from quadriga.fsm.table import EVERY, Edge, Entity, Every, Facts, Row, State, Trigger

Value = TypeVar("Value")


class ReadableTable(WrittenTable, Generic[State, Trigger, Facts]):
    """The questions that a ``Lifecycle`` answers."""

    initial: State
    stock: bool
    nesting: Nesting | None
    #: former names of states, which entities that were stored may still have
    renamed: dict[Any, Any]
    #: the machine has changed since it was read
    _stale: bool
    _live: Live
    _rows: tuple[Row[State, Trigger, Facts], ...]
    _states: tuple[State, ...]
    _final: tuple[State, ...]
    #: pairs of state and trigger: all, and those that change nothing
    _legal: frozenset[tuple[Any, Any]]
    _idle: frozenset[tuple[Any, Any]]

    def _read(self) -> None:
        """Read the machine as it is now."""
        raise NotImplementedError

    @property
    def rows(self) -> tuple[Row[State, Trigger, Facts], ...]:
        """The rows of the table, as the machine has them now."""
        if self._stale:
            self._read()
        return self._rows

    @property
    def states(self) -> tuple[State, ...]:
        """All states."""
        if self._stale:
            self._read()
        return self._states

    @property
    def final(self) -> tuple[State, ...]:
        """The states without exits."""
        if self._stale:
            self._read()
        return self._final

    def triggers(self, state: State | Every = EVERY) -> tuple[Trigger, ...]:
        """Every trigger, or those that are legal in a state, in the order of the table."""
        named = (r.trigger for r in self.rows if state is EVERY or r.source == state)
        return tuple(dict.fromkeys(named))

    def allows(self, state: State, trigger: Trigger) -> bool:
        """Whether the trigger is legal in the state."""
        if self._stale:
            if self.stock:
                return bool(self._live.rows_from(state, trigger))
            self._read()
        return (state, trigger) in self._legal

    def idles(self, state: State, trigger: Trigger) -> bool:
        """Whether the trigger does nothing in this state (an ``ignored`` row), so that it need not be
        fired."""
        if self._stale:
            if self.stock:
                rows = self._live.rows_from(state, trigger)
                return len(rows) == 1 and rows[0].target is None and not rows[0].emit
            self._read()
        return (state, trigger) in self._idle

    def rows_from(
        self, state: State, trigger: Trigger | None = None
    ) -> tuple[Row[State, Trigger, Facts], ...]:
        """The rows with this source state, for one trigger or for all."""
        return tuple(
            r for r in self.rows if r.source == state and (trigger is None or r.trigger == trigger)
        )

    def check(self, entity: Entity[State]) -> None:
        """Raise ``UnknownState`` if the entity, which was stored perhaps, is in none of the states."""
        check_state(self.name, entity.key, entity.state, self.states, self.renamed)

    def total(self, what: str, by_state: Mapping[State, Value]) -> dict[State, Value]:
        """A copy of a table with a key for every state of the lifecycle and for no other.

        Raises ``DefinitionError`` naming the table (``what``) and the states at fault.
        """
        known = self.states
        missing = [state for state in known if state not in by_state]
        unknown = [state for state in by_state if state not in known]
        for problem, states in (("lacks", missing), ("has unknown", unknown)):
            if states:
                raise DefinitionError(
                    f"{self.name}: {what} {problem} {', '.join(map(text_of, states))}"
                )
        return dict(by_state)

    # -- states that are lifecycles ------------------------------------------------------------

    @property
    def composites(self) -> dict[str, Composite]:
        """The states that are lifecycles themselves, by name; those inside before those around them."""
        return self.nesting.composites if self.nesting else {}

    @property
    def children(self) -> tuple[str, ...]:
        """The states of this lifecycle itself, without those inside of its composites."""
        states: tuple[Any, ...] = self.states
        if self.nesting is None:
            return states
        added = (state for state in states if state not in self.nesting.leaves)
        return (*self.nesting.children, *added)

    @property
    def nested_rows(self) -> tuple[Row[State, Trigger, Facts], ...]:
        """The rows as they are written: a row from a composite is one row, not one for each state inside."""
        return self.nesting.nested_rows_of(self.rows) if self.nesting else self.rows

    def around(self, state: State) -> tuple[str, ...]:
        """The composites around a state, the outermost first."""
        return self.nesting.around(state) if self.nesting else ()

    def crossed(self, edge: Edge) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The composites that a transition leaves and those that it enters, both in this order.

        A composite that is left and entered again is in both.
        """
        return self.nesting.crossings.get(edge[1:], ((), ())) if self.nesting else ((), ())

    def is_in(self, entity: Entity[State], state: State) -> bool:
        """Whether the entity is in this state, or in a state inside of it.

        Raises ``ValueError`` for a state that the lifecycle does not have.
        """
        if composite := self.composites.get(text_of(state)):
            return entity.state in composite.leaves
        if state not in self.states:
            known = (*self.states, *self.composites)
            raise ValueError(f"{self.name}: {unknown_state(state, known)}")
        return entity.state == state
