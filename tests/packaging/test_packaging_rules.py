"""Every numbered rule of the acceptance table has a test that carries its number."""

import subprocess
import sys
from pathlib import Path


def test_each_rule_is_named_by_a_test(shared: Path, repository: Path, owed: frozenset[str]) -> None:
    listing = subprocess.run(
        [sys.executable, shared / "tools" / "rules", repository / "tests"],
        capture_output=True,
        text=True,
        check=False,
    )
    *unnamed, closing = listing.stdout.splitlines()
    assert "rules are named by a test" in closing, listing.stderr
    assert {line.split()[0] for line in unnamed} == {rule for rule in owed if rule[0] != "K"}
