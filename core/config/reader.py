"""YAML text to plain data with positions, strictly.

A text is one document. Its keys are texts and are unique within their mapping;
its tags are those of YAML's core schema. Scalars keep their text: its meaning
is decided where it is used, so that ``yes`` is a text and ``vcore: 2`` keeps
its digits. Aliases and merge keys (``<<``) work, but a text that unfolds to
more than `MAX_NODES` nodes, nests deeper than `MAX_DEPTH` or is longer than
`MAX_BYTES` is refused.

libyaml parses the text. A text that it refuses, or any text where PyYAML was
built without it, is parsed by the slower parser in PyYAML itself, which
describes errors better and reads a little that libyaml does not, such as the
two halves of a character in JSON. See D130.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_BYTES: Final = 3 * 1024 * 1024
"""At most this many bytes of UTF-8 are read. A ConfigMap of Kubernetes has at most 1 MiB."""
MAX_NODES: Final = 500_000
"""At most this many values are read from any text, with its aliases unfolded."""
MAX_NODES_OF_SHORT_TEXT: Final = 20_000
"""At most this many values, or one for each character, are read. Only aliases can make more, and
checking each value takes time."""
MAX_DEPTH: Final = 200
"""At most this many levels of lists and mappings are read. A queue takes two."""

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
    """A text. Unless it is quoted or tagged as a text, it may be a number, a boolean or null."""

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
    """The text is not YAML, or not of the form that is read here: `path` and `line` say where."""

    def __init__(self, reason: str, path: Path = (), line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line


def render_path(path: Path) -> str:
    """Return ``partitions[0].queues[1]`` for ``("partitions", 0, "queues", 1)``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def read(text: str) -> tuple[Node | None, list[ReadError]]:
    """Return the document in `text`, None if it is empty, and an error for each repeated key.

    The first value of a repeated key is kept, so that the rest of the document can
    be checked. Raises `ReadError` if the text cannot be read to its end.
    """
    # A character takes at least one byte, so a huge text is refused without encoding it.
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ReadError(f"the text is longer than {MAX_BYTES} bytes")
    if _LONG_RUN in text:
        raise ReadError(f"more than {len(_LONG_RUN) - 1} exclamation marks in a row")
    most = min(MAX_NODES, max(MAX_NODES_OF_SHORT_TEXT, len(text)))
    if _FAST_PARSER is not None:
        try:
            return _build(yaml.parse(text, _FAST_PARSER), most)
        except (yaml.YAMLError, UnicodeEncodeError):
            pass
    return _build(_explained(yaml.parse(text, yaml.SafeLoader)), most)


def _build(events: Iterator[Any], most: int) -> tuple[Node | None, list[ReadError]]:
    # The parser delivers one event at a time, and `_Builder` counts each one before
    # it builds, nests or unfolds anything.
    builder = _Builder(most)
    for event in events:
        builder.handle(event)
    return builder.root, builder.repeated


def _explained(events: Iterator[Any]) -> Iterator[Any]:
    """Yield the same events. Any error of the parser is raised as a `ReadError`."""
    try:
        yield from events
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark is not None else 0
        raise ReadError(f"not YAML: {said}", line=line) from None
    except Exception as error:  # noqa: BLE001
        # The parser raises other errors too, for an escape beyond Unicode, for example.
        said = " ".join(str(error).split())
        raise ReadError(f"not YAML: {said or type(error).__name__}") from None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


@dataclass(slots=True)
class _OpenCollection:
    """A list or mapping whose end has not been read."""

    node: Sequence | Mapping
    anchor: str | None
    key: str | None = None
    merge: list[Node] = field(default_factory=list)
    merging: bool = False


class _Builder:
    """Builds nodes from the events of the parser."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.root: Node | None = None
        self.repeated: list[ReadError] = []
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0

    def handle(self, event: Any) -> None:
        if isinstance(event, yaml.NodeEvent):
            line = _line(event)
            tag = getattr(event, "tag", None)  # An alias has no tag.
            if tag and tag != "!" and tag not in _TAGS:
                raise self._error(f"the tag {tag!r} is not understood", line)
            match event:
                case yaml.AliasEvent():
                    if event.anchor not in self._anchors:
                        raise self._error(f"nothing complete is anchored as {event.anchor!r}", line)
                    self._add(self._anchors[event.anchor], line)
                case yaml.ScalarEvent():
                    # The tags "!" and "!!str" make any scalar a text.
                    quoted = bool(event.style) or tag in ("!", _TAG + "str")
                    text = self._join_surrogates(event.value, line)
                    scalar = Scalar(text, quoted, line)
                    self._add(scalar, line, key=text, merge=not quoted)
                    self._set_anchor(event.anchor, scalar)
                case yaml.SequenceStartEvent():
                    self._start(_OpenCollection(Sequence(line), event.anchor))
                case yaml.MappingStartEvent():
                    self._start(_OpenCollection(Mapping(line), event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                reason = "a second document begins; there can be one only"
                raise ReadError(reason, line=_line(event))

    def _start(self, opened: _OpenCollection) -> None:
        if len(self._open) == MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} levels deep", opened.node.line)
        if self._open and self._expects_key(self._open[-1]):
            raise self._error("a key must be a text", opened.node.line)
        self._open.append(opened)

    def _end(self) -> None:
        closed = self._open.pop()
        if isinstance(closed.node, Mapping):
            self._merge(closed.node, closed.merge)
        self._add(closed.node, closed.node.line)
        self._set_anchor(closed.anchor, closed.node)

    def _join_surrogates(self, text: str, line: int) -> str:
        """Return the text with its surrogate pairs, as JSON escapes them, joined to characters."""
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._error("half a character (a surrogate without the other)", line) from None

    def _set_anchor(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _add(self, node: Node, line: int, key: str | None = None, merge: bool = False) -> None:
        """Add a complete node, or a key, to the innermost open collection."""
        if not self._open:
            self.root = node
            return
        into = self._open[-1]
        if self._expects_key(into):
            if key is None and isinstance(node, Scalar):
                key, merge = node.text, False  # The key is an alias.
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
        """Add the entries of the merge keys to `target`. Its own entries take precedence (YAML 1.1)."""
        for value in merged:
            for source in value.items if isinstance(value, Sequence) else [value]:
                if not isinstance(source, Mapping):
                    raise self._error("only mappings can be merged with '<<'", value.line)
                for key, node in source.entries.items():
                    target.entries.setdefault(key, node)

    @staticmethod
    def _expects_key(opened: _OpenCollection) -> bool:
        return isinstance(opened.node, Mapping) and opened.key is None

    def _path(self) -> Path:
        return tuple(
            len(opened.node.items) if isinstance(opened.node, Sequence) else opened.key or ""
            for opened in self._open
        )

    def _error(self, reason: str, line: int) -> ReadError:
        return ReadError(reason, tuple(step for step in self._path() if step != ""), line)
