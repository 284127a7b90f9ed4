"""What can be seen of limits: holdings, explanations, the scale-up hint (2.14, 5.11), docs/limits.md."""

import re
from pathlib import Path

import pytest
from core_steps import on_nodes, run
from limits_side import limited, submit
from tree_side import below, limits, tree

from quadriga.core.config import load
from quadriga.core.runtime.stepwise import STEP, finish, sorted_in_steps
from quadriga.core.steps import limits as shown
from quadriga.sim.scripted.script import Script

_ANN_30 = "users: [ann], maxresources: {memory: 30}"
_TEAM_40 = "groups: [g1], maxresources: {memory: 40, gpu: 2}"
_EACH_10 = "users: ['*'], maxresources: {memory: 10}, maxapplications: 2"
_THREE = "users: ['*'], maxapplications: 3"
TREE = tree(
    f"p, {limits(_ANN_30, _TEAM_40)}, {below('a, ' + limits(_EACH_10), 'b')}",
    "c",
    root=f"submitacl: '*', {limits(_THREE)}",
)


@pytest.fixture
def script() -> Script:
    script = Script(TREE)
    script.node("n1", memory=1000)
    submit(script, "x", "ann", "g1", queue="root.p.a", asks=2, memory=6)
    submit(script, "y", "ann", "g1", queue="root.p.b", memory=6)
    submit(script, "z", "bob", "g2", queue="root.c", memory=6)
    script.schedule()
    return script


def test_2_14_everybody_with_an_application_or_a_limit_is_known(script: Script) -> None:
    partition = script.scheduler.partition()
    assert shown.names(partition) == ["ann", "bob"]
    assert shown.names(partition, groups=True) == ["g1"]
    for app in ("x", "y", "z"):
        script.remove_app(app)
    assert shown.names(partition) == ["ann", "bob"]
    partition.former_users.clear()
    assert shown.names(partition) == ["ann"]
    holding = shown.holding(partition, "ann")
    assert (sum(holding.usage), holding.running) == (0, ())
    assert [child.path for child in holding.children] == ["root.p"]
    with pytest.raises(KeyError, match="bob"):
        shown.holding(partition, "bob")


def test_explain_names_whose_limit_is_in_the_way(script: Script) -> None:
    found = script.scheduler.explain("x", "x1")
    checks = [check.text for check in found.checks if check.about == "limit"]
    sums = [("user ann in root.p.a (limit *)", 10, 6), ("user ann in root.p", 30, 12)]
    sums.append(("group g1 in root.p", 40, 12))
    assert checks == [
        f"{whose}: limit {most} B memory, used {used} B memory, asked 6 B memory, "
        f"headroom {most - used} B memory"
        for whose, most, used in sums
    ]
    assert found.reasons == (checks[0],)
    assert found.remedies == ("raise the limit of user ann in root.p.a (limit *) by 2 B memory",)
    about = [check.about for check in found.checks]
    assert about.index("limit") < about.index("quota")  # 5.6: user headroom before the queue's


def test_explain_counts_applications(script: Script) -> None:
    for app in ("u", "v"):
        submit(script, app, queue="root.c", memory=6)
    script.schedule()
    found = script.scheduler.explain("v", "v0")
    assert found.reasons == ("user ann in root (limit *) runs 3 of 3 applications",)
    assert found.remedies == ("raise maxapplications of user ann in root (limit *) to 4",)


def hints(script: Script) -> list[str]:
    heard = script.schedule() + script.advance(1)
    return [line.split(" ")[1] for line in heard if line.startswith("FAILED")]


def test_5_11_no_more_is_reported_than_limits_let_run() -> None:
    entry = limits("users: ['*'], maxresources: {memory: 20}")
    script = Script(tree("a", "b", root=f"submitacl: '*', {entry}"))
    script.node("n1", memory=1)
    for app, user, queue in (("x", "ann", "a"), ("y", "ann", "b"), ("z", "bob", "b")):
        submit(script, app, user, queue=f"root.{queue}", asks=2, memory=8)
    # ann has room for two, wherever; bob for his two
    assert hints(script) == ["x/x0", "x/x1", "z/z0", "z/z1"]
    script = Script(limited("groups: [g1], maxapplications: 1"))
    script.node("n1", memory=8)
    for app in ("x", "y"):
        submit(script, app, "ann", "g1", asks=2, memory=8)
    assert hints(script) == ["x/x1"]
    script.remove_app("x")
    assert hints(script) == ["y/y1"]


PAGE = Path(__file__).resolve().parents[3] / "docs" / "limits.md"


def test_the_configuration_of_the_page_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    root = load(text).partitions[0].root
    assert [limit.users for limit in root.children[0].limits] == [("ann", "bob"), (), ("*",)]


VCORES = "maxresources: {{vcore: {}}}"
JOE = limited(f"users: [joe], {VCORES.format(2)}")


@pytest.mark.parametrize(
    "limit",
    [
        f"users: [joe], {VCORES.format(2)}",
        f"users: ['*'], {VCORES.format(2)}",
        f"groups: [devs], {VCORES.format(2)}",
        "users: [joe], maxapplications: 2",
    ],
    ids=["user", "wildcard", "group", "applications"],
)
def test_5_11_no_node_is_asked_for_between_a_release_and_the_next_round(limit: str) -> None:
    script = on_nodes(limited(limit), n1=9000)
    for app in "abc":
        run(script, app, "k", queue="root.q", user="joe", groups=["devs"], vcore=1000)
    script.release("a", "k-0")
    assert not [line for line in script.advance(40) if line.startswith("FAILED")]
    assert "new c/k-0 on n1" in script.schedule()


def test_5_11_a_node_is_asked_for_when_a_round_has_tried_it_and_not_before() -> None:
    script = on_nodes(JOE, n1=9000)
    run(script, "a", "k", "l", "m", queue="root.q", user="joe", vcore=1000)
    script.configure(limited(f"users: [joe], {VCORES.format(3)}"))
    assert script.advance(2) == []
    assert script.schedule() == ["new a/m-0 on n1"]
    script = on_nodes(JOE, n1=2000)
    run(script, "other", "o", queue="root.q", user="ann", vcore=1000)
    run(script, "a", "k", "l", queue="root.q", user="joe", vcore=1000)
    run(script, "b", "m", queue="root.q", user="joe", vcore=2000)
    script.release("a", "k-0")
    script.release_ask("a", "l")
    script.schedule()
    assert script.advance(1) == ["FAILED b/m"]


def test_d344_thousands_of_names_are_put_in_order_in_steps() -> None:
    names = [f"app-{number * 7919 % 9001}" for number in range(9001)]
    steps = sorted_in_steps(names)
    assert sum(1 for _ in steps) > 9001 // STEP
    assert finish(sorted_in_steps(names)) == sorted(names)
    assert finish(sorted_in_steps([])) == []
