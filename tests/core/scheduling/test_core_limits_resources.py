"""Limits of users and groups (2.5, 2.9, 5.6 step 3): what ``test_core_order_reference`` leaves out."""

import pytest
from core_world import reported
from limits_side import allocated, limited, submit, used
from tree_side import below, limits, tree

from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.scripted.script import Script

EVERYBODY_20 = "users: ['*'], maxresources: {memory: 20}"
ANN_10 = "users: [ann], maxresources: {memory: 10}"


def script_of(config: str, *, memory: int = 1000) -> Script:
    script = Script(config)
    script.node("n1", memory=memory, gpu=100)
    return script


def test_2_5_2_2_all_applications_of_a_user_share_the_limit() -> None:
    """Limits of the partition are those of root."""
    script = script_of(tree("q", "r", partition=limits(EVERYBODY_20)))
    for app, queue in (("a", "q"), ("b", "r"), ("c", "q")):
        submit(script, app, queue=f"root.{queue}", memory=8)
    assert sorted(allocated(script)) == ["a0", "b0"]
    script.release("a", "a0-0")
    assert allocated(script) == ["c0"]


def test_5_1_a_limit_of_zero_allows_nothing_of_a_type() -> None:
    script = script_of(limited("users: [ann], maxresources: {memory: 10, gpu: 0}"))
    submit(script, "a", asks=0)
    script.ask("a", "k0", memory=1, gpu=1)
    script.ask("a", "k1", memory=1)
    assert allocated(script) == ["k1"]


def test_2_9_a_limit_holds_in_queues_that_placement_makes() -> None:
    rule = "{name: user, create: true, parent: {name: fixed, value: root.users}}"
    entry = limits("users: ['*'], maxresources: {memory: 10}")
    script = script_of(tree(f"users, parent: true, {entry}", partition=f"placementrules: [{rule}]"))
    submit(script, "a", queue="", asks=2, memory=8)
    assert allocated(script) == ["a0"]
    assert script.scheduler.application("a").queue.path == "root.users.ann"


def with_gang(memory: int) -> Script:
    """A gang of three placeholders of five each, and a limit of this for its user."""
    script = script_of(limited(f"users: [ann], maxresources: {{memory: {memory}}}"))
    script.app("g", "root.q", user="ann", gang={"memory": 15})
    script.ask("g", *(f"ph{n}" for n in range(3)), group="tg", placeholder=True, memory=5)
    return script


def test_g59_placeholders_count_for_the_user() -> None:
    script = with_gang(20)
    submit(script, "a", asks=2)
    assert allocated(script) == ["ph0", "ph1", "ph2", "a0"]


def test_x16_a_limit_is_no_gate_for_a_whole_gang() -> None:
    """The gate looks at queues; a user's limit lets a gang in piece by piece, as in YuniKorn."""
    assert allocated(with_gang(12)) == ["ph0", "ph1"]


def test_g28_g31_a_replacement_changes_the_users_usage_in_one_update() -> None:
    """It needs no headroom."""
    script = with_gang(15)
    script.schedule()
    script.ask("g", "real", group="tg", memory=3)
    assert script.schedule() == ["released g/ph0-0 PLACEHOLDER_REPLACED"]
    assert used(script, "ann") == 15  # G28: nothing is freed before the confirmation
    assert script.confirm(TerminationType.PLACEHOLDER_REPLACED) == ["new g/real-0 on n1"]
    assert used(script, "ann") == 13
    submit(script, "a", asks=0)
    script.ask("a", "a1", memory=3)
    script.ask("a", "a2", memory=2)
    assert allocated(script) == ["a2"]


def test_2_11_recovery_counts_and_does_not_ask() -> None:
    script = script_of(limited(EVERYBODY_20))
    submit(script, "a", asks=0)
    heard = script.node("n2", memory=100, existing=[reported("old", "a", memory=30)])
    assert heard[-1] == "accepted node n2"
    assert used(script, "ann") == 30
    script.ask("a", "a1", memory=1)
    assert allocated(script) == []
    script.release("a", "old-0")
    assert allocated(script) == ["a1"]


def test_2_7_a_reservation_that_a_limit_holds_back_is_used_when_there_is_headroom() -> None:
    script = script_of(limited(ANN_10), memory=20)
    for node in ("n2", "n4"):  # enough in all, and not on one node
        script.node(node, memory=6)
    submit(script, "b", "bob", memory=20)
    submit(script, "a", memory=10)
    assert allocated(script) == ["b0"]
    script.advance(3)
    script.schedule()
    (kept,) = script.scheduler.partition().reservations
    assert kept.node.node_id == "n1"
    old = reported("old", "a", memory=5)
    script.node("n3", memory=100, existing=[old])  # takes ann's headroom away
    script.node("n3", NodeInfo.DRAIN_NODE)
    script.release("b", "b0-0")
    assert allocated(script) == []
    assert script.scheduler.partition().waiting.short_of_quota
    script.release("a", "old-0")
    assert script.schedule() == ["new a/a0-0 on n1"]


@pytest.mark.parametrize(("limit", "made_room"), [(20, ["b/b1-0"]), (4, [])])
def test_5_6_none_goes_for_an_ask_that_a_limit_holds_back(limit: int, made_room: list[str]) -> None:
    entry = limits(f"users: [ann], maxresources: {{memory: {limit}}}")
    high = (
        f"properties: {{preemption.delay: 1s}}, resources: {{guaranteed: {{memory: 10}}}}, {entry}"
    )
    config = tree(f"high, {high}", "low, resources: {guaranteed: {memory: 2}}")
    script = script_of(config, memory=20)
    submit(script, "b", "bob", queue="root.low", asks=2, memory=10)
    script.schedule()
    submit(script, "a", queue="root.high", asks=0)
    script.ask("a", "a1", memory=5, preempt=(True, True))
    script.advance(3)
    script.schedule()
    assert [f"{gone.applicationID}/{gone.UUID}" for gone in script.outstanding] == made_room


