"""What an explanation says first, whom it names, and what it does not blame."""

from random import Random
from typing import Any

import pytest
from core_steps import later, on_nodes, run, submit
from core_world import queues
from everything_life import Life
from preemption_side import ask as ask_in
from preemption_side import filled
from remedy_worlds import GIB, World, claims_of, count_claims

from quadriga.core import Check, Explanation, Options
from quadriga.core.explain.rivals import rivals_in_steps
from quadriga.core.runtime.stepwise import finish
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import ONE_QUEUE, Script

REQUIRED = "yunikorn.apache.org/requiredNode"

#: any number of nodes may be reserved, also for equal asks
UNBOUNDED = Options(journal_size=None, bound_reservations=False)


def explained(script: Script, app: str, key: str) -> Explanation:
    found: Explanation = script.scheduler.explain(app, key)
    return found


def about(found: Explanation, *names: str) -> list[Check]:
    return [check for check in found.checks if check.about in names]


def reserved_nodes(count: int = 3) -> Script:
    """Nodes n1, n2, ..., each with 800 left and reserved for an ask of 2000 (a, b, ... of ``holder``)."""
    script = Script(options=UNBOUNDED)
    for number in range(1, count + 1):
        script.node(f"n{number}", vcore=2000)
    run(script, "other", *"rstuxyz"[:count], vcore=1200)
    submit(script, "holder", *"abcdefg"[:count], vcore=2000)
    later(script, 3)
    script.app("late")
    return script


def late(vcore: int, count: int = 3) -> tuple[Explanation, Check]:
    """What is said of an ask of this size that comes later, and what it fails of the nodes."""
    script = reserved_nodes(count)
    script.ask("late", "w", vcore=vcore)
    found = explained(script, "late", "w")
    (check,) = [each for each in about(found, "nodes") if not each.passed]
    return found, check


def test_explain_checks_fit_before_reservation() -> None:
    found, check = late(900)
    assert check.text == (
        "3 nodes: not enough free CPU; node n1 comes nearest and lacks 100m CPU, "
        "and is reserved for ask a of holder"
    )
    assert (check.remedy, check.node) == ("add a node with 900m CPU", "n1")
    assert not any("have room" in text for text in found.reasons)


def test_explain_names_who_holds_the_nodes_with_room() -> None:
    found, check = late(800)
    assert check.text == (
        "3 nodes have room but are reserved: n1 for ask a of holder, n2 for ask b of holder, "
        "n3 for ask c of holder"
    )
    named = [(each.node, each.application, each.ask) for each in check.holders]
    assert named == [("n1", "holder", "a"), ("n2", "holder", "b"), ("n3", "holder", "c")]
    assert check.held == 3
    assert found.verdict == "Each node with room for it is reserved for another ask."
    _, check = late(800, count=7)  # five are named, and the others counted
    assert check.text.startswith("7 nodes have room but are reserved: n1 for ask a of holder, ")
    assert check.text.endswith("n5 for ask e of holder and 2 more")
    assert (len(check.holders), check.held) == (5, 7)
    # and which node is reserved for the ask itself
    (check,) = about(explained(reserved_nodes(), "holder", "b"), "reservation")
    assert (check.passed, check.text, check.node) == (True, "node n2 is reserved for it", "n2")
    assert not check.holders


def test_explain_a_required_node_that_is_not_there_or_too_small() -> None:
    script = on_nodes(small=500, large=9000)
    submit(script, "app", "a", tags={REQUIRED: "small"}, vcore=1000)
    script.ask("app", "b", tags={REQUIRED: "gone"}, vcore=1000)
    too_small, missing = explained(script, "app", "a"), explained(script, "app", "b")
    assert too_small.verdict == "Node small, which it requires, is too small for it."
    assert too_small.reasons[0] == ("required node small is too small for 1 CPU: it has 500m CPU")
    assert missing.verdict == "Node gone, which it requires, is not there."
    assert missing.hopeless


def test_5_7_the_named_node_is_the_one_of_a_decision() -> None:
    """Before there was any, and after."""
    script = on_nodes(ONE_QUEUE + "    nodesortpolicy: {type: binpacking}\n", n1=8000)
    script.node("n2", vcore=8000, occupied={"vcore": 4000})
    for key in ("k", "l"):
        submit(script, f"app-{key}", key, vcore=1000)
        found = explained(script, f"app-{key}", key)
        assert [(check.passed, check.node) for check in about(found, "nodes")] == [(True, "n2")]
        assert found.verdict == "Nothing is in its way: it gets its place in the next round."
        assert script.schedule()[-1] == f"new app-{key}/{key}-0 on n2"


