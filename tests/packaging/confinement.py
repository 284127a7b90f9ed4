"""What the unit forbids its process, enforced as systemd does: by seccomp, on the process itself."""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

LIBRARY = "libseccomp.so.2"
SETS = Path(__file__).with_name("system_calls.txt")

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_MASKED_EQUAL, _EQUAL, _GREATER = 7, 4, 6
_PROT_WRITE, _PROT_EXEC, _SHM_EXEC = 2, 4, 0o100000


def is_possible() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return Path("/proc/sys/kernel/seccomp/actions_avail").exists() or sys.platform == "linux"


def sets() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in SETS.read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            found[line] = set()
        elif line.startswith(" "):
            found[next(reversed(found))].update(line.split())
    return found


def specification(service: Collection[tuple[str, str]]) -> dict[str, Any]:
    """What the lines of [Service] forbid, for ``confine``."""
    known = sets()
    allowed = set(known["@default"])  # always, where a filter lists what is allowed
    found: dict[str, Any] = {"denied": "kill", "families": [], "no_code": False}
    for key, value in service:
        if key == "SystemCallFilter":
            names: set[str] = set()
            for word in value.removeprefix("~").split():
                names |= known[word] if word.startswith("@") else {word}
            allowed = allowed - names if value.startswith("~") else allowed | names
        elif key == "SystemCallErrorNumber":
            found["denied"] = getattr(errno, value)
        elif key == "RestrictAddressFamilies":
            found["families"] = [int(getattr(socket, name)) for name in value.split()]
        elif key == "MemoryDenyWriteExecute":
            found["no_code"] = value == "yes"
    return {**found, "allowed": sorted(allowed)}


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask_or_value", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


class _Filter:
    """One filter; a process may have several, and the strictest counts."""

    def __init__(self, otherwise: int) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._filter = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(otherwise)))

    def add(self, action: int, name: str, *comparisons: _Comparison) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # of another architecture
            return
        array = (_Comparison * len(comparisons))(*comparisons)
        done = self._library.seccomp_rule_add_array(
            self._filter, ctypes.c_uint32(action), number, len(comparisons), array
        )
        if done != 0:
            raise OSError(-done, f"{name}: {os.strerror(-done)}")

    def load(self) -> None:
        done = self._library.seccomp_load(self._filter)
        if done != 0:
            raise OSError(-done, os.strerror(-done))


def confine(wanted: dict[str, Any]) -> None:
    if wanted["no_code"]:
        both = _PROT_WRITE | _PROT_EXEC
        code = _Filter(_ALLOW)
        denied = _ERRNO | errno.EPERM
        code.add(denied, "mmap", _Comparison(2, _MASKED_EQUAL, both, both))
        for name in ("mprotect", "pkey_mprotect"):
            code.add(denied, name, _Comparison(2, _MASKED_EQUAL, _PROT_EXEC, _PROT_EXEC))
        code.add(denied, "shmat", _Comparison(2, _MASKED_EQUAL, _SHM_EXEC, _SHM_EXEC))
        code.load()
    if wanted["families"]:
        sockets = _Filter(_ALLOW)
        denied = _ERRNO | errno.EAFNOSUPPORT
        most = 64
        for family in set(range(most)) - set(wanted["families"]):
            sockets.add(denied, "socket", _Comparison(0, _EQUAL, family))
        sockets.add(denied, "socket", _Comparison(0, _GREATER, most - 1))
        sockets.load()
    calls = _Filter(_KILL if wanted["denied"] == "kill" else _ERRNO | wanted["denied"])
    for name in wanted["allowed"]:
        calls.add(_ALLOW, name)
    calls.load()


if __name__ == "__main__":
    confine(json.loads(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
