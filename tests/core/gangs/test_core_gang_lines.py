"""Gangs that are alike wait for room in one line: the decisions are those of trying each of them."""

from random import Random
from unittest.mock import patch

from core_world import launch, news, queues, scripted
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quadriga.core import Options
from quadriga.core.gangs import admission
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script

CONFIG = queues(
    *("a", "b", "c", "d", "e"),
    root="properties: {gang.gather.after: 60s, gang.gather.patience: 40s, preemption.delay: 5s}",
    b="properties: {application.sort.policy: fair}",
    c="resources: {max: {vcore: 7}}",
    d="limits: [{users: ['*'], maxresources: {vcore: 5}}]",
    e="resources: {guaranteed: {vcore: 6}}",
)
OPTIONS = Options(journal_size=None, gang_admission="atomic")
#: the task groups of a gang: number of members, vcores of each
SIZES = (((2, 2),), ((3, 1),), ((1, 1), (2, 2)), ((1, 1), (3, 3)), ((9, 2),))


def gang(script: Script, name: str, groups: tuple[tuple[int, int], ...], **more: str) -> None:
    script.app(name, gang={"vcore": sum(number * vcore for number, vcore in groups)}, **more)
    for at, (number, vcore) in enumerate(groups):
        keys = [f"{name}-{at}-{each}" for each in range(number)]
        script.ask(name, *keys, group=f"t{at}", placeholder=True, vcore=vcore)


def history(seed: int, policy: str) -> tuple[Script, int]:
    """A random history; also the number of attempts to place gangs."""
    random = Random(seed)
    script = scripted(CONFIG.replace("policy: fair", f"policy: {policy}"), options=OPTIONS)
    script.check = False
    for at in range(5):
        script.node(f"n{at}", vcore=4)
    apps: list[str] = []
    attempts = 0

    def counted(*given: object) -> bool:
        nonlocal attempts
        attempts += 1
        return attempt(*given)  # type: ignore[arg-type]

    attempt = admission._attempt
    with patch.object(admission, "_attempt", counted):
        for step in range(80):
            live = news(script.log)
            match random.choice(("gang", "gang", "pods", "end", "end", "end", "more", "wait")):
                case "gang":
                    queue = random.choice("aaabbcde")
                    groups = SIZES[random.randrange(len(SIZES))]
                    user = random.choice("uv")
                    for each in range(random.choice((1, 1, 3))):
                        apps.append(f"g{step}-{each}")
                        gang(script, apps[-1], groups, queue=f"root.{queue}", user=user)
                case "pods":
                    script.app(f"s{step}", queue=f"root.{random.choice('abc')}")
                    keys = [str(at) for at in range(random.choice((1, 4)))]
                    priority = random.choice((0, 0, 1))
                    script.ask(f"s{step}", *keys, vcore=random.choice((1, 2)), priority=priority)
                case "end" if live:
                    for line in random.choices(live, k=random.choice((1, 2, 5))):
                        app, _, uuid = line.split()[0].partition("/")
                        script.release(app, uuid)
                case "more" if apps:
                    app, other = random.choice(apps), random.choice(apps)
                    match random.choice(("members", "remove", "asks", "node")):
                        case "members":
                            script.ask(app, "m0", "m1", group="t0", vcore=1)
                        case "remove":
                            script.remove_app(app)
                        case "asks":
                            script.release_ask(app)
                            script.release_ask(other, f"{other}-0-0")
                        case _:
                            node = f"n{random.randrange(5)}"
                            act = random.choice(
                                (NodeInfo.DRAIN_NODE, NodeInfo.DRAIN_TO_SCHEDULABLE)
                            )
                            script.node(node, act)
                case "wait":
                    script.advance(random.choice((1, 20, 70)))
            script.schedule(random.choice((None, None, 1, 3)))
            if random.random() < 0.5:
                script.confirm()
    assert not script.scheduler.check()
    return script, attempts


@given(st.integers(min_value=0, max_value=2**32), st.sampled_from(("fair", "expected")))
@example(48, "fair")  # a gang that leaves its line decides which one gathers
@example(134, "fair")
@settings(max_examples=max(2, settings.default.max_examples // 20))
def test_gangs_in_a_line_are_decided_as_if_each_were_tried(seed: int, policy: str) -> None:
    in_lines, few = history(seed, policy)
    with patch.object(admission, "_alike", lambda app, members: app):
        each_tried, many = history(seed, policy)
    assert in_lines.log == each_tried.log
    assert few <= many


def test_q2_a_gang_of_two_sizes_starts_when_one_node_gains_what_another_lost() -> None:
    """There is room for fewer members of the second size than when it failed, but not for want of nodes."""
    script = scripted(queues("default"), options=OPTIONS)
    for name, vcore, memory in (("n0", 2, 2), ("n1", 3, 1), ("n2", 4, 6)):
        script.node(name, vcore=vcore, memory=memory)
    script.app("g", gang={"vcore": 9, "memory": 5})
    members = [f"a{at}" for at in range(4)]
    script.ask("g", *members, group="a", placeholder=True, vcore=2, memory=1)
    script.ask("g", "b", group="b", placeholder=True, vcore=1, memory=1)
    assert news(script.schedule()) == []
    launch(script, "s", "k", vcore=2, memory=3)
    for name in ("n3", "n4"):
        script.node(name, vcore=2, memory=1)
    assert len(news(script.schedule())) == 5


def test_q16_few_gangs_of_several_sizes_are_tried_at_one_instant_and_the_others_later() -> None:
    """Their attempts are dear, so a thousand of them do not hold up a release."""
    script = scripted(queues("default"), options=OPTIONS)
    script.node("n", vcore=20, memory=9)
    launch(script, "s", "k", vcore=0, memory=7)
    for name, of_a, of_b in (("g0", 1, 2), ("g1", 2, 2), ("g2", 2, 1)):
        script.app(name, gang={"vcore": of_a + of_b, "memory": 3})
        script.ask(name, f"{name}-a", group="a", placeholder=True, vcore=of_a, memory=1)
        script.ask(name, f"{name}-b", group="b", placeholder=True, vcore=of_b, memory=2)
    assert news(script.schedule()) == []
    script.release("s", "k-0")
    assert len(news(script.schedule())) == 4
    script.advance(1)
    assert len(news(script.schedule())) == 2


def test_2_2_gangs_in_one_line_follow_another_sort_policy_of_their_queue() -> None:
    """The keys of two policies cannot be compared."""
    script = scripted(CONFIG, nodes=("n0",), options=OPTIONS, vcore=4)
    names = ("g0", "g1", "g2")
    for name in names:
        tags = {"gang.placeholders": "none"}
        script.app(name, queue="root.b", gang={"vcore": 6}, tags=tags)
        script.ask(name, "k0", "k1", "k2", vcore=2)
        script.schedule()
    assert len({script.scheduler.application(name).gang.line for name in names}) == 1
    script.configure(CONFIG.replace("policy: fair", "policy: fifo"))
    script.node("n1", vcore=4)
    assert [line.split("/")[0] for line in news(script.schedule())] == ["g0"] * 3
