"""Limits of groups: to which group an application belongs, and what its members share (2.5)."""

from __future__ import annotations

import pytest

from quadriga.sim.script import Script

from .limits_side import allocated, submit
from .tree_side import below, limits, tree


def levels(*, root: str = "", p: str = "", q: str = "") -> str:
    """root, p below it, q and r below that; each with limits, one a line."""

    def of(text: str) -> str:
        return f", {limits(*text.splitlines())}" if text else ""

    return tree(f"p{of(p)}, {below('q' + of(q), 'r')}", root=f"submitacl: '*'{of(root)}")


def script_of(config: str) -> Script:
    script = Script(config)
    script.node("n1", memory=1000)
    return script


def enter(
    script: Script, app: str, user: str, *groups: str, leaf: str = "q", asks: int = 1
) -> None:
    submit(script, app, user, *groups, queue=f"root.p.{leaf}", asks=asks)


def group(script: Script, app: str) -> str:
    account = script.scheduler.application(app).group_account
    return account.name if account is not None else ""


TEN = "maxresources: {memory: 10}"
ALL = f"groups: ['*'], {TEN}"


@pytest.mark.parametrize(
    ("limits", "groups", "expected"),
    [
        # the order of the configuration decides, not that of the user's groups
        ({"q": f"groups: [g1], {TEN}\ngroups: [g2], {TEN}"}, ["g2", "g1"], "g1"),
        ({"q": f"groups: [g2, g1], {TEN}"}, ["g1", "g2"], "g2"),
        # the queue itself before those above it
        ({"q": f"groups: [g2], {TEN}", "p": f"groups: [g1], {TEN}"}, ["g1", "g2"], "g2"),
        ({"p": f"groups: [g1], {TEN}", "root": f"groups: [g2], {TEN}"}, ["g1", "g2"], "g1"),
        ({"root": f"groups: [g1], {TEN}"}, ["g1"], "g1"),
        # the wildcard after the names of its own queue, before all of the queue above
        ({"q": f"groups: [g1], {TEN}\n{ALL}"}, ["g1"], "g1"),
        ({"q": f"groups: [g1], {TEN}\n{ALL}"}, ["g2"], "*"),
        ({"q": f"groups: [g3], {TEN}\n{ALL}", "p": f"groups: [g1], {TEN}"}, ["g1"], "*"),
        # nobody's
        ({"q": f"groups: [g1], {TEN}"}, ["g2"], ""),
        ({"q": f"groups: [g1], {TEN}"}, [], ""),
        ({"q": f"users: ['*'], {TEN}"}, ["g1"], ""),
        ({"q": f"groups: [g1], {TEN}\n{ALL}"}, [], "*"),
    ],
)
def test_2_5_the_group_of_an_application(
    limits: dict[str, str], groups: list[str], expected: str
) -> None:
    script = script_of(levels(**limits))
    enter(script, "a", "ann", *groups)
    allocated(script)
    assert group(script, "a") == expected


def test_2_5_the_members_of_a_group_share_its_limit() -> None:
    """And all other groups together share the wildcard's."""
    script = script_of(levels(q=f"groups: [g1], {TEN}\n{ALL}"))
    for app, user, group in (("a", "ann", "g1"), ("b", "bob", "g1"), ("c", "cem", "g1")):
        enter(script, app, user, group)
    for app, user, group in (("d", "dot", "g2"), ("e", "eva", "g3"), ("f", "fay", "g4")):
        enter(script, app, user, group)
    assert allocated(script) == ["a0", "b0", "d0", "e0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["c0"]


def test_2_5_a_named_group_has_no_part_in_a_wildcard_above() -> None:
    script = script_of(levels(q=f"groups: [g1], {TEN}", p=f"groups: [g2], {TEN}\n{ALL}"))
    enter(script, "a", "ann", "g1", asks=2)
    enter(script, "b", "bob", "g3", leaf="r", asks=2)
    assert sorted(allocated(script)) == ["a0", "a1", "b0", "b1"]


def test_2_5_a_group_is_limited_on_every_level() -> None:
    script = script_of(
        levels(p="groups: [g1], maxresources: {memory: 15}", q=f"groups: [g1], {TEN}")
    )
    enter(script, "a", "ann", "g1", asks=3)
    enter(script, "b", "bob", "g1", leaf="r", asks=3)
    assert sorted(allocated(script)) == ["a0", "a1", "b0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["b1"]  # r before q: it uses as much, and asks for more


def test_2_5_an_application_counts_for_one_group_only() -> None:
    """The same user counts for g1 in q and for g2 in r; g2 has 5 in p, but a is not g2's."""
    config = levels(q=f"groups: [g1], {TEN}", p="groups: [g2], maxresources: {memory: 5}")
    script = script_of(config)
    enter(script, "a", "ann", "g1", "g2", asks=3)
    assert allocated(script) == ["a0", "a1"]
    assert list(script.scheduler.partition().groups) == ["g1"]
    enter(script, "b", "ann", "g1", "g2", leaf="r", asks=3)
    assert allocated(script) == ["b0"]
    assert (group(script, "a"), group(script, "b")) == ("g1", "g2")


def test_2_5_the_group_is_kept_for_life() -> None:
    script = script_of(levels(q=f"groups: [g1], {TEN}"))
    enter(script, "a", "ann", "g1", "g2")
    allocated(script)
    script.configure(levels(q=f"groups: [g2], {TEN}"))
    enter(script, "b", "ann", "g1", "g2")
    allocated(script)
    assert (group(script, "a"), group(script, "b")) == ("g1", "g2")
    script.release("a", "a0-0")
    script.ask("a", "more", memory=500)  # g1 has no limit any more
    assert allocated(script) == ["more"]
    assert group(script, "a") == "g1"
    script.remove_app("a")
    assert list(script.scheduler.partition().groups) == ["g2"]  # nobody needs g1


@pytest.mark.parametrize("limit", ["groups: [g1], maxresources: {memory: 1}", ""])
def test_2_5_who_has_used_nothing_yet_finds_its_group_anew(limit: str) -> None:
    """And who has used something without a group stays without one."""
    script = script_of(levels(q=limit))
    enter(script, "a", "ann", "g1", "g2")
    assert allocated(script) == ([] if limit else ["a0"])
    script.configure(levels(q="groups: [g2], maxresources: {memory: 6}"))
    assert allocated(script) == (["a0"] if limit else [])
    assert group(script, "a") == ("g2" if limit else "")
    script.ask("a", "more", memory=5)
    assert allocated(script) == ([] if limit else ["more"])
