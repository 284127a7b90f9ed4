"""``quadriga draw`` and ``quadriga lifecycles``, help and version."""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from quadriga.cli.catalogue import all_lifecycles
from quadriga.cli.main import _parser as command_parser
from quadriga.fsm import ASK

TEXTS = {"dot": "digraph", "mermaid": "stateDiagram", "plantuml": "@startuml"}
TEXTS |= {"scxml": "<scxml", "md": "# ", "json": "{"}


@pytest.mark.parametrize("name", all_lifecycles())
@pytest.mark.parametrize(("format", "mark"), TEXTS.items())
def test_every_lifecycle_is_drawn(quadriga: Any, name: str, format: str, mark: str) -> None:
    done = quadriga("draw", name, "--format", format)
    assert done.code == 0
    assert mark in done.out


def test_the_file_tells_the_format(quadriga: Any, tmp_path: Path) -> None:
    marks = {"a.mmd": "stateDiagram", "a.puml": "@startuml", "a.json": "{", "a": "digraph"}
    for file, mark in marks.items():
        path = tmp_path / file
        assert quadriga("draw", "node", "-o", path) == (0, "", "")
        assert mark in path.read_text()
    folder = tmp_path / "gallery"
    assert quadriga("draw", "--all", folder, "--format", "md").code == 0
    assert {path.name for path in folder.iterdir()} >= {"application.md", "README.md"}
    if shutil.which("dot") is not None:
        assert quadriga("draw", "ask", "--format", "svg").out.count("<svg") == 1
        assert quadriga("draw", "ask", "-o", tmp_path / "ask.png").code == 0
        assert (tmp_path / "ask.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", all_lifecycles())
def test_a_table_on_the_terminal(quadriga: Any, name: str) -> None:
    done = quadriga("lifecycles", name)
    lifecycle = all_lifecycles()[name]
    assert done.code == 0
    for word in (*lifecycle.states, *lifecycle.triggers()):
        assert word in done.out
    assert done.out.strip() in quadriga("lifecycles", "all").out
    assert f"\n  {name} " in quadriga("lifecycles").out


# -- names as types ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", all_lifecycles())
def test_the_names_of_a_lifecycle_are_types(quadriga: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / "names.py"
    assert quadriga("lifecycles", "--stubs", name, "-o", path) == (0, "", "")
    assert quadriga("lifecycles", name, "--stubs") == (0, path.read_text(), "")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), "names.py", "exec"), names)
    lifecycle = all_lifecycles()[name]
    single = tuple(state for state in get_args(names["State"]) if state not in lifecycle.composites)
    assert single == lifecycle.states
    assert get_args(names["Trigger"]) == lifecycle.triggers()
    assert names["__doc__"].endswith(f"`quadriga lifecycles --stubs {name}`.\n")


