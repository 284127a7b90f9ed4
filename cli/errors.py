"""What a command says when it cannot go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FOUND", "INTERRUPTED", "USAGE", "CommandError", "about"]

#: exit codes beside 0: the run found a problem; the command line or its input is wrong; Ctrl-C
FOUND, USAGE, INTERRUPTED = 1, 2, 130


class CommandError(Exception):
    """One line for the standard error, and the exit code that goes with it."""

    def __init__(self, reason: str, code: int = USAGE) -> None:
        super().__init__(" ".join(reason.split()))
        self.code = code


@contextmanager
def about(file: str) -> Iterator[None]:
    """What the system says against the file is one line: ``simulate: FILE: Permission denied``."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from error
