"""A rule by which everyone may take the queue that another rule gives to one namespace or user (D283)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from quadriga.core.config import Configuration, load

NAMED = {"name": "provided"}
OWN = {"name": "tag", "value": "namespace", "create": True}
BELOW_TEAMS = {**OWN, "parent": {"name": "fixed", "value": "teams"}}
TEAMS = {"name": "teams", "parent": True}
FIXED_BELOW_OWN = {"name": "fixed", "value": "q", "create": True, "parent": OWN}
CHOSEN = {**NAMED, "filter": {"groups": ["admins"]}}


def loaded(*rules: Any, root: str = "", teams: str = "", other: str = "") -> Configuration:
    queues = [{**TEAMS, "submitacl": teams}, {"name": "other", "submitacl": other}]
    tree = {"name": "root", "submitacl": root, "queues": queues}
    partition = {"name": "default", "placementrules": [*rules], "queues": [tree]}
    return load(yaml.safe_dump({"partitions": [partition]}))


@pytest.mark.parametrize(
    ("rules", "open_queues", "named"),
    [
        ((NAMED, OWN), {"root": "*"}, "root"),
        ((NAMED, BELOW_TEAMS), {"root": "*"}, "root"),
        ((NAMED, BELOW_TEAMS), {"teams": "* dev"}, "root.teams"),
        ((NAMED, {"name": "user", "create": True}), {"other": "*"}, "root.other"),
        ((NAMED, FIXED_BELOW_OWN), {"root": "*"}, "root"),
        (({**NAMED, "filter": {"type": "deny", "users": ["bob"]}}, OWN), {"root": "*"}, "root"),
        # the queues of the first rule have to exist, or not everyone has one: the second is reached
        (({**OWN, "create": False}, NAMED), {"root": "*"}, "root"),
        (({**OWN, "filter": {"groups": ["dev", "ops"]}}, NAMED), {"root": "*"}, None),
    ],
)
def test_k55_a_queue_that_is_anothers_may_be_named(
    rules: tuple[Any, ...], open_queues: dict[str, str], named: str | None
) -> None:
    (warning,) = loaded(*rules, **open_queues).warnings
    at = rules.index(next(rule for rule in rules if rule["name"] == "provided"))
    assert warning.path == f"partitions[0].placementrules[{at}]"
    assert f"since submitacl of {named or 'root'} is '*'" in warning.reason


@pytest.mark.parametrize(
    ("rules", "open_queues"),
    [
        ((NAMED,), {"root": "*"}),  # nobody has a queue of their own
        ((OWN, NAMED), {"root": "*"}),  # never reached
        ((CHOSEN, OWN), {"root": "*"}),
        (({**NAMED, "filter": {"type": "deny"}}, OWN), {"root": "*"}),
        ((NAMED, OWN), {"root": "ann dev"}),
        ((NAMED, BELOW_TEAMS), {"other": "*"}),  # that is nobody's
        (({**NAMED, "parent": {"name": "user"}},), {"root": "*"}),
    ],
)
def test_k55_not_the_queue_of_another(rules: tuple[Any, ...], open_queues: dict[str, str]) -> None:
    assert loaded(*rules, **open_queues).warnings == ()


def test_k55_in_the_installed_queues_nobody_takes_those_of_another() -> None:
    folder = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
    config_map = yaml.safe_load((folder / "configuration.yaml").read_text(encoding="utf-8"))
    assert load(config_map["data"]["queues.yaml"]).warnings == ()
