"""The real configurations beside the design, with the verdicts that come with them."""

import csv
import json
import os
from pathlib import Path

import pytest

from quadriga.core.config import ConfigError, as_document, load

SHARED = Path(os.environ.get("QUADRIGA_SHARED") or Path(__file__).parents[2] / os.pardir / "shared")
CONFIGURATIONS = SHARED / "data" / "queue-configs"

# Where the verdict comes from the validator alone: the paths of all problems.
REFUSED = {
    "coretest-nodesorting-badConf.yaml": ["partitions[0].nodesortpolicy.resourceweights.vcore"],
    "core-ok-TestParseRule-4.yaml": ["partitions[0].placementrules[0]"],
    "core-sample-v1.2.0-limit.yaml": [
        "partitions[0].queues[0].queues[0].limits[2].groups[0]",
        "partitions[0].queues[0].queues[0].queues[1].limits[0].maxapplications",
    ],
}

# The reasons that the list gives, and how ours say the same: (path, words).
LIMIT = "partitions[0].limits"
LEAF = "partitions[0].queues[0].queues[0].queues[0].limits"
REASONS = {
    "should not specify only one group limit": (f"{LIMIT}[3].groups", "the only group with a"),
    "unmarshal error": ("partitions[0].queues[0].sample", "unknown key"),
    "invalid MaxApplications settings for limit": (
        "partitions[0].queues[0].queues[0].limits[0].maxapplications",
        "larger than the queue's maxapplications: 1000 > 100",
    ),
    "no wildcard user user1 after": (f"{LIMIT}[5].users[0]", "'user1' comes after the wildcard"),
    "no wildcard group group1 after": (f"{LIMIT}[5].groups[0]", "'group1' comes after the"),
    "user user1 max resource": (
        f"{LEAF}[0].maxresources",
        "limit of user 'user1' in a queue above: memory 90000 > 10000",
    ),
    "group * max resource": (
        f"{LEAF}[1].maxresources",
        "limit of group '*' in a queue above: memory 90000 > 10000",
    ),
    "cannot unmarshal !!str": ("partitions[1]", "a mapping is expected, not the text 'wrong_text'"),
}


def cases() -> list[tuple[str, str, str]]:
    index = CONFIGURATIONS / "INDEX.csv"
    if not index.is_file():
        return []
    with index.open(newline="", encoding="utf-8") as rows:
        return [(r["file"], r["verdict"], r["error_contains"]) for r in csv.DictReader(rows)]


def test_the_real_configurations_are_here() -> None:
    if cases():
        assert {verdict for _, verdict, _ in cases()} == {"valid", "invalid"}
        return
    reason = f"no queue configurations in {CONFIGURATIONS}; QUADRIGA_SHARED names their place"
    if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(("file", "verdict", "reason"), cases())
def test_verdict_and_reason_are_the_listed_ones(file: str, verdict: str, reason: str) -> None:
    text = (CONFIGURATIONS / file).read_text(encoding="utf-8")
    if verdict == "valid":
        configuration = load(text)
        again = load(json.dumps(as_document(configuration)))  # which is YAML
        assert again.partitions == configuration.partitions
        return
    with pytest.raises(ConfigError) as caught:
        load(text)
    if file in REFUSED:
        assert [problem.path for problem in caught.value.problems] == REFUSED[file]
    if reason and not reason.startswith("(test message"):
        ((path, words),) = (ours for phrase, ours in REASONS.items() if phrase in reason)
        (problem,) = caught.value.problems
        assert problem.path == path
        assert words in problem.reason
