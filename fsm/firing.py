"""What a trigger leads to in a state, and the effects that a row emits.

Nothing here knows the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quadriga.fsm.table import Edge, Effect, Fired, Guard, Info, Row

__all__ = ["Cell", "Choices", "Step", "emit"]


@dataclass(slots=True)
class Step:
    """What firing a trigger has come to: the edge, whether the state is another now, the effects.

    One object stands for all transitions of a row that emits nothing.
    """

    edge: Edge
    target: str
    moves: bool
    #: nothing more follows from it: no effect, and no time limit of a state that was entered
    quiet: bool = False
    effects: tuple[Effect, ...] = ()


#: The rows of a state and a trigger to try in order: guard, step, and the row if it emits.
Choices = tuple[tuple[Guard | None, Step, Row | None], ...]
#: The step alone, where there is nothing to choose and nothing to emit.
Cell = Step | Choices


def emit(entity: Any, row: Row, info: Info) -> tuple[Effect, ...]:
    fired = Fired(row.trigger, row.source, row.target or row.source, info)
    if len(row.emit) == 1:
        return tuple(row.emit[0](entity, fired))
    return tuple(effect for emitter in row.emit for effect in emitter(entity, fired))
