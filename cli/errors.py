"""Errors of commands, and their exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: exit codes besides 0: the run found a problem; the command line or its input is wrong; Ctrl-C
FOUND, USAGE, INTERRUPTED = 1, 2, 130


class CommandError(Exception):
    """An error message of one line, with the exit code."""

    def __init__(self, reason: str, code: int = USAGE) -> None:
        super().__init__(" ".join(reason.split()))
        self.code = code


@contextmanager
def about(file: str) -> Iterator[None]:
    """Convert the system's errors about a file into one line: ``simulate: FILE: Permission
    denied``."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from error
