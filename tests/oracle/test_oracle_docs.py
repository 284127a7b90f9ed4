"""docs/differences.md has the table of deliberate differences as the runner has it."""

from pathlib import Path

from tests.oracle.differences import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def test_the_page_lists_exactly_the_rules_each_once() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and line.count("|") == 5
    ]
    assert rows[0] == ("rule", "the Go core", "ours", "how")
    assert rows[1:] == [(rule.id, rule.theirs, rule.ours, rule.how) for rule in RULES]
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
