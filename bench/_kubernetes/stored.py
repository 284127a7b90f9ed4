"""Objects as the API server stores them, in any number.

The API server takes half a millisecond or more to create an object, so 50,000 pods would take a minute.
Instead it creates one, and its stored bytes are copied in etcd with other names: the placeholders of the
names (`TOKENS`) have the length of what replaces them, so the encoding stays valid.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

#: etcd takes at most 128 operations in a transaction by default.
_OPERATIONS = 100
_UID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def node_name(number: int) -> str:
    return f"node-{number:05}"


def pod_name(number: int, prefix: str = "pod") -> str:
    return f"{prefix}-{number:06}"


def application(number: int) -> str:
    return f"app-{number:04}"


def zone(number: int) -> str:
    return f"zone-{number:02}"


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


@dataclass(frozen=True, slots=True)
class Template:
    """The key and the value of one stored object, with the texts in it that may be replaced."""

    key: bytes
    value: bytes

    @property
    def uid(self) -> str:
        """The object's own. Raises ValueError if it has none."""
        # metadata.uid is the first text of this form in every object.
        found = _UID.search(self.value)
        if found is None:
            raise ValueError(f"{self.key.decode()} has no UID")
        return found.group().decode()

    def copy(self, replaced: Sequence[tuple[str, str]]) -> tuple[bytes, bytes]:
        """The same object with other texts of the same lengths. Raises ValueError for another length, and
        for a text that is not there."""
        key, value = self.key, self.value
        for old, new in replaced:
            if len(old) != len(new):
                raise ValueError(f"{new!r} is not as long as {old!r}")
            before, after = old.encode(), new.encode()
            if before not in value:
                raise ValueError(f"there is no {old!r} in the object")
            key, value = key.replace(before, after), value.replace(before, after)
        return key, value


class Etcd:
    """The JSON gateway of one etcd without TLS; one connection, so for one thread."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)

    def close(self) -> None:
        self._connection.close()

    def template(self, key: str) -> Template:
        """The object that is stored under this key. Raises KeyError if there is none."""
        found = self._ask("range", {"key": _text(key.encode())})
        if not found.get("kvs"):
            raise KeyError(key)
        return Template(key.encode(), base64.b64decode(found["kvs"][0]["value"]))

    def put(self, objects: Iterable[tuple[bytes, bytes]], *, together: int = _OPERATIONS) -> int:
        """Store the objects, in their order. Returns how many.

        Those that are stored together have one resource version, and a watch that is taken up again there
        misses some of them: while somebody watches, ``together`` must be 1.
        """
        count = 0
        waiting: list[dict[str, object]] = []
        for key, value in objects:
            waiting.append({"requestPut": {"key": _text(key), "value": _text(value)}})
            count += 1
            if len(waiting) == together:
                self._ask("txn", {"success": waiting})
                waiting = []
        if waiting:
            self._ask("txn", {"success": waiting})
        return count

    def delete(self, prefix: str) -> int:
        """Remove all that is stored below the prefix. Returns how much."""
        first = prefix.encode()
        last = first[:-1] + bytes([first[-1] + 1])
        answer = self._ask("deleterange", {"key": _text(first), "range_end": _text(last)})
        return int(answer.get("deleted", 0))

    def _ask(self, call: str, body: dict[str, object]) -> dict[str, Any]:
        self._connection.request("POST", f"/v3/kv/{call}", json.dumps(body).encode())
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise RuntimeError(f"etcd answers {response.status}: {text[:200]!r}")
        answer: dict[str, list[dict[str, str]]] = json.loads(text)
        return answer


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
