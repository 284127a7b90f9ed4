"""Access control lists: BEHAVIOUR 2.17."""

from __future__ import annotations

import pytest

from quadriga.core.config import ACL, AclError, parse_acl


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


@pytest.mark.parametrize("text", ["a b c", "a  b", " a b"])
def test_more_than_two_lists_are_an_error(text: str) -> None:
    with pytest.raises(AclError, match="multiple spaces found in ACL"):
        parse_acl(text)
