"""The scale-up hint is not sent for what a limit has stopped, when the limit has room again but no round
has tried it yet (5.6, 5.11)."""

from __future__ import annotations

import pytest
from core_steps import on_nodes, submit
from limits_side import limited

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
        submit(script, app, "k", queue="root.q", user="joe", groups=["devs"], vcore=1000)
    script.schedule()
    script.release("a", "k-0")
    assert not [line for line in script.advance(40) if line.startswith("FAILED")]
    assert "new c/k-0 on n1" in script.schedule()


def test_5_11_no_node_is_asked_for_between_a_larger_limit_and_the_next_round() -> None:
    script = on_nodes(JOE, n1=9000)
    submit(script, "a", "k", "l", "m", queue="root.q", user="joe", vcore=1000)
    script.schedule()
    script.configure(limited(f"users: [joe], {VCORES.format(3)}"))
    assert script.advance(2) == []
    assert script.schedule() == ["new a/m-0 on n1"]


def test_5_11_a_node_is_asked_for_when_a_round_has_tried_it() -> None:
    script = on_nodes(JOE, n1=2000)
    submit(script, "other", "o", queue="root.q", user="ann", vcore=1000)
    submit(script, "a", "k", "l", queue="root.q", user="joe", vcore=1000)
    submit(script, "b", "m", queue="root.q", user="joe", vcore=2000)
    script.schedule()
    script.release("a", "k-0")
    script.release_ask("a", "l")
    script.schedule()
    assert script.advance(1) == ["FAILED b/m"]
