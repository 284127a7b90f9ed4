"""docs/configuration.md says what is so: its examples run, its tables are complete. Those of docs/gangs.md run too."""

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from quadriga.cli.main import main
from quadriga.core.config import ConfigError, Properties, load, parse_properties

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def blocks(language: str, document: Path = DOCUMENT) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def table(heading: str) -> list[list[str]]:
    section = DOCUMENT.read_text(encoding="utf-8").split(f"# {heading}\n")[1].split("\n#")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("text", [*blocks("yaml"), *blocks("yaml", DOCUMENT.with_name("gangs.md"))])
def test_the_examples_are_valid(text: str) -> None:
    assert load(text).warnings == ()


@pytest.mark.parametrize("command", [line for text in blocks("sh") for line in text.splitlines()])
def test_the_commands_run(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queues.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    program, *arguments = shlex.split(command)
    assert program == "quadriga"
    assert main(arguments) == 0
    assert {"check": "valid", "show": "name: root"}[arguments[1]] in capsys.readouterr().out


def test_every_property_is_listed_with_its_default() -> None:
    listed = {}
    for keys, default, _ in table("Properties"):
        for key in names(keys):
            listed[key] = names(default)
    bad = dict.fromkeys(listed, "?")
    assert set(parse_properties(bad)[1]) == set(listed)
    # a default that is written out means the same as saying nothing
    written = {key: value[0] for key, value in listed.items() if value}
    assert parse_properties(written)[0] == Properties()
    assert len({parse_properties({key: "?"})[1].popitem()[0] for key in bad}) == len(bad)
    assert len(listed) == len(fields(Properties)) + 1  # one has two spellings


@pytest.mark.parametrize(
    ("heading", "where"),
    [
        ("Partitions", "{p}"),
        ("Queues", "{p}.queues[0]"),
        ("Limits", "{p}.queues[0].limits[0]"),
        ("Placement rules", "{p}.placementrules[0]"),
    ],
)
def test_every_key_is_listed(heading: str, where: str) -> None:
    listed = {name.split(".")[0] for row in table(heading) for name in names(row[0])}
    if heading == "Partitions":
        listed.add("statedumpfilepath")
    tree: dict[str, object] = {"queues": [{"name": "a"}]}
    if heading == "Partitions":
        tree["odd"] = 1
    elif heading == "Placement rules":
        tree["placementrules"] = [{"name": "user", "odd": 1}]
    else:
        queue: dict[str, object] = {"name": "a"}
        limit = {"users": ["u"], "maxapplications": 1, "odd": 1}
        queue.update({"odd": 1} if heading == "Queues" else {"limits": [limit]})
        tree["queues"] = [queue]
    with pytest.raises(ConfigError) as caught:
        load(json.dumps({"partitions": [tree]}))  # which is YAML
    (problem,) = caught.value.problems
    assert problem.path == where.format(p="partitions[0]") + ".odd"
    known = problem.reason.split("the keys here are ")[1].split(", ")
    assert listed == set(known)
