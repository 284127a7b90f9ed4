"""A damaged journal is read on from the next whole record, and what was skipped is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quadriga.sim.scripted.recording import Gap, JournalError, Line, read_journal, write_journal

COUNT = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    write_journal(
        path, [Line(n, n, "node/ä", f"step{n}", "New", "New", "test") for n in range(COUNT)]
    )
    return path


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def read(path: Path) -> tuple[list[int], list[Gap]]:
    """The numbers of the records, and what was skipped."""
    gaps: list[Gap] = []
    return [line.seq for line in read_journal(path, gaps.append)], gaps


def test_a_damaged_byte_costs_one_record_and_at_the_end_of_a_line_none(path: Path) -> None:
    """Any byte of a record, with text that is not UTF-8."""
    whole, record = path.read_bytes(), lines(path)[2]
    before = whole.index(record)
    end = before + len(record) - 1
    for at in range(before, end):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        assert read(path) == ([0, 1, 3, 4, 5], [Gap(before, len(record), 1, 3)])
    for damage in (b"\xff", b"x", b"{"):
        path.write_bytes(whole[:end] + damage + whole[end + 1 :])
        assert read(path) == ([0, 1, 2, 3, 4, 5], [Gap(end, 1, 2, 3)])


def test_a_block_of_zeros_costs_what_it_touches_and_both_ends_are_told_apart(path: Path) -> None:
    whole = path.read_bytes()
    first, *_, last = lines(path)
    start, stop = whole.index(b"step1"), whole.index(b"step3")
    path.write_bytes(whole[:start] + bytes(stop - start) + whole[stop:])
    begin, end = len(first), whole.index(b'{"seq":4')
    assert read(path) == ([0, 4, 5], [Gap(begin, end - begin, 0, 4)])
    path.write_bytes(b"?" + whole[1:-3] + b"??\n")
    gaps = [Gap(0, len(first), None, 1), Gap(len(whole) - len(last), len(last), 4, None)]
    assert read(path) == ([1, 2, 3, 4], gaps)


@pytest.mark.parametrize("kept", [1, 5, 30])
def test_a_last_line_that_is_not_written_to_its_end_is_no_damage(path: Path, kept: int) -> None:
    """The service may be about to write the rest, or a crash has cut it off."""
    whole = lines(path)
    path.write_bytes(b"".join(whole[:-1]) + whole[-1][:kept])
    assert read(path) == ([0, 1, 2, 3, 4], [])


def test_a_reader_that_asks_for_no_gaps_is_told_by_an_error(path: Path) -> None:
    whole = lines(path)
    path.write_bytes(b"".join([*whole[:2], b"?\n", *whole[2:]]))
    found = []
    with pytest.raises(JournalError, match=r"run\.jsonl:3: not a line of a journal"):
        found.extend(line.seq for line in read_journal(path))


def test_story_reads_on_and_says_what_was_skipped(quadriga: Callable[..., Any], path: Path) -> None:
    whole = lines(path)
    at, size = len(b"".join(whole[:2])), len(whole[2])
    path.write_bytes(b"".join(whole[:2]) + b"\x1b" * (size - 1) + b"\n" + b"".join(whole[3:]))
    done = quadriga("story", "node/ä", "--journal", path)
    assert done.code == 1
    assert [f"step{n}" in done.out for n in range(COUNT)] == [n != 2 for n in range(COUNT)]
    assert done.err == (
        f"story: {path}: skipped {size} bytes at offset {at}, between records 1 and 3\n"
    )
    # what is not found may have been in the part that was skipped
    unknown = quadriga("story", "node/b", "--journal", path)
    assert (unknown.code, unknown.out) == (2, "")
    skipped, nothing = unknown.err.splitlines()
    assert f"skipped {size} bytes" in skipped
    assert "nothing is called 'node/b'" in nothing


def test_story_names_a_few_places_and_counts_all(quadriga: Callable[..., Any], path: Path) -> None:
    whole = lines(path)
    path.write_bytes(b"".join(b"?\n" + whole[n % COUNT] for n in range(30)))
    done = quadriga("story", "node/ä", "--journal", path)
    assert done.code == 1
    *places, total = done.err.splitlines()
    assert len(places) == 5
    assert places[0].endswith("skipped 2 bytes at offset 0, before record 0")
    assert total == f"story: {path}: skipped 60 bytes in all, at 30 places"
    path.write_bytes(b"partitions:\n  - name: default")  # no record, so no journal
    done = quadriga("story", "node/a", "--journal", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"quadriga: story: {path}:1: not a line of a journal")


def test_draw_reads_on_as_well(quadriga: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, [Line(0, 0, "node/a", "accept", "New", "Schedulable", "test")])
    with path.open("ab") as stream:
        stream.write(b"\xff\n")
    drawn = quadriga("draw", "--path", f"{path}#node/a", "--format", "mermaid")
    assert (drawn.code, "(1) accept" in drawn.out) == (0, True)
    at = path.stat().st_size - 2
    assert drawn.err == f"draw: {path}: skipped 2 bytes at offset {at}, after record 0\n"
