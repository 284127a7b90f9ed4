"""Processes that are measured: lines of JSON in and out, and what the kernel says of their costs (Linux)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_ROOT = Path(__file__).parents[2]


def processor_time(pid: int) -> float:
    """Of all threads until now (s)."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


def memory(pid: int, name: str = "VmRSS") -> int:
    """Resident memory now, or at most (``VmHWM``), in bytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


class Child:
    """A module of ``bench._kubernetes`` that reads and writes lines of JSON."""

    def __init__(self, module: str, task: dict[str, Any]) -> None:
        # Files of the checkout come before installed ones.
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"bench._kubernetes.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        self._errors: deque[str] = deque(maxlen=40)
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        self.say(json.dumps(task))

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """Raises RuntimeError, with the end of what it wrote to the standard error, if it has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().rstrip("\n")
        if not line:
            self._process.wait(10)
            self._reader.join(5)
            raise RuntimeError(f"the process has ended:\n{''.join(self._errors)}")
        return line

    def ask(self, line: str) -> dict[str, Any]:
        self.say(line)
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def first(self) -> dict[str, Any]:
        """What it says by itself when it is ready."""
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def errors(self) -> str:
        return "".join(self._errors)

    def end(self) -> None:
        self._process.kill()
        with self._process:
            self._process.wait()
        self._reader.join(5)
