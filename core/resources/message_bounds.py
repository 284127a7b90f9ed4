"""Bounds of what a message of a resource manager may say (Q16).

gRPC bounds the bytes and the items of a request, and a program in the same process may send any. Each item is
kept, shown and compared again and again, and each type of resources widens every vector of its partition for
ever, so items have bounds of their own. They are those of one item: the others of its request are processed.

The report of an allocation that runs already is not refused: it takes room, whatever it says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """How much one application, ask or node may say."""

    #: characters of each text: keys, IDs, paths of queues, users, groups, names of types
    text: int = 2_048
    #: tags or attributes, and the characters of all of them together
    tags: int = 1_024
    tag_characters: int = 1 << 20
    groups: int = 4_096
    #: types of resources of one item, and of a partition. Asks and allocations may name half of the latter,
    #: so that there is always room for those of nodes
    types: int = 256
    known_types: int = 1_024
    #: devices of one shared type on a node (Q14)
    devices: int = 64

    def problem_of(self, message: Any) -> str:
        """What of the message is beyond the bounds, or an empty text."""
        if message.ByteSize() <= self.text:
            return ""  # as nearly all: no text is longer, and there are too few bytes for the rest
        for field, value in message.ListFields():
            name = field.name
            if isinstance(value, str):
                if len(value) > self.text:
                    return self._long(name, value)
            elif hasattr(value, "items"):
                if problem := self._of_tags(name, value):
                    return problem
            elif name == "ugi":
                if problem := self._of_user(value):
                    return problem
        return ""

    def types_problem(
        self, types: Collection[str], known: Mapping[str, int], of_nodes: bool
    ) -> str:
        """Why these types of resources are too many beside those that are known, or an empty text."""
        if len(types) > self.types:
            return f"{len(types)} resource types, at most {self.types} are allowed"
        new = [each for each in types if each not in known]
        for each in new:
            if len(each) > self.text:
                return self._long("resource type", each)
        most = self.known_types if of_nodes else self.known_types // 2
        if new and len(known) + len(new) > most:
            return (
                f"{len(new)} new resource types, the first is {new[0]!r}: "
                f"{len(known)} of at most {most} are known already"
            )
        return ""

    def _of_tags(self, name: str, tags: Mapping[str, str]) -> str:
        if len(tags) > self.tags:
            return f"{len(tags)} {name}, at most {self.tags} are allowed"
        characters = sum(len(key) + len(value) for key, value in tags.items())
        if characters > self.tag_characters:
            return f"{characters} characters of {name}, at most {self.tag_characters} are allowed"
        return ""

    def _of_user(self, ugi: Any) -> str:
        if len(ugi.groups) > self.groups:
            return f"{len(ugi.groups)} groups, at most {self.groups} are allowed"
        for name, value in (("user", ugi.user), *(("group", each) for each in ugi.groups)):
            if len(value) > self.text:
                return self._long(name, value)
        return ""

    def _long(self, name: str, value: str) -> str:
        return f"{name} of {len(value)} characters, at most {self.text} are allowed: {value[:50]!r}"
