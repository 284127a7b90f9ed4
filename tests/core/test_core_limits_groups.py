"""Limits of groups: to which group an application belongs, and what its members share (2.5)."""

from __future__ import annotations

import pytest

from quadriga.sim.script import Script


def tree(*, root: str = "", p: str = "", q: str = "") -> str:
    """root, p below it, q and r below that; each with limits given as flow mappings, one a line."""

    def limits(text: str, indent: str) -> str:
        entries = "".join(
            f"{indent}  - {{limit: x, {each.strip()}}}\n" for each in text.splitlines()
        )
        return f"{indent}limits:\n{entries}" if text else ""

    return f"""\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
{limits(root, " " * 8)}        queues:
          - name: p
{limits(p, " " * 12)}            queues:
              - name: q
{limits(q, " " * 16)}              - name: r
"""


def script_of(config: str) -> Script:
    script = Script(config)
    script.node("n1", memory=1000)
    return script


def submit(
    script: Script, app: str, user: str, *groups: str, queue: str = "root.p.q", asks: int = 1
) -> None:
    """An application that asks for 5 so many times."""
    assert script.app(app, queue, user=user, groups=groups) == [f"accepted {app}"]
    script.ask(app, *(f"{app}{n}" for n in range(asks)), memory=5)


def allocated(script: Script) -> list[str]:
    heard = script.schedule()
    return [line.split("/")[1].split(" ")[0][:-2] for line in heard if line.startswith("new ")]


def group(script: Script, app: str) -> str:
    account = script.scheduler.application(app).group_account
    return account.name if account is not None else ""


TEN = "maxresources: {memory: 10}"


# -- which group -----------------------------------------------------------------------------------


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
        ({"q": f"groups: [g1], {TEN}\ngroups: ['*'], {TEN}"}, ["g1"], "g1"),
        ({"q": f"groups: [g1], {TEN}\ngroups: ['*'], {TEN}"}, ["g2"], "*"),
        (
            {"q": f"groups: [g3], {TEN}\ngroups: ['*'], {TEN}", "p": f"groups: [g1], {TEN}"},
            ["g1"],
            "*",
        ),
        # nobody's
        ({"q": f"groups: [g1], {TEN}"}, ["g2"], ""),
        ({"q": f"groups: [g1], {TEN}"}, [], ""),
        ({"q": f"users: ['*'], {TEN}"}, ["g1"], ""),
        ({"q": f"groups: [g1], {TEN}\ngroups: ['*'], {TEN}"}, [], "*"),
    ],
)
def test_2_5_the_group_of_an_application(
    limits: dict[str, str], groups: list[str], expected: str
) -> None:
    script = script_of(tree(**limits))
    submit(script, "a", "ann", *groups)
    allocated(script)
    assert group(script, "a") == expected


def test_2_5_it_counts_for_one_group_only() -> None:
    script = script_of(tree(q=f"groups: [g1], {TEN}", p="groups: [g2], maxresources: {memory: 5}"))
    submit(script, "a", "ann", "g1", "g2", asks=3)
    assert allocated(script) == ["a0", "a1"]  # g2 has 5 in p, but a is not g2's
    assert list(script.scheduler.partition().groups) == ["g1"]


# -- what its members share ------------------------------------------------------------------------


