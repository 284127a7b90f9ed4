"""The real configurations beside the design, with the verdicts that come with them."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from quadriga.core.config import ConfigError, load

SHARED = Path(os.environ.get("QUADRIGA_SHARED") or Path(__file__).parents[2] / os.pardir / "shared")
CONFIGURATIONS = SHARED / "data" / "queue-configs"

# Two files are listed as valid although a rule that BEHAVIOUR 2.2 states refuses
# them: the first because it was found inside a Go test, which expects the error
# "negative"; the second because it is a sample of YuniKorn 1.2, before the rules.
CONTRADICTED = {
    "coretest-nodesorting-badConf.yaml": [
        "partitions[0].nodesortpolicy.resourceweights.vcore",  # negative = error
    ],
    "core-sample-v1.2.0-limit.yaml": [
        "partitions[0].queues[0].queues[0].limits[2].groups[0]",  # wildcard last
        "partitions[0].queues[0].queues[0].queues[1].limits[0].maxapplications",  # 50 below 10
    ],
}


def cases() -> list[tuple[str, str]]:
    index = CONFIGURATIONS / "INDEX.csv"
    if not index.is_file():
        return []
    with index.open(newline="", encoding="utf-8") as rows:
        return [(row["file"], row["verdict"]) for row in csv.DictReader(rows)]


def test_the_real_configurations_are_here() -> None:
    if cases():
        assert {verdict for _, verdict in cases()} == {"valid", "invalid"}
        return
    reason = f"no queue configurations in {CONFIGURATIONS}; QUADRIGA_SHARED names their place"
    if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(("file", "verdict"), cases())
def test_the_verdict_is_the_listed_one(file: str, verdict: str) -> None:
    text = (CONFIGURATIONS / file).read_text(encoding="utf-8")
    if verdict == "valid" and file not in CONTRADICTED:
        load(text)
        return
    with pytest.raises(ConfigError) as caught:
        load(text)
    if file in CONTRADICTED:
        assert [problem.path for problem in caught.value.problems] == CONTRADICTED[file]
