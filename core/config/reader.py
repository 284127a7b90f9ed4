"""YAML text to plain data with positions, strictly.

A text is one document. Its keys are texts and are unique within their mapping;
its tags are those of YAML's core schema. Scalars keep their text: its meaning
is decided where it is used, so that ``yes`` is a text and ``vcore: 2`` keeps
its digits. Aliases and merge keys (``<<``) work, but a text that unfolds to
more than `MOST_NODES` nodes, nests deeper than `MOST_DEPTH` or is longer than
`MOST_BYTES` is refused.

libyaml parses the text. A text that it refuses, or any text where PyYAML was
built without it, is parsed by the slower parser in PyYAML itself, which
describes errors better and reads a little that libyaml does not, such as the
two halves of a character in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

__all__ = [
    "MOST_BYTES",
    "MOST_DEPTH",
    "MOST_NODES",
    "Mapping",
    "Node",
    "Path",
    "ReadError",
    "Scalar",
    "Sequence",
    "read",
    "render_path",
]

MOST_BYTES: Final = 3 * 1024 * 1024
"""Kubernetes keeps a ConfigMap below 1 MiB, so this leaves room."""
MOST_NODES: Final = 500_000
LEAST_NODES: Final = 20_000
"""A text may have as many values as it has characters, and at least this many. Only aliases make
more, and each value takes time to check."""
MOST_DEPTH: Final = 200
"""Two levels a queue."""

Path = tuple[str | int, ...]

# PyYAML's own parser takes time that grows with the square of such a run.
_LONG_RUN: Final = "!" * 1001
_FAST_PARSER: Final = getattr(yaml, "CSafeLoader", None)
_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TAG: Final = "tag:yaml.org,2002:"
_TAGS: Final = frozenset(
    _TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq")
)


@dataclass(slots=True, eq=False)
class Scalar:
    """A text; unless it was quoted, or tagged as a text, it may mean something else."""

    text: str
    quoted: bool
    line: int
    weight: int = 1

    @property
    def null(self) -> bool:
        return not self.quoted and self.text in _NULLS


@dataclass(slots=True, eq=False)
class Sequence:
    line: int
    items: list[Node] = field(default_factory=list)
    weight: int = 1


@dataclass(slots=True, eq=False)
class Mapping:
    line: int
    entries: dict[str, Node] = field(default_factory=dict)
    weight: int = 1


Node = Scalar | Sequence | Mapping


class ReadError(ValueError):
    """A text that is not the YAML wanted here: `path` and `line` say where."""

    def __init__(self, reason: str, path: Path = (), line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line


def render_path(path: Path) -> str:
    """``("partitions", 0, "queues", 1)`` as ``partitions[0].queues[1]``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def read(text: str) -> tuple[Node | None, list[ReadError]]:
    """The document in `text` (None if it is empty) and the keys written twice.

    Of a key that is written twice the first value is kept, so that the rest can
    still be checked. Raises `ReadError` where reading cannot go on.
    """
    # Every character takes a byte at least: a huge text need not be encoded.
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ReadError(f"the text is longer than {MOST_BYTES} bytes")
    if _LONG_RUN in text:
        raise ReadError(f"more than {len(_LONG_RUN) - 1} exclamation marks in a row")
    most = min(MOST_NODES, max(LEAST_NODES, len(text)))
    if _FAST_PARSER is not None:
        try:
            return _build(yaml.parse(text, _FAST_PARSER), most)
        except (yaml.YAMLError, UnicodeEncodeError):
            pass
    return _build(_explained(yaml.parse(text, yaml.SafeLoader)), most)


def _build(events: Iterator[Any], most: int) -> tuple[Node | None, list[ReadError]]:
    # One event at a time: nothing is built, nested or unfolded before `_Builder`
    # has counted it.
    builder = _Builder(most)
    for event in events:
        builder.take(event)
    return builder.root, builder.repeated


def _explained(events: Iterator[Any]) -> Iterator[Any]:
    """The same events, with a `ReadError` for whatever the parser raises."""
    try:
        yield from events
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark is not None else 0
        raise ReadError(f"not YAML: {said}", line=line) from None
    except Exception as error:  # noqa: BLE001
        # For an escape beyond Unicode, for example, the parser raises something else.
        said = " ".join(str(error).split())
        raise ReadError(f"not YAML: {said or type(error).__name__}") from None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


