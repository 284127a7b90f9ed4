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


def test_a_leading_space_leaves_the_users_out() -> None:
    acl = parse_acl(" staff")
    assert acl.allows("ann", ["staff"])
    assert not acl.allows("staff")


def test_invalid_names_are_ignored() -> None:
    acl = parse_acl("ann,1x,,b!b staff,-")
    assert acl == ACL(frozenset({"ann"}), frozenset({"staff"}))


@pytest.mark.parametrize("name", ["ann", "_x9", "a.b-c@site.org", "host$"])
def test_a_user_may_be_an_address_or_a_machine_account(name: str) -> None:
    assert read_acl(name) == (ACL(users=frozenset({name})), ())


@pytest.mark.parametrize("name", ["a:b", "a#b", "a/b", "9ann", "$", "a$b", "-a", "ann$$"])
def test_a_user_with_another_name_gives_nobody_access(name: str) -> None:
    acl, ignored = read_acl(name)
    assert acl == ACL()
    assert not acl.allows(name)
    assert len(ignored) == 1
    assert repr(name) in ignored[0]


@pytest.mark.parametrize("name", ["staff", "_x", "a-b_9"])
def test_a_group_has_letters_digits_underscores_and_hyphens(name: str) -> None:
    assert read_acl(f" {name}") == (ACL(groups=frozenset({name})), ())


@pytest.mark.parametrize("name", ["a.b", "a:b", "a@b", "a/b", "a#b", "a$", "9a"])
def test_a_group_with_another_name_gives_nobody_access(name: str) -> None:
    acl, ignored = read_acl(f" {name}")
    assert acl == ACL()
    assert not acl.allows("ann", [name])
    assert len(ignored) == 1
    assert repr(name) in ignored[0]


@pytest.mark.parametrize(
    ("text", "ignored"),
    [("", 0), (" ", 0), (" staff", 0), ("ann ", 0), ("*", 0), ("1x,* 2y", 0), ("ann,,bob", 1)],
)
def test_only_names_are_said_to_be_ignored(text: str, ignored: int) -> None:
    assert len(read_acl(text)[1]) == ignored


@pytest.mark.parametrize("text", ["a b c", "a  b", " a b"])
def test_more_than_two_lists_are_an_error(text: str) -> None:
    with pytest.raises(AclError, match="multiple spaces found in ACL"):
        parse_acl(text)
