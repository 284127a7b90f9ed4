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
