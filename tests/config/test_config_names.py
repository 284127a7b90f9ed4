"""Names of users and groups, place by place, as YuniKorn takes them (2.2, 2.3, 2.17)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quadriga.core.config import ACL, ConfigError, LimitConfig, PlacementRule, Problem, load

R = "partitions[0].queues[0]"
RULE = "partitions[0].placementrules[0]"


def limit(names: str) -> LimitConfig:
    text = f"partitions: [{{queues: [{{name: a, limits: [{{{names}, maxapplications: 1}}]}}]}}]"
    return load(text).partitions[0].root.children[0].limits[0]


def filtered(names: str) -> PlacementRule:
    rule = f"{{name: user, filter: {{{names}}}}}"
    text = f"partitions: [{{queues: [{{name: a}}], placementrules: [{rule}]}}]"
    return load(text).partitions[0].placement_rules[0]


def only_problem(build: Callable[[], object]) -> Problem:
    with pytest.raises(ConfigError) as caught:
        build()
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("groups", name) for name in ("g", "_g", "G:9", "data.science", "a-b_c")),
        # a user may be an address or a machine account
        *(("users", name) for name in ("u@site", "a/b", "u#1", "host$", "_", "a:b.c-d")),
    ],
)
def test_a_name_of_a_limit_is_that_of_yunikorn(kind: str, name: str) -> None:
    assert getattr(limit(f"{kind}: ['{name}']"), kind) == (name,)


@pytest.mark.parametrize("name", ["g@site", "a/b", "g#1", "9g", "g$", "", "-g"])
def test_a_group_of_a_limit_with_another_name_is_a_problem(name: str) -> None:
    problem = only_problem(lambda: limit(f"groups: ['{name}']"))
    assert problem.path == f"{R}.limits[0].groups[0]"
    assert "not a valid group name: a letter or _ first" in problem.reason


def test_the_only_name_of_a_filter_is_valid_or_a_regular_expression() -> None:
    for name in ("data.science", "g:1", ".*@site", "host$"):
        assert filtered(f"groups: ['{name}']").filter.groups == (name,)
    for name in ("g@site", "a/b", "g#1"):
        problem = only_problem(lambda name=name: filtered(f"groups: ['{name}']"))
        assert problem.path == f"{RULE}.filter.groups"
        assert "neither a group name nor a regular expression" in problem.reason


def test_of_several_names_of_a_filter_an_invalid_one_matches_nobody_and_is_a_warning() -> None:
    text = """partitions:
- queues: [{name: leaf}]
  placementrules:
  - name: user
    filter:
      users: [ann, u@site, '.*']
      groups:
      - dev
      - dev@site
"""
    configuration = load(text)
    assert [(w.path, w.line, w.reason.split(":")[0]) for w in configuration.warnings] == [
        (f"{RULE}.filter.users[2]", 6, "'.*' is not a valid user name and matches nobody"),
        (f"{RULE}.filter.groups[1]", 9, "'dev@site' is not a valid group name and matches nobody"),
    ]


def test_a_name_of_an_acl_that_is_invalid_is_a_warning_with_its_line() -> None:
    text = """partitions:
- queues:
  - name: a
    submitacl: ann,a/b data.science,ops
    adminacl: ' @ops'
"""
    configuration = load(text)
    (child,) = configuration.partitions[0].root.children
    assert child.submit_acl == ACL(frozenset({"ann"}), frozenset({"ops"}))
    assert child.admin_acl == ACL()
    assert [(w.path, w.line, w.reason.split(":")[0]) for w in configuration.warnings] == [
        (f"{R}.submitacl", 4, "'a/b' is not a valid user name and grants no access"),
        (f"{R}.submitacl", 4, "'data.science' is not a valid group name and grants no access"),
        (f"{R}.adminacl", 5, "'@ops' is not a valid group name and grants no access"),
    ]
