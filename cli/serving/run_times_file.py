"""The run times that predict others (Q11) as a file beside the journal, so that a restart keeps them.

They are written once in a minute if something has ended, and at the end, to another file that then
replaces the one before. A file that cannot be read is left as it is until the next one is written; predictions
start anew then.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from quadriga.core import Scheduler

_log = logging.getLogger("quadriga.serve")

#: s between two writes
EVERY_S: Final = 60.0
#: a file that is larger is not read
_MOST_BYTES: Final = 64 << 20


class RunTimesFile:
    """The file ``JOURNAL.runtimes``."""

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(f"{journal.name}.runtimes")
        self._written: dict[str, Any] = {}

    def load(self, scheduler: Scheduler) -> None:
        """Let the scheduler remember what the file has. Call it before anything is decided."""
        try:
            if not self.path.exists():
                return
            if (size := self.path.stat().st_size) > _MOST_BYTES:
                raise ValueError(f"{size} bytes are more than {_MOST_BYTES}")
            scheduler.restore_run_times(json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            _log.warning(
                "run times of before cannot be read: %s", error, extra={"file": str(self.path)}
            )
            return
        self._written = scheduler.run_times()

    def write(self, data: dict[str, Any]) -> None:
        """Write what the scheduler remembers, unless the file has it."""
        if data == self._written:
            return
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            new.write_bytes(json.dumps(data).encode())
            os.replace(new, self.path)
        except OSError as error:
            _log.error(
                "run times cannot be written: %s", error.strerror, extra={"file": str(self.path)}
            )
            return
        self._written = data