def test_explain_x16_counts_the_gangs_that_it_does_not_name() -> None:
    script = on_nodes(queues("q", q="resources: {max: {vcore: 4}}"), n1=9_000)
    asked: Any = {"queue": "root.q", "group": "g", "placeholder": True, "vcore": 300}
    for each in "abcdefg":
        run(script, each, "p", gang={"vcore": 500}, **asked)
    submit(script, "big", "p", gang={"vcore": 600}, **asked)
    (gate,) = about(explained(script, "big", "p"), "gang")
    assert gate.text.endswith("200m CPU kept for the gang e, 400m CPU kept for 2 other gangs")
    assert (len(gate.holders), gate.held) == (5, 7)


def test_5_9_explain_does_not_list_preemption_where_nothing_is_guaranteed() -> None:
    """And draining nodes come last."""
    script = on_nodes(n1=1000)
    script.node("n2", NodeInfo.CREATE_DRAIN, vcore=1000)
    run(script, "app", "a", vcore=1000)
    script.ask("app", "b", preempt=(True, True), vcore=1000)
    found = explained(script, "app", "b")
    (check,) = about(found, "preemption")
    assert check.passed
    assert check.text == "nothing is guaranteed to root.default, so it may not preempt"
    assert {each.about for each in found.checks if not each.passed} == {"nodes"}
    assert [each.text for each in about(found, "nodes")] == [
        "1 node: not enough free CPU; node n1 comes nearest and lacks 1 CPU",
        "1 node: draining",
    ]


