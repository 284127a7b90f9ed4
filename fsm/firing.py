"""The step that a trigger leads to in a state, and the effects of a row.

This module does not depend on the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quadriga.fsm.table import Edge, Effect, Fired, Guard, Info, Row

__all__ = ["Cell", "Choices", "Step", "emit"]


@dataclass(slots=True)
class Step:
    """The result of a trigger: the edge, the new state, whether the state changed, and the effects.

    All transitions of a row without emitters share one object.
    """

    edge: Edge
    target: Any
    moves: bool
    #: The step has no effects, and the new state has no time limit: nothing else has to be done.
    quiet: bool = False
    effects: tuple[Effect, ...] = ()


#: The rows of a state and a trigger, to try in order: guard, step, and the row if it has emitters.
Choices = tuple[tuple[Guard | None, Step, Row | None], ...]
#: A step alone if there is only one row, with neither guard nor emitters.
Cell = Step | Choices


def emit(entity: Any, row: Row, info: Info) -> tuple[Effect, ...]:
    fired = Fired(row.trigger, row.source, row.target or row.source, info)
    if len(row.emit) == 1:
        return tuple(row.emit[0](entity, fired))
    effects: list[Effect] = []
    for emitter in row.emit:
        effects += emitter(entity, fired)
    return tuple(effects)