@dataclass(slots=True)
class _Open:
    """A collection that is being read."""

    node: Sequence | Mapping
    anchor: str | None
    key: str | None = None
    merge: list[Node] = field(default_factory=list)
    merging: bool = False


class _Builder:
    def __init__(self, most: int) -> None:
        self._most = most
        self.root: Node | None = None
        self.repeated: list[ReadError] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.NodeEvent):
            line = _line(event)
            tag = getattr(event, "tag", None)  # an alias has none
            if tag and tag != "!" and tag not in _TAGS:
                raise self._error(f"the tag {tag!r} is not understood", line)
            match event:
                case yaml.AliasEvent():
                    if event.anchor not in self._anchors:
                        raise self._error(f"nothing complete is anchored as {event.anchor!r}", line)
                    self._add(self._anchors[event.anchor], line)
                case yaml.ScalarEvent():
                    # "!" and "!!str" make a text of what stands there.
                    quoted = bool(event.style) or tag in ("!", _TAG + "str")
                    text = self._whole(event.value, line)
                    scalar = Scalar(text, quoted, line)
                    self._add(scalar, line, key=text, merge=not quoted)
                    self._keep(event.anchor, scalar)
                case yaml.SequenceStartEvent():
                    self._start(_Open(Sequence(line), event.anchor))
                case yaml.MappingStartEvent():
                    self._start(_Open(Mapping(line), event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                reason = "a second document begins; there can be one only"
                raise ReadError(reason, line=_line(event))

    def _start(self, opened: _Open) -> None:
        if len(self._open) == MOST_DEPTH:
            raise self._error(f"more than {MOST_DEPTH} levels deep", opened.node.line)
        if self._open and self._wants_key(self._open[-1]):
            raise self._error("a key must be a text", opened.node.line)
        self._open.append(opened)

    def _end(self) -> None:
        closed = self._open.pop()
        if isinstance(closed.node, Mapping):
            self._merge(closed.node, closed.merge)
        self._add(closed.node, closed.node.line)
        self._keep(closed.anchor, closed.node)

    def _whole(self, text: str, line: int) -> str:
        """The text with the two halves of a character, as JSON escapes it, put together."""
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._error("half a character (a surrogate without the other)", line) from None

    def _keep(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _add(self, node: Node, line: int, key: str | None = None, merge: bool = False) -> None:
        """Put a finished node, or a key, where it belongs."""
        if not self._open:
            self.root = node
            return
        into = self._open[-1]
        if self._wants_key(into):
            if key is None and isinstance(node, Scalar):
                key, merge = node.text, False  # an alias
            if key is None:
                raise self._error("a key must be a text", line)
            into.key, into.merging = key, merge and key == "<<"
            return
        into.node.weight += node.weight
        if into.node.weight > self._most:
            raise self._error(f"with its aliases unfolded, more than {self._most} values", line)
        if isinstance(into.node, Sequence):
            into.node.items.append(node)
            return
        assert into.key is not None
        if into.merging:
            into.merge.append(node)
        elif into.key in into.node.entries:
            path = (*self._path()[:-1], into.key)
            self.repeated.append(ReadError("this key is written twice", path, line))
        else:
            into.node.entries[into.key] = node
        into.key, into.merging = None, False

    def _merge(self, target: Mapping, merged: list[Node]) -> None:
        """Fill `target` from its merge keys; what it has itself stays (YAML 1.1 merge)."""
        for value in merged:
            for source in value.items if isinstance(value, Sequence) else [value]:
                if not isinstance(source, Mapping):
                    raise self._error("only mappings can be merged with '<<'", value.line)
                for key, node in source.entries.items():
                    target.entries.setdefault(key, node)

    @staticmethod
    def _wants_key(opened: _Open) -> bool:
        return isinstance(opened.node, Mapping) and opened.key is None

    def _path(self) -> Path:
        return tuple(
            len(opened.node.items) if isinstance(opened.node, Sequence) else opened.key or ""
            for opened in self._open
        )

    def _error(self, reason: str, line: int) -> ReadError:
        return ReadError(reason, tuple(step for step in self._path() if step != ""), line)