def test_2_5_the_members_of_a_group_share_its_limit() -> None:
    script = script_of(tree(q=f"groups: [g1], {TEN}"))
    for app, user in (("a", "ann"), ("b", "bob"), ("c", "cem")):
        submit(script, app, user, "g1")
    submit(script, "d", "dot", "g2")
    assert allocated(script) == ["a0", "b0", "d0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["c0"]


def test_2_5_all_other_groups_together_share_the_wildcards_limit() -> None:
    script = script_of(tree(q=f"groups: [g1], {TEN}\ngroups: ['*'], {TEN}"))
    submit(script, "a", "ann", "g1", asks=3)
    submit(script, "b", "bob", "g2")
    submit(script, "c", "cem", "g3")
    submit(script, "d", "dot", "g4")
    assert allocated(script) == ["a0", "a1", "b0", "c0"]


def test_2_5_a_named_group_has_no_part_in_a_wildcard_above() -> None:
    script = script_of(
        tree(
            q="groups: [g1], maxresources: {memory: 20}",
            p=f"groups: [g2], {TEN}\ngroups: ['*'], {TEN}",
        ).replace("memory: 20", "memory: 10")
    )
    submit(script, "a", "ann", "g1", asks=2)
    submit(script, "b", "bob", "g3", queue="root.p.r", asks=2)
    assert sorted(allocated(script)) == ["a0", "a1", "b0", "b1"]


def test_2_5_a_group_is_limited_on_every_level() -> None:
    script = script_of(tree(p="groups: [g1], maxresources: {memory: 15}", q=f"groups: [g1], {TEN}"))
    submit(script, "a", "ann", "g1", asks=3)
    submit(script, "b", "bob", "g1", queue="root.p.r", asks=3)
    assert sorted(allocated(script)) == ["a0", "a1", "b0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["b1"]  # r before q: it uses as much, and asks for more


def test_2_5_the_user_and_the_group_must_both_have_room() -> None:
    script = script_of(tree(q=f"users: [ann], {TEN}\ngroups: [g1], maxresources: {{memory: 15}}"))
    submit(script, "a", "ann", "g1", asks=3)
    submit(script, "b", "bob", "g1", asks=3)
    assert allocated(script) == ["a0", "a1", "b0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["a2"]
    script.release("b", "b0-0")
    assert allocated(script) == ["b1"]
    script.release("b", "b1-0")
    script.release("a", "a1-0")
    assert allocated(script) == ["b2"]


def test_2_5_a_user_in_two_groups_by_queue() -> None:
    """The same user counts for g1 in q and for g2 in r; each application for one of them."""
    script = script_of(tree(q=f"groups: [g1], {TEN}", p=f"groups: [g2], {TEN}"))
    submit(script, "a", "ann", "g1", "g2", asks=3)
    submit(script, "b", "ann", "g1", "g2", queue="root.p.r", asks=3)
    assert sorted(allocated(script)) == ["a0", "a1", "b0", "b1"]
    assert (group(script, "a"), group(script, "b")) == ("g1", "g2")


# -- for life --------------------------------------------------------------------------------------


def test_2_5_the_group_is_kept_for_life() -> None:
    script = script_of(tree(q=f"groups: [g1], {TEN}"))
    submit(script, "a", "ann", "g1", "g2")
    allocated(script)
    script.configure(tree(q=f"groups: [g2], {TEN}"))
    submit(script, "b", "ann", "g1", "g2")
    allocated(script)
    assert (group(script, "a"), group(script, "b")) == ("g1", "g2")
    script.release("a", "a0-0")
    script.ask("a", "more", memory=500)  # g1 has no limit any more
    assert allocated(script) == ["more"]
    assert group(script, "a") == "g1"


def test_2_5_who_has_used_nothing_yet_finds_its_group_anew() -> None:
    script = script_of(tree(q="groups: [g1], maxresources: {memory: 1}"))
    submit(script, "a", "ann", "g1", "g2")
    assert allocated(script) == []
    script.configure(tree(q=f"groups: [g2], {TEN}"))
    assert allocated(script) == ["a0"]
    assert group(script, "a") == "g2"


def test_2_5_an_application_without_a_group_stays_without_one() -> None:
    script = script_of(tree())
    submit(script, "a", "ann", "g1", asks=3)
    allocated(script)
    script.configure(tree(q="groups: [g1], maxresources: {memory: 1}"))
    script.ask("a", "more", memory=5)
    assert allocated(script) == ["more"]


def test_2_5_a_group_that_nobody_needs_is_forgotten() -> None:
    script = script_of(tree(q=f"groups: [g1], {TEN}"))
    submit(script, "a", "ann", "g1")
    allocated(script)
    script.remove_app("a")
    assert script.scheduler.partition().groups == {}