def limited_to(memory: int) -> str:
    return limited(f"users: ['*'], maxresources: {{memory: {memory}}}")


@pytest.mark.parametrize("config", [limited_to(16), tree("q")], ids=["raised", "removed"])
def test_2_2_a_raised_limit_lets_those_in_who_waited(config: str) -> None:
    """And a lowered one evicts nobody."""
    script = script_of(limited_to(10))
    submit(script, "a", asks=2, memory=8)
    script.ask("a", "small", memory=2)
    assert allocated(script) == ["a0", "small"]
    script.configure(config)
    script.release("a", "small-0")
    assert allocated(script) == ["a1"]
    submit(script, "b", "bob", memory=8)
    assert allocated(script) == ["b0"]
    script.ask("a", "tiny", memory=2)
    script.configure(limited_to(10))
    assert script.outstanding == []
    assert used(script, "ann") == 16
    script.release("a", "a0-0")
    assert allocated(script) == ["tiny"]


def levels(*, root: str = "", p: str = "", q: str = "") -> str:
    """root, p below it, q and r below that; each with limits, one a line."""

    def of(text: str) -> str:
        return f", {limits(*text.splitlines())}" if text else ""

    return tree(f"p{of(p)}, {below('q' + of(q), 'r')}", root=f"submitacl: '*'{of(root)}")


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
    enter(script, "unused", "ann", "g1", "g2", asks=0)  # life begins with the first allocation
    script.configure(levels(q=f"groups: [g2], {TEN}"))
    enter(script, "b", "ann", "g1", "g2")
    allocated(script)
    assert [group(script, app) for app in ("a", "unused", "b")] == ["g1", "g2", "g2"]
    script.release("a", "a0-0")
    script.ask("a", "more", memory=500)  # g1 has no limit any more
    assert allocated(script) == ["more"]
    assert group(script, "a") == "g1"
    script.remove_app("a")
    assert list(script.scheduler.partition().groups) == ["g2"]  # nobody needs g1


ONE = "users: ['*'], maxapplications: 1"


def running(script: Script, user: str = "ann") -> list[str]:
    account = script.scheduler.partition().users[user]
    return [a.app_id for each in account.ledgers.values() if each.queue.leaf for a in each.running]


def gang(script: Script, app: str, style: str = "Soft", members: int = 2) -> None:
    script.app(app, "root.q", user="ann", gang={"memory": 10}, style=style, timeout_ms=60_000)
    placeholders = [f"{app}-{n}" for n in range(members)]
    script.ask(app, *placeholders, group="tg", placeholder=True, memory=5)


def test_2_5_5_15_a_gang_counts_from_its_first_placeholder() -> None:
    """Removed while Accepted it blocks nobody: YuniKorn keeps its place for ever (bug 1)."""
    script = script_of(limited(ONE), memory=100)
    gang(script, "g")
    gang(script, "h")
    assert allocated(script, 1) == ["g-0"]
    assert script.scheduler.application("g").state == "Accepted"
    assert running(script) == ["g"]
    assert allocated(script, 1) == ["g-1"]
    gang(script, "i")
    script.remove_app("g")
    assert allocated(script, 1) == ["h-0"]
    script.remove_app("h")
    assert allocated(script) == ["i-0", "i-1"]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_2_5_a_gang_that_timed_out_leaves_its_place(style: str) -> None:
    script = script_of(limited(ONE), memory=100)
    gang(script, "g", style, members=1)
    gang(script, "h")
    assert allocated(script) == ["g-0"]
    script.advance(61)
    assert running(script) == ["g"]  # its placeholder is not confirmed gone
    script.confirm(TerminationType.TIMEOUT)
    assert allocated(script) == ["h-0", "h-1"]
    assert running(script) == ["h"]


def test_g52_leftover_placeholders_do_not_keep_the_place() -> None:
    script = script_of(limited(ONE), memory=100)
    gang(script, "g")
    submit(script, "b")
    allocated(script)
    script.ask("g", "real", group="tg", memory=5)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    app = script.scheduler.application("g")
    assert (app.state, len(app.placeholders), app.counted) == ("Waiting", 1, False)
    assert allocated(script) == ["b0"]


def test_2_11_a_recovered_application_counts_without_being_asked() -> None:
    script = script_of(limited(ONE), memory=100)
    for app in ("a", "b"):
        submit(script, app, asks=0)
    existing = [reported(f"{app}0", app, memory=5) for app in ("a", "b")]
    script.node("n2", memory=100, existing=existing)
    assert running(script) == ["a", "b"]
    submit(script, "c")
    assert allocated(script) == []
    script.release("a", "a0-0")
    assert allocated(script) == []
    script.release("b", "b0-0")
    assert allocated(script) == ["c0"]


def test_s36_5_15_releasing_everything_gives_the_quota_back() -> None:
    """``a`` goes on (in YuniKorn it starves, bug 3); ``b`` is the user's second and waits."""
    script = script_of(limited("users: ['*'], maxresources: {memory: 20}, maxapplications: 1"))
    submit(script, "a", asks=3, memory=8)
    submit(script, "b", memory=8)
    assert allocated(script, 5) == ["a0", "a1"]
    script.release("a")
    assert used(script, "ann") == 0
    assert allocated(script, 3) == ["a2"]
    assert script.scheduler.application("b").state == "Accepted"
    assert running(script) == ["a"]
