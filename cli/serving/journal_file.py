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

__all__ = ["JournalFile"]

_log = logging.getLogger("quadriga.serve")

_BLOCK: Final = 64 * 1024
#: the first bytes of every journal
_BEGIN: Final = b'{"seq":'


class JournalFile:
    """Appends to ``path``. Raises ``OSError`` if the file cannot be opened, ``ValueError`` if it is
    not a journal. Later problems, such as a full disk, are logged; records that could not be
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
        except OSError as error:
            self.lost += len(lines)
            if not self._failing:
                _log.error("the journal cannot be written: %s", error.strerror, extra=self._where)
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
    """Open for appending, after removing an incomplete last line that a crash may have left."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    stream = FileIO(path, "a+")
    try:
        stream.seek(0)
        if stream.read(len(_BEGIN)) not in (_BEGIN, b""):
            raise ValueError(f"{path} exists and is not a journal")
        end = whole = stream.seek(0, os.SEEK_END)
        while whole:
            begin = max(0, whole - _BLOCK)
            stream.seek(begin)
            block = stream.read(whole - begin)
            found = block.rfind(b"\n")
            if found >= 0:
                whole = begin + found + 1
                break
            whole = begin
        if whole != end:
            stream.truncate(whole)
        stream.seek(0, os.SEEK_END)
    except BaseException:
        stream.close()
        raise
    return stream
