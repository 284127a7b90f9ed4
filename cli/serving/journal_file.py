"""The journal of a running scheduler as a file: a line of JSON for each change of state.

The scheduler remembers the latest changes anyway. Every moment, what is new is copied in its thread,
which costs it little, and spelled and written outside of it. When the file has its full size it
becomes ``FILE.1``, which replaces an older one, and a new one begins; so there is never more than
twice the size on the disk.
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
#: how every journal begins
_BEGIN: Final = b'{"seq":'


class JournalFile:
    """Appends to ``path``. Raises ``OSError`` where that cannot be opened, ``ValueError`` where it is
    something else than a journal; later problems, such as a full disk, are logged, and what could not
    be written is counted as lost."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self._most = most_bytes
        #: the number of the next record that is to be written
        self.next = 0
        #: records that are not in the file
        self.lost = 0
        self._failing = False
        self._stream: FileIO | None = _opened(path)

    def take(self, journal: Journal) -> Journal:
        """What is new in the scheduler's journal; to be called in the scheduler's thread."""
        return journal.following(self.next)

    def write(self, new: Journal) -> None:
        """Write what was taken. May be called in any one thread."""
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
        """Write nothing more."""
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
            # A full disk may have taken half a line, which nobody could read afterwards.
            self._stream.truncate(before)
            self._stream.seek(before)
            raise


def _line(record: Record) -> str:
    """As ``json.dumps`` would write it, in a fifth of the time: this shares an interpreter with the
    scheduler."""
    seq, time, key, trigger, source, target, cause = record
    return (
        f'{{"seq":{seq},"time":{time},"key":{_quoted(key)},"trigger":{_quoted(trigger)},'
        f'"source":{_quoted(source)},"target":{_quoted(target)},"cause":{_quoted(cause)}}}\n'
    )


def _opened(path: Path) -> FileIO:
    """Open to append, without what a crash has left of a last line."""
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
