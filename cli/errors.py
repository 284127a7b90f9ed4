"""What a command says when it cannot go on."""

from __future__ import annotations

__all__ = ["FOUND", "USAGE", "CommandError"]

#: exit codes beside 0: the run found a problem; the command line or its input is wrong
FOUND, USAGE = 1, 2


class CommandError(Exception):
    """One line for the standard error, and the exit code that goes with it."""

    def __init__(self, reason: str, code: int = USAGE) -> None:
        super().__init__(" ".join(reason.split()))
        self.code = code
