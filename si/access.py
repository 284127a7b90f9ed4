"""Access control for gRPC and REST: bearer tokens and client certificates.

The tokens file has one credential per line, in three words; ``#`` begins a comment::

    # name    rights              credential
    ops       admin               sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    shim-a    rm:cluster-a,rm:b   plain:correct-horse-battery-staple
    shim-c    rm:*                certificate:shim-c.example.org
    viewer    read                sha256:...

``admin`` allows everything, for every resource manager (RM). ``rm:ID`` allows to act for that RM,
``rm:*`` for every RM. ``read`` allows only to look, as all other rights do too. A name may occur
more than once; the rights are those of the line whose credential matched. A token has at least 16
characters and is best stored as its SHA-256 (``printf %s TOKEN | sha256sum``). A certificate is
identified by its common name or one of its alternative names, after TLS has verified it.

No token is ever part of a log line, an error or a ``repr``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: the tokens file has at most this many bytes and lines
_MOST_BYTES = 1 << 20
_MOST_LINES = 10_000
#: a token has at least this many characters; at most this many are compared
_SHORTEST, _LONGEST = 16, 4096

_HEX = re.compile(r"[0-9a-f]{64}")


class AccessError(ValueError):
    """The tokens file cannot be used. The text names file and line, never a token."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. ``rm_ids`` are the RMs that it may act for; ``None`` means every
    RM."""

    name: str
    admin: bool
    rm_ids: frozenset[str] | None

    def may_act_for(self, rm_id: str) -> bool:
        """Whether the caller may register this RM, send its requests and read its messages."""
        return self.admin or self.rm_ids is None or rm_id in self.rm_ids


@dataclass(frozen=True, slots=True)
class _Entry:
    principal: Principal
    #: SHA-256 of the token; empty for a certificate
    digest: bytes = field(repr=False)
    certificate: str = ""


class Access:
    """Authenticates callers. Created by `open` or `from_file`."""

    __slots__ = ("_entries", "_path")

    def __init__(self, path: Path | None, entries: tuple[_Entry, ...]) -> None:
        self._path = path
        self._entries = entries

    def __repr__(self) -> str:
        return f"Access({str(self._path)!r})" if self._path else "Access.open()"

    @classmethod
    def open(cls) -> Access:
        """Access without credentials: every caller may do everything. Suitable for loopback, or
        behind mutual TLS."""
        return cls(None, ())

    @classmethod
    def from_file(cls, path: str | Path) -> Access:
        """Access by a tokens file. Raises `AccessError` for an invalid file, or one that users
        outside its group can read."""
        return cls(Path(path), _read(Path(path)))

    def reload(self) -> None:
        """Read the tokens file again. Raises `AccessError` and keeps the old credentials if the
        file is invalid."""
        if self._path is not None:
            self._entries = _read(self._path)

    @property
    def is_open(self) -> bool:
        """Whether callers need no token."""
        return self._path is None

    def principal(self, bearer: str | None, certificate: Sequence[str] = ()) -> Principal | None:
        """The caller with this token, or else with this certificate (its names); ``None`` for an
        unknown one.

        A valid certificate does not make up for a wrong token. The time does not depend on which
        token is wrong.
        """
        if self._path is None:
            return Principal(certificate[0] if certificate else "anonymous", True, None)
        found: Principal | None = None
        if bearer is not None:
            digest = hashlib.sha256(bearer[:_LONGEST].encode("utf-8", "surrogateescape")).digest()
            for (
                entry
            ) in self._entries:  # no early exit: the time must not tell which entry was close
                if entry.digest and hmac.compare_digest(digest, entry.digest):
                    found = found or entry.principal
            return found
        names = set(certificate)
        for entry in self._entries:
            if entry.certificate and entry.certificate in names:
                return entry.principal
        return None


def bearer_token(authorization: str | None) -> str | None:
    """The token of an ``Authorization: Bearer TOKEN`` header; an empty token for a header of
    another form."""
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _read(path: Path) -> tuple[_Entry, ...]:
    try:
        found = path.stat()
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o027:
            raise AccessError(
                f"{path}: others may read or change it (mode {mode:04o}); "
                "chmod 0600, or 0640 for a group"
            )
        if found.st_size > _MOST_BYTES:
            raise AccessError(f"{path}: longer than {_MOST_BYTES} bytes")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise AccessError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AccessError(f"{path}: is not UTF-8 text") from None
    if len(lines) > _MOST_LINES:
        raise AccessError(f"{path}: more than {_MOST_LINES} lines")
    entries = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        comment = next((index for index, word in enumerate(words) if word[0] == "#"), len(words))
        words = words[:comment]
        if words:
            try:
                entries.append(_entry(words))
            except AccessError as error:
                raise AccessError(f"{path}:{number}: {error}") from None
    if not entries:
        raise AccessError(f"{path}: has no credential, so every caller would be refused")
    return tuple(entries)


def _entry(words: list[str]) -> _Entry:
    if len(words) != 3:
        raise AccessError(f"needs three words: name rights credential (found {len(words)})")
    name, rights, credential = words
    admin, anyone = False, False
    rm_ids = set()
    for right in rights.split(","):
        kind, colon, rm_id = right.partition(":")
        if right == "admin":
            admin = True
        elif right == "rm:*":
            anyone = True
        elif kind == "rm" and rm_id:
            rm_ids.add(rm_id)
        elif right != "read":
            raise AccessError(f"right {right!r} is none of admin, read, rm:ID, rm:*")
    principal = Principal(name, admin, None if anyone or admin else frozenset(rm_ids))
    kind, colon, value = credential.partition(":")
    # Errors below must not quote the credential: it may be a token.
    if kind == "sha256" and colon:
        if not _HEX.fullmatch(value.lower()):
            raise AccessError("sha256: needs the 64 hexadecimal digits of a SHA-256")
        return _Entry(principal, bytes.fromhex(value))
    if kind == "plain" and colon:
        if not _SHORTEST <= len(value) <= _LONGEST:
            raise AccessError(f"plain: needs a token of {_SHORTEST} to {_LONGEST} characters")
        return _Entry(principal, hashlib.sha256(value.encode("utf-8")).digest())
    if kind == "certificate" and value:
        return _Entry(principal, b"", value)
    raise AccessError("credential is none of sha256:HEX, plain:TOKEN, certificate:NAME")