def test_explain_says_that_others_have_been_preempted_for_it() -> None:
    script = filled()
    ask_in(script, "high", "h", vcore=1)
    later(script, 1)
    assert explained(script, "high", "h").verdict == (
        "Others have been preempted for it: it gets its place when they are gone."
    )


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize(("apps", "asks"), [(12, 1), (60, 1), (12, 20)])
def test_q16_asks_that_are_alike_are_looked_at_once(apps: int, asks: int, refused: bool) -> None:
    """Counted work: three users and two sizes are six kinds of asks, however many there are."""
    limits = "limits: [{limit: each, users: ['*'], maxresources: {vcore: 100}}]"
    script = Script(queues("a", "b", a=limits, b=limits))
    script.node("n1", vcore=100_000 if refused else 500)
    if refused:
        script.scheduler.set_predicate("rm", lambda *_: "no")
    for number in range(apps):
        script.app(f"app-{number}", f"root.{'ab'[number % 2]}", user=f"user-{number % 3}")
        keys = [f"k{each}" for each in range(asks)]
        script.ask(f"app-{number}", *keys, vcore=1000 + number // 6 % 2)
    script.schedule()
    found = finish(rivals_in_steps(script.scheduler.application("app-0").asks["k0"]))
    assert len(found.all) == (apps - (asks == 1) if refused else 6)
    number = apps * asks - 1 if refused else apps // 2 * asks
    assert found.text == f"{number} other asks that may be served before it"


@pytest.mark.parametrize(
    ("first", "worlds"),
    [(first, 4) for first in (0, 4, 8)]
    + [pytest.param(first, 50, marks=pytest.mark.slow) for first in range(1000, 1100, 50)],
)
def test_q15_what_is_said_to_help_helps(first: int, worlds: int) -> None:
    """Each slow part has more than a hundred remedies of single asks and of gangs."""
    counts, false = count_claims(range(first, first + worlds))
    assert not false, "\n".join(false)
    alone = counts["single alone", True] + counts["gang alone", True]
    assert sum(counts.values()) > 20 if worlds == 4 else alone > 50


class LargeAskWithoutSlot(World):
    """An old ask that, once it has a slot, reserves the node on which a member of the gang would find room."""

    def _configuration(self) -> dict[str, Any]:
        x = {"name": "x", "maxapplications": 1, "resources": {"max": {"vcore": "3000m"}}}
        a = {"name": "a", "maxapplications": 1, "queues": [x, {"name": "y", "maxapplications": 1}]}
        c = {"name": "c", "resources": {"max": {"memory": str(2 * GIB)}}}
        root = {"name": "root", "submitacl": "*", "queues": [a, c]}
        partition = {"name": "default", "queues": [root], "nodesortpolicy": {"type": "fair"}}
        return {"partitions": [partition]}

    def _app(self, app: str, leaf: str, *asks: dict[str, int], gang: bool = False) -> None:
        whole = {"vcore": sum(each["vcore"] for each in asks)} if gang else {}
        self.do("app", app, leaf, user=app, gang=whole)
        more = {"group": "g", "placeholder": True} if gang else {}
        for number, ask in enumerate(asks):
            self.do("ask", app, f"k{number}", **more, **ask)

    def _grow(self) -> None:
        for number, (cores, memory) in enumerate([(1, 5), (3, 6), (4, 1), (2, 1)]):
            self.do("node", f"n{number}", vcore=cores * 1000, memory=memory * GIB)
        one = {"vcore": 1000}
        self._app("holder", "root.a.y", one, {**one, "memory": GIB})
        self.do("schedule")
        self._app("large", "root.a.x", {"vcore": 3000, "memory": 2 * GIB, "priority": 5})
        self._app("other", "root.a.y", *[{**one, "memory": GIB // 2}] * 2, gang=True)
        self._app("small", "root.a.x", {"vcore": 2000}, {**one, "memory": GIB // 2, "priority": 1})
        self._app("free", "root.c", {"vcore": 3000, "memory": 2 * GIB, "priority": 5})
        self.do("ask", "free", "k1", vcore=500, memory=2 * GIB)
        self._app("gang", "root.a.y", one, one, gang=True)
        self.do("schedule")
        self._app("late", "root.a.y", {**one, "priority": 5})
        self.do("advance", 5)
        self.do("schedule")


def test_q15_a_rival_that_only_reserves_a_node_counts() -> None:
    claims = claims_of(LargeAskWithoutSlot(0))
    assert {app for _, app, *_ in claims} >= {"large", "gang"}
    assert [claim for claim in claims if not claim[-1]] == []


@pytest.mark.parametrize("seed", range(6))
def test_nodes_are_explained_as_if_they_were_looked_at_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    script = Script(options=UNBOUNDED)
    for number in range(12):
        sizes = {"vcore": rng.choice((1000, 2000, 3000)), "memory": rng.choice((4, 8))}
        action = NodeInfo.CREATE_DRAIN if rng.random() < 0.2 else NodeInfo.CREATE
        script.node(f"n{number}", action, **sizes)
    for app in "abc":
        script.app(app)
        for number in range(12):
            size = {"vcore": rng.choice((300, 900, 1900, 2900)), "memory": rng.randint(1, 6)}
            script.ask(app, f"{app}-{number}", **size)
    script.schedule()
    later(script, 3)
    waiting = [ask for a in script.scheduler.partition().applications.values() for ask in a.asks]
    assert waiting
    found = [explained(script, key[0], key).checks for key in waiting]
    monkeypatch.setattr("quadriga.core.explain.nodes.MOST_TYPES", -1)
    assert found == [explained(script, key[0], key).checks for key in waiting]


@pytest.mark.parametrize("seed", range(4))
def test_decisions_may_be_made_between_the_steps_of_an_explanation(seed: int) -> None:
    rng, life, told = Random(seed), Life(Random(seed), curious=False), 0
    core = life.scheduler
    for _ in range(25):
        life.step()
        asks = [
            a
            for _, p in life.partitions()
            for app in p.applications.values()
            for a in app.asks.values()
        ]
        if not asks:
            continue
        ask = rng.choice(asks)
        home = ask.app.partition
        steps = core.explain_in_steps(ask.app.app_id, ask.ask_key, home.name, home.rm.rm_id)
        try:
            for _ in range(rng.randrange(30)):
                next(steps)
            life.step()
            found = finish(steps)
        except StopIteration:  # it had fewer steps
            continue
        except KeyError:
            assert ask.app.asks.get(ask.ask_key) is not ask
            continue
        told += 1
        assert found.key == ask.key
        assert found.verdict
    assert told
    other = Life(Random(seed), curious=False)
    while other.steps < life.steps:
        other.step()
    assert other.digest.digest() == life.digest.digest()
