"""docs/grpc.md: its programs run, and its limits are those there are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from quadriga.si.server import Limits

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "grpc.md"
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_run(program: str) -> None:
    exec(compile(program, str(DOCUMENT), "exec"), {"__name__": "document"})


def test_every_limit_is_listed_with_its_default() -> None:
    text = DOCUMENT.read_text("utf-8").partition("## Limits")[2]
    listed: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", text, re.MULTILINE):
        listed.update(zip(re.findall(r"`(\w+)`", names), defaults.split(", "), strict=True))
    units = {"MiB": 1 << 20, "KiB": 1 << 10}
    assert listed.keys() == {each.name for each in fields(Limits)}
    for name, text in listed.items():
        number, _, unit = text.partition(" ")
        assert float(number) * units.get(unit, 1) == getattr(Limits(), name), name
