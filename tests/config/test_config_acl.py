"""Access control lists (2.17)."""

from __future__ import annotations

import pytest

from quadriga.core.config import ACL, AclError, parse_acl
from quadriga.core.config.acl import read_acl


@pytest.mark.parametrize("text", ["", " ", "   ", "9lives", "!bad "])
def test_nothing_valid_denies(text: str) -> None:
    acl = parse_acl(text)
    assert not acl.allows("anyone", ["group"])
    assert not acl.allows("")


@pytest.mark.parametrize("text", ["*", "* ", " *", "ann *", "* staff"])
def test_the_wildcard_lets_everyone_pass(text: str) -> None:
    assert parse_acl(text).allows("anyone")


def test_users_come_first_then_groups() -> None:
    acl = parse_acl("ann,bob@site.org staff,ops")
    assert acl.allows("ann")
    assert acl.allows("bob@site.org")
    assert acl.allows("cid", ["other", "ops"])
    assert not acl.allows("cid", ["ann"])
    assert not acl.allows("staff")
    # a leading space leaves the users out
    acl = parse_acl(" staff")
    assert acl.allows("ann", ["staff"])
    assert not acl.allows("staff")


@pytest.mark.parametrize(
    ("kind", "names"),
    [("users", "ann _x9 a.b-c@site.org host$"), ("groups", "staff _x a-b_9")],
)
def test_a_name_of_a_user_may_be_an_address_or_a_machine_account_one_of_a_group_not(
    kind: str, names: str
) -> None:
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
    acl = parse_acl("ann,1x,,b!b staff,-")
    assert acl == ACL(frozenset({"ann"}), frozenset({"staff"}))


@pytest.mark.parametrize("text", ["a b c", "a  b", " a b"])
def test_more_than_two_lists_are_an_error(text: str) -> None:
    with pytest.raises(AclError, match="multiple spaces found in ACL"):
        parse_acl(text)
