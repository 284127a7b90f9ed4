"""The errors of lifecycles: a wrong definition, or a trigger at the wrong time."""

from __future__ import annotations

from transitions import MachineError

__all__ = ["DefinitionError", "InvalidTransition"]


class DefinitionError(ValueError):
    """A table that is not a lifecycle. The message names the lifecycle and the row."""


class InvalidTransition(MachineError):
    """A trigger that is not legal in the current state of the entity. Nothing has changed.

    Fields: ``lifecycle`` (its name), ``key`` (the entity's), ``state`` and ``trigger``.
    It is a ``transitions.MachineError``, so code written for the library catches it too. It can be
    pickled, because a driver may raise it in another process.
    """

    def __init__(self, lifecycle: str, key: str, state: str, trigger: str) -> None:
        super().__init__(f"{lifecycle} {key!r} cannot {trigger!r} in state {state}")
        self.lifecycle = lifecycle
        self.key = key
        self.state = state
        self.trigger = trigger

    def __reduce__(self) -> tuple[type[InvalidTransition], tuple[str, str, str, str]]:
        return type(self), (self.lifecycle, self.key, self.state, self.trigger)

    def __str__(self) -> str:
        return str(self.value)
