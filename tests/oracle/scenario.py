"""Scenarios and what the Go core answered to them, as they lie in a folder."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

V15, V18 = "1.5.2", "1.8.0"

_SUFFIX = {V15: ".out", V18: ".out18"}

#: an instant (ns since the start), the type of a message, the message in protobuf JSON
Callback = tuple[int, str, dict[str, Any]]


@dataclass(slots=True)
class Answer:
    """What one step brought: the messages in order, and how the step ended."""

    callbacks: list[Callback] = field(default_factory=list)
    done: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Versions:
    """Whether the two versions agree (``None``: nobody says), else from which step on and why not."""

    agree: bool | None = None
    first_difference: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Scenario:
    """One scenario; ``steps`` are as the README of the folder defines them."""

    name: str
    folder: Path
    steps: list[dict[str, Any]]
    tags: tuple[str, ...] = ()
    versions: Versions = Versions()

    @cached_property
    def configurations(self) -> list[str]:
        return [step["config"] for step in self.steps if isinstance(step.get("config"), str)]

    @cached_property
    def _read(self) -> dict[str, list[Answer] | None]:
        return {}

    def answers(self, version: str) -> list[Answer] | None:
        """What that version answered, step by step; ``None`` if there is no output of it. It is read once."""
        if version not in self._read:
            self._read[version] = self._answers(version)
        return self._read[version]

    def _answers(self, version: str) -> list[Answer] | None:
        text = _text(self.folder / (self.name + _SUFFIX[version]))
        if text is None:
            return None
        answers: list[Answer] = []
        for line in text.splitlines():
            try:
                said = json.loads(line)
            except json.JSONDecodeError:  # it ended in the middle of a line
                break
            while len(answers) <= said["step"]:
                answers.append(Answer())
            if said["kind"] == "done":
                answers[said["step"]].done = said
            else:
                answers[said["step"]].callbacks.append((said["t"], said["type"], said["msg"]))
        while answers and answers[-1].done is None:
            answers.pop()
        return answers


def scenarios(paths: list[Path]) -> Iterator[Scenario]:
    """The scenarios of folders, and single ones, by name."""
    for path in paths:
        if path.is_dir():
            for file in sorted(path.glob("*.json")):
                if (found := _read(file)) is not None:
                    yield found
        else:
            file = path if path.suffix == ".json" else path.with_name(path.name + ".json")
            if (found := _read(file)) is None:
                raise ValueError(f"{file} is not a scenario: it has no steps")
            yield found


def _read(file: Path) -> Scenario | None:
    content = json.loads(file.read_text())
    if not isinstance(content, dict) or not isinstance(content.get("steps"), list):
        return None
    about = {**_index(file.parent).get(file.stem, {}), **content}
    versions = about.get("versions") or {}
    return Scenario(
        file.stem,
        file.parent,
        content["steps"],
        tuple(about.get("tags") or ()),
        Versions(
            versions.get("agree"), versions.get("first_difference", 0), versions.get("reason", "")
        ),
    )


def _index(folder: Path) -> dict[str, dict[str, Any]]:
    file = folder / "INDEX.json"
    if not file.exists():
        return {}
    entries = json.loads(file.read_text())
    if not isinstance(entries, list):
        return {}
    return {e["name"]: e for e in entries if isinstance(e, dict) and "name" in e}


def _text(file: Path) -> str | None:
    if file.exists():
        return file.read_text()
    compressed = file.with_name(file.name + ".gz")
    if compressed.exists():
        return gzip.decompress(compressed.read_bytes()).decode()
    return None