def test_stubs_of_own_table(quadriga: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "garden.py").write_text(
        "from enum import Enum\n"
        "from quadriga.fsm import Lifecycle, row, unbounded\n"
        'GATE = Lifecycle("gate", initial="Shut", final=(), lasts={"Shut": unbounded("open"), "Op\\"en":'
        ' unbounded("shut")}, rows=(row("open", "Shut", "Op\\"en"), row("shut", "Op\\"en", "Shut")))\n'
        'Bed = Enum("Bed", "DRY WET")\n'
        'BED = Lifecycle("bed", initial=Bed.DRY, final=(Bed.WET,), lasts={Bed.DRY: unbounded("pour")},'
        ' rows=(row("pour", Bed.DRY, Bed.WET),))\n'
        'YARD = Lifecycle("yard", initial="Quiet", final=(), lasts={"Quiet": unbounded("use"), "Used":'
        ' unbounded("leave")}, rows=(row("use", "Quiet", "Used"), row("leave", "Used", "Quiet")),'
        ' inside={"Used": GATE})\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert quadriga("lifecycles", "--stubs", "garden:GATE").out == (
        '"""The names of the lifecycle gate, as types.\n\n'
        "Made by `quadriga lifecycles --stubs garden:GATE`.\n"
        '"""\n\nfrom typing import Literal\n\n__all__ = ["State", "Trigger"]\n\n'
        'State = Literal[\n    "Shut",\n    "Op\\"en",\n]\n\n'
        'Trigger = Literal[\n    "open",\n    "shut",\n]\n'
    )
    assert '    "Used",\n' in quadriga("lifecycles", "--stubs", "garden:YARD").out
    refused = quadriga("lifecycles", "--stubs", "garden:BED")
    assert (refused.code, refused.out) == (2, "")
    assert "BED has members of Bed, which is a type already: write Bed for State" in refused.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lifecycles", "--stubs"), "--stubs needs the name of one lifecycle"),
        (("lifecycles", "--stubs", "all"), "--stubs needs the name of one lifecycle"),
        (("lifecycles", "node", "-o", "x"), "--output is only for --stubs"),
        (("lifecycles", "--stubs", "node", "-o", "{tmp}"), "directory"),
        (("draw",), "lifecycle"),
        (("draw", "node", "--all", "x"), "lifecycle"),
        (("draw", "--all", "x", "-o", "y"), "together"),
        (("draw", "aplication"), "did you mean application?"),
        (("draw", "x"), "there are application"),
        (("draw", "node", "--format", "gif"), "gif"),
        (("draw", "node", "-o", "{tmp}"), "directory"),
        (("draw", "--all", "{tmp}/file", "--format", "md"), "exists"),
        (("lifecycles", "nodes"), "did you mean node?"),
        (("lifecycles", "node", "--json"), "draw --format json"),
        (("nothing",), "nothing"),
        (("simulat",), "; did you mean 'simulate'?"),
        (("config", "chek"), "; did you mean 'check'?"),
        (("simulate", "--policy", "fito"), "; did you mean 'fifo'?"),
        (("simulate", "--dyas=7"), "unrecognized arguments: --dyas=7; did you mean '--days'?"),
        (("lifecycles", "--xyzzy"), "unrecognized arguments: --xyzzy"),
        ((), "COMMAND"),
    ],
    ids=str,
)
def test_wrong_usage(quadriga: Any, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "file").touch()
    done = quadriga(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert (done.code, done.out) == (2, "")
    assert said in done.err.splitlines()[-1]


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser, and those of all commands below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from commands(below)


@pytest.mark.parametrize("command", [*commands(command_parser())], ids=lambda each: each.prog)
def test_each_help_has_valid_examples(quadriga: Any, command: argparse.ArgumentParser) -> None:
    done = quadriga(*command.prog.split()[1:], "--help")
    assert (done.code, done.err) == (0, "")
    _, _, examples = done.out.partition("\nexamples:\n")
    lines = [line[2:].partition("  ")[0] for line in examples.partition("\n\n")[0].splitlines()]
    assert lines
    for line in lines:
        words = shlex.split(line.partition(" | ")[0])
        assert words[: len(command.prog.split())] == command.prog.split()
        command_parser().parse_args(words[1:])


def test_a_list_is_json_for_programs(quadriga: Any, tmp_path: Path) -> None:
    listed = json.loads(quadriga("lifecycles", "--json").out)
    assert [each["lifecycle"] for each in listed] == list(all_lifecycles())
    ask = next(each for each in listed if each["lifecycle"] == "ask")
    assert (ask["states"], ask["begins"]) == (len(ASK.states), ASK.initial)
    assert tuple(ask["ends"]) == ASK.final
    journal = tmp_path / "run.jsonl"
    quadriga("simulate", "--days", 1, "--limit", 1, "--quiet", "--journal", journal)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    key = next(line["key"] for line in lines if line["key"].startswith("application/"))
    told = json.loads(quadriga("story", key, "--journal", journal, "--json").out)
    assert [each["seq"] for each in told] == [each["seq"] for each in lines if each["key"] == key]


def test_completion_offers_commands_and_options(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    for line, offered in (("quadriga sim", "simulate"), ("quadriga draw --cov", "--coverage")):
        words = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
        words["_ARGCOMPLETE_STDOUT_FILENAME"] = str(tmp_path / "offered")
        done = python("-m", "quadriga.cli", env={**os.environ, **words, "COMP_TYPE": "9"})
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "offered").read_text().strip() == offered


def python(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        **more,
    )


def test_as_a_program_and_a_reader_that_goes_away_is_no_error() -> None:
    script = (
        "import subprocess, sys;"
        "p = subprocess.Popen([sys.executable, '-m', 'quadriga.cli', 'lifecycles', 'all'],"
        " stdout=subprocess.PIPE, stderr=subprocess.PIPE);"
        "p.stdout.close();"
        "sys.stdout.buffer.write(p.stderr.read()); sys.exit(p.wait())"
    )
    done = python("-c", script)
    assert (done.returncode, done.stdout) == (141, "")
    done = python("-m", "quadriga.cli", "draw", "node", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)
    assert python("-m", "quadriga.cli", "draw", "x").returncode == 2


def test_version_and_interrupted_command(quadriga: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from quadriga.cli import catalogue

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "all_lifecycles", interrupt)
    assert quadriga("lifecycles") == (130, "", "quadriga: interrupted\n")
    assert quadriga("--version").out.startswith("quadriga 0.")
