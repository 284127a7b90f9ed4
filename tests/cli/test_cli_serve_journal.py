"""The journal of a service as a file: complete, bounded, and read by ``quadriga story``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quadriga.cli.serving import journal_file
from quadriga.cli.serving.journal_file import JournalFile, _line
from quadriga.cli.serving.run_times_file import RunTimesFile
from quadriga.core import Journal, Options, Record
from quadriga.fsm.table import Edge
from quadriga.sim import read_journal
from quadriga.sim.scripted.script import Script

MIB = 1 << 20


def keep(file: JournalFile, script: Script) -> None:
    file.write(file.take(script.scheduler.journal))


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_each_change_is_written_once_for_story(path: Path, quadriga: Callable[..., Any]) -> None:
    script = Script()
    file = JournalFile(path, MIB)
    keep(file, script)
    script.now = 1_790_000_000 * 10**9 + 5_000_000
    script.node("n1", vcore=4000)
    keep(file, script)
    keep(file, script)
    script.app("app-1")
    script.ask("app-1", "a", vcore=1000)
    script.schedule()
    keep(file, script)
    file.close()
    assert numbers(path) == list(range(script.scheduler.journal.count))
    assert file.lost == 0
    done = quadriga("story", "application/app-1", "--journal", path)
    assert done.code == 0
    assert "2026-09-21 14:13:20.005  New       ask ->  Accepted" in done.out


def test_any_name_is_written_so_that_it_can_be_read_again(path: Path) -> None:
    evil = 'a"b\\c\n\t\x00\u2028é\udc80'
    record = Record(1, 2, evil, "t", "s", "s", evil)
    assert json.loads(_line(record)) == record._asdict()
    file = JournalFile(path, MIB)
    journal = Journal(None)

    class Named:
        key, state = evil, "New"

    journal.add(1, Named(), Edge("application", "New", "ask", "Accepted"), "because")  # type: ignore[arg-type]
    file.write(journal)
    file.close()
    [line] = read_journal(path)
    assert line.key == f"application/{evil}"


def test_q11_run_times_beside_the_journal_outlast_a_restart(path: Path) -> None:
    script = Script()
    script.node("n1", vcore=1)
    script.app("old")
    for ran in (10, 20, 30):
        script.ask("old", "k", vcore=1)
        script.schedule()
        script.advance(ran)
        (uuid,) = script.scheduler.application("old").allocations
        script.release("old", uuid)
    file = RunTimesFile(path)
    file.write(script.scheduler.run_times())
    again = Script()
    RunTimesFile(path).load(again.scheduler)
    for one in (script, again):
        one.app("new")
        one.ask("new", "k", vcore=2)
    (before, after) = (one.scheduler.explain("new", "k").checks for one in (script, again))
    assert "expected run time 30 s (predicted by user, queue and task group)" in {
        c.text for c in after
    }
    assert [c.text for c in before if c.about == "run time"] == [
        c.text for c in after if c.about == "run time"
    ]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"[rm]default": 1}', '{"[rm]default": [["q", "u", "", [-1]]]}', "[" * 10**5],
)
def test_q11_run_times_that_cannot_be_read_are_a_warning(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file, script = RunTimesFile(path), Script()
    file.path.write_text(text, encoding="utf-8")
    file.load(script.scheduler)
    assert "run times of before cannot be read" in caplog.text
    assert script.scheduler.run_times() == {"[rm]default": []}


def test_a_full_file_becomes_the_old_one_and_there_are_never_more_than_two(path: Path) -> None:
    script = Script()
    file = JournalFile(path, 2000)
    for n in range(60):
        script.node(f"n{n}", vcore=1)
        keep(file, script)
    file.close()
    old = path.with_name("journal.jsonl.1")
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, old.name]
    assert max(path.stat().st_size, old.stat().st_size) <= 2000
    together = numbers(old) + numbers(path)
    assert together == list(range(together[0], script.scheduler.journal.count))


FIRST = b'{"seq":0,"time":7,"key":"node/a","trigger":"t","source":"s","target":"s","cause":"c"}'
SECOND = FIRST.replace(b'"seq":0', b'"seq":1')


@pytest.mark.parametrize(
    ("before", "kept", "read", "told"),
    [
        # damaged first bytes, a damaged first record, a block of zeros
        (b"\xff" + FIRST[1:] + b"\n" + SECOND + b"\n", None, [1], "86 bytes at offset 0"),
        (FIRST[:20] + b"\xff" + FIRST[21:] + b"\n" + SECOND, None, [1], "86 bytes at offset 0"),
        (bytes(500) + SECOND + b"\n", None, [1], "500 bytes at offset 0"),
        # damaged ends of lines: the records before them are whole
        (FIRST + b"\n" + SECOND + b"x", None, [0, 1], "no end of line after offset 86"),
        (FIRST + b"\n" + SECOND, None, [0, 1], "no end of line after offset 86"),
        (FIRST + b"\n" + SECOND + bytes(100_000), None, [0, 1], "no end of line after offset"),
        (FIRST + b"x" + SECOND[:30], None, [0], "no end of line after offset 0"),
        # a record that was not written to its end
        (FIRST + b"\n" + SECOND[:30], FIRST + b"\n", [0], ""),
        (SECOND[:30], b"", [], ""),
        (SECOND[:3], b"", [], ""),
    ],
)
def test_a_new_process_goes_on_in_a_damaged_journal_and_nothing_is_lost(
    path: Path, before: bytes, kept: bytes | None, read: list[int], told: str, caplog: Any
) -> None:
    path.write_bytes(before)
    file = JournalFile(path, MIB)
    keep(file, Script())
    file.close()
    assert path.read_bytes().startswith(before if kept is None else kept)
    assert [line.seq for line in read_journal(path, lambda gap: None)] == [*read, 0]
    assert told in caplog.text and bool(told) == bool(caplog.messages)


@pytest.mark.parametrize(
    "text",
    [
        b"partitions:\n  - name: default",
        b'{"seq": 1, "mine": "one line"}',
        b'{"seq":1}\n{"seq":2}\n',
        bytes(500),
        b"\xff" + FIRST[1:],
        b"\xff" + FIRST[1:] + b"\n" + SECOND[:30],
        b'{"seq":' * 10_000,
    ],
)
def test_what_is_no_journal_is_not_touched(path: Path, text: bytes) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        JournalFile(path.parent, MIB)
    with pytest.raises(FileNotFoundError):
        JournalFile(path / "no" / "where", MIB)
    path.write_bytes(text)
    with pytest.raises(ValueError, match="is not a journal: it has no record"):
        JournalFile(path, MIB)
    assert path.read_bytes() == text


def test_what_came_too_quickly_is_counted_as_lost(path: Path, caplog: Any) -> None:
    script = Script(options=Options(journal_size=3))
    for n in range(10):
        script.node(f"n{n}", vcore=1)
    file = JournalFile(path, MIB)
    keep(file, script)
    file.close()
    assert numbers(path) == [8, 9, 10]
    assert file.lost == 8
    assert "missed 8 changes" in caplog.text


def test_a_full_disk_is_survived(path: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk(journal_file.FileIO):
        room = True

        def write(self, data: Any) -> int:
            if not Disk.room:
                super().write(data[:10])
                raise OSError(28, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(journal_file, "FileIO", Disk)
    caplog.set_level("INFO")
    script = Script()
    file = JournalFile(path, MIB)
    keep(file, script)
    Disk.room = False
    for name in ("n1", "n2"):
        script.node(name, vcore=1)
        keep(file, script)
    Disk.room = True
    script.node("n3", vcore=1)
    keep(file, script)
    file.close()
    assert numbers(path) == [0, 3]
    assert file.lost == 2
    assert caplog.text.count("No space left") == 1
    assert "written again, 2 changes lost" in caplog.text
