"""Names of users and groups, place by place, as YuniKorn takes them (2.2, 2.3, 2.17)."""

import re
from collections.abc import Callable

import pytest

from quadriga.core.config import (
    ACL,
    AclError,
    ConfigError,
    LimitConfig,
    PlacementRule,
    Problem,
    load,
)
from quadriga.core.config.acl import read_acl
from quadriga.core.config.expression import Expression

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
        (f"{RULE}.filter.users[2]", 6, "'.*' is not a valid user name and matches no one"),
        (f"{RULE}.filter.groups[1]", 9, "'dev@site' is not a valid group name and matches no one"),
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


# -- access control lists (2.17) ---------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "   ", "9lives", "!bad "])
def test_nothing_valid_denies(text: str) -> None:
    acl = read_acl(text)[0]
    assert not acl.allows("anyone", ["group"])
    assert not acl.allows("")


@pytest.mark.parametrize("text", ["*", "* ", " *", "ann *", "* staff"])
def test_the_wildcard_lets_everyone_pass(text: str) -> None:
    assert read_acl(text)[0].allows("anyone")


def test_users_come_first_then_groups() -> None:
    acl = read_acl("ann,bob@site.org staff,ops")[0]
    assert acl.allows("ann")
    assert acl.allows("bob@site.org")
    assert acl.allows("cid", ["other", "ops"])
    assert not acl.allows("cid", ["ann"])
    assert not acl.allows("staff")
    # a leading space leaves the users out
    acl = read_acl(" staff")[0]
    assert acl.allows("ann", ["staff"])
    assert not acl.allows("staff")


@pytest.mark.parametrize(
    ("kind", "names"), [("users", "ann _x9 a.b-c@site.org host$"), ("groups", "staff _x a-b_9")]
)
def test_users_may_be_addresses_or_machine_accounts_and_groups_not(kind: str, names: str) -> None:
    for name in names.split():
        text = name if kind == "users" else f" {name}"
        assert read_acl(text) == (ACL(**{kind: frozenset({name})}), ())


USERS = ["a:b", "a#b", "a/b", "9ann", "$", "a$b", "-a", "ann$$"]
GROUPS = [f" {name}" for name in ("a.b", "a:b", "a@b", "a/b", "a#b", "a$", "9a")]


@pytest.mark.parametrize("text", [*USERS, *GROUPS])
def test_another_name_gives_nobody_access(text: str) -> None:
    acl, ignored = read_acl(text)
    assert acl == ACL()
    assert not acl.allows(text.strip(), [text.strip()])
    assert len(ignored) == 1
    assert repr(text.strip()) in ignored[0]


@pytest.mark.parametrize(
    ("text", "ignored"),
    [("", 0), (" ", 0), (" staff", 0), ("ann ", 0), ("*", 0), ("1x,* 2y", 0), ("ann,,bob", 1)],
)
def test_only_names_are_said_to_be_ignored(text: str, ignored: int) -> None:
    assert len(read_acl(text)[1]) == ignored
    acl = read_acl("ann,1x,,b!b staff,-")[0]
    assert acl == ACL(frozenset({"ann"}), frozenset({"staff"}))


@pytest.mark.parametrize("text", ["a b c", "a  b", " a b"])
def test_more_than_two_lists_are_an_error(text: str) -> None:
    with pytest.raises(AclError, match="multiple spaces found in ACL"):
        read_acl(text)[0]


# -- expressions: they mean what they usually mean, in time that nobody can blow up ------------------


@pytest.mark.parametrize(
    "expression",
    ["^dev-.*$", "user[0-9]+", "(team|group)_[a-z]{2,8}", "(?i)^Ann$", "^[^.]+$", "a|b|", r"\w\d"],
)
@pytest.mark.parametrize("text", ["dev-1", "user7", "my team_ab", "ANN", "ann", "a.b", "", "ö7"])
def test_what_configurations_have(expression: str, text: str) -> None:
    expected = re.search(expression, text, re.ASCII) is not None
    assert Expression(expression).search(text) == expected


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|a)*$", "(.*a){20}$", "(a*)*b", "((a?){9}){9}b", "a*a*a*a*a*a*a*b"]
)
def test_no_expression_takes_for_ever(expression: str) -> None:
    Expression(expression).search("a" * 1_000)  # Python's takes longer than there is time


REFUSED = [r"(a)\1", "(?=a)b", "(?<!a)b", "a++", "(?>a)", "(", "a{9999}", "((a{50}){50}){50}"]


@pytest.mark.parametrize("expression", [*REFUSED, "(" * 2_000])
def test_what_cannot_be_done_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Expression(expression)


def test_a_filter_with_one_is_a_problem_of_the_configuration() -> None:
    text = r"""
partitions:
  - name: default
    placementrules:
      - name: fixed
        value: root.a
        filter: {type: allow, users: ['(a)\1']}
    queues: [{name: root, queues: [{name: a}]}]
"""
    with pytest.raises(ConfigError, match="neither a user name nor a regular expression"):
        load(text)
