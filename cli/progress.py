"""The progress of a simulation: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from typing import Any, Self


class Progress:
    """Call it with (ended jobs, all jobs). As a context manager it clears the line at the end.

    Drawn by rich if that is installed, else as one line with a percentage.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._percent = -1
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            self._bar = Bar(
                TextColumn("simulating"),
                BarColumn(),
                TextColumn("{task.completed:,} of {task.total:,} jobs"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("simulating", total=0)
            self._bar.start()
        return self

    def __call__(self, ended: int, total: int) -> None:
        if not self._shown:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=ended, total=total)
        elif (percent := 100 * ended // max(total, 1)) != self._percent:
            self._percent = percent
            sys.stderr.write(f"\rsimulating: {percent:3} %")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._percent >= 0:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
