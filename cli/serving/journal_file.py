"""The journal of a running scheduler as a file: one line of JSON for each state change.

The scheduler keeps its latest state changes in memory. New ones are copied periodically in its
thread, which is cheap, and encoded and written in another. When the file reaches its maximum size
it is renamed to ``FILE.1``, replacing an older one, and a new file begins. The journal thus never
takes more than twice that size on disk.
"""

from __future__ import annotations

import logging
import os
from io import FileIO
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quadriga.core.runtime.journal import Journal, Record

_log = logging.getLogger("quadriga.serve")

#: no record has as many bytes
_BLOCK: Final = 64 * 1024


class JournalFile:
    """Appends to ``path``. Raises ``OSError`` if the file cannot be opened, ``ValueError`` if no record can be
    read from it. Later problems, such as a full disk, are logged; records that could not be
    written are counted as lost."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self._most = most_bytes
        #: number of the next record to write
        self.next = 0
        #: number of records missing in the file
        self.lost = 0
        self._failing = False
        self._stream: FileIO | None = _opened(path)

    def take(self, journal: Journal) -> Journal:
        """New records of the scheduler's journal; called in the scheduler's thread."""
        return journal.following(self.next)

    def write(self, new: Journal) -> None:
        """Write these records. May be called in any thread, but in one at a time."""
        missed = new.count - self.next - len(new)
        if missed > 0:
            self.lost += missed
            _log.warning("the journal has missed %d changes: too many at a time", missed)
        self.next = new.count
        lines = list(map(_line, new))
        try:
            self._append("".join(lines).encode("utf-8", "backslashreplace"))
        except (OSError, ValueError) as error:
            self.lost += len(lines)
            if not self._failing:
                reason = getattr(error, "strerror", None) or error
                _log.error("the journal cannot be written: %s", reason, extra=self._where)
            self._failing = True
            return
        if self._failing:
            _log.info("the journal is written again, %d changes lost", self.lost, extra=self._where)
            self._failing = False

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @property
    def _where(self) -> dict[str, str]:
        return {"file": str(self.path)}

    def _append(self, data: bytes) -> None:
        if self._stream is None:
            self._stream = _opened(self.path)
        if self._stream.tell() and self._stream.tell() + len(data) > self._most:
            self.close()
            os.replace(self.path, self.path.with_name(f"{self.path.name}.1"))
            self._stream = _opened(self.path)
        before = self._stream.tell()
        try:
            while data:
                data = data[self._stream.write(data) :]
        except OSError:
            # remove half a line that a full disk may have left, as it would be unreadable
            self._stream.truncate(before)
            self._stream.seek(before)
            raise


def _line(record: Record) -> str:
    """The line that ``json.dumps`` would write, in a fifth of the time: encoding competes with the
    scheduler for the interpreter."""
    seq, time, key, trigger, source, target, cause = record
    return (
        f'{{"seq":{seq},"time":{time},"key":{_quoted(key)},"trigger":{_quoted(trigger)},'
        f'"source":{_quoted(source)},"target":{_quoted(target)},"cause":{_quoted(cause)}}}\n'
    )


def _opened(path: Path) -> FileIO:
    """Open for appending, after removing an incomplete last record that a crash may have left. Any other
    damage stays, as a reader finds the records around it."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    stream = FileIO(path, "a+")
    try:
        if size := stream.seek(0, os.SEEK_END):
            _mend_end(path, stream, size)
        stream.seek(0, os.SEEK_END)
    except BaseException:
        stream.close()
        raise
    return stream


def _mend_end(path: Path, stream: FileIO, size: int) -> None:
    """Have the next record begin on a line of its own. Raises ``ValueError`` for a file without any record,
    which is not changed."""
    from quadriga.sim.scripted.recording import Gap, JournalError, is_cut_off, read_journal

    stream.seek(max(0, size - _BLOCK))
    block = stream.read(_BLOCK)
    tail = block[block.rfind(b"\n") + 1 :]
    whole = size - len(tail) if len(tail) < _BLOCK and is_cut_off(tail) else size
    gaps: list[Gap] = []
    if whole:
        try:
            next(read_journal(path, gaps.append), None)
        except JournalError as error:
            raise ValueError(
                f"{path} exists and is not a journal: it has no record ({error})"
            ) from None
    damage = [f"no record in {gap.size} bytes at offset {gap.offset}" for gap in gaps]
    if whole < size:
        stream.truncate(whole)
    elif tail:
        damage.append(f"no end of line after offset {size - len(tail)}")
        stream.write(b"\n")
    if damage:
        text = "the journal %s is damaged: %s; new records follow at its end"
        _log.warning(text, path, ", ".join(damage))
