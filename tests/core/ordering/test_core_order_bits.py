"""Children that wait for many bits: the one found without a look at each bit is the first of all (5.5, 5.6)."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_side import tree

from quadriga.core.model.application import Application
from quadriga.core.resources.demand import EVERY_BIT, MAX_COMPARED, MAX_UNHEAPED, Level
from quadriga.sim.scripted.script import Script

BITS = MAX_COMPARED + 20
CHILDREN = 2 * MAX_UNHEAPED
EVERY = (1 << BITS) - 1
#: most of the bits, or a few
masks = st.one_of(
    st.just(EVERY),
    st.integers(0, EVERY),
    st.sets(st.integers(0, BITS - 1), max_size=3).map(lambda bits: sum(1 << at for at in bits)),
)


class Child(Level):
    """A child with a key of its own. ``waits_for`` changes what it demands."""

    def __init__(self, number: int, above: Level) -> None:
        super().__init__()
        self.above = above
        self.key = self.number = number
        self.demand_below = EVERY
        self.blocked = EVERY_BIT

    def make_rank(self) -> tuple[Any, ...]:
        self.rank = (self.key, self.number)
        return self.rank

    def waits_for(self, bits: int) -> None:
        self.unblock(bits)
        self.block(EVERY & ~bits)


#: a child, the bits that it waits for from now on (``None``: as before) and what its key grows by
changes = st.lists(
    st.tuples(st.integers(0, CHILDREN - 1), st.one_of(st.none(), masks), st.integers(-5, 5), masks),
    max_size=60,
)


@pytest.mark.interpreted
@given(changes=changes)
def test_5_5_many_bits_have_the_child_that_a_look_at_all_finds(changes: list[Any]) -> None:
    """Children come and go, their keys grow and shrink; keys that shrink are notified."""
    top = Level()
    children = [Child(number, top) for number in range(CHILDREN)]
    for each in children:
        each.waits_for(EVERY >> each.number)
    for number, bits, by, feasible in changes:
        child = children[number]
        child.key += by
        if bits is not None:
            child.rank = None
            child.waits_for(0 if by < 0 else bits)
            child.waits_for(bits)
        elif by < 0:
            child.touch()
        else:
            child.rank = None
        for mask in (feasible, EVERY):
            waiting = [each for each in children if each.demand & mask]
            first = min(waiting, key=lambda each: (each.key, each.number), default=None)
            assert top.best(mask) is first


LIMITS = "limits: [{limit: each, users: ['*'], maxresources: {vcore: 40m}}]"


@pytest.mark.parametrize("settings", ["", LIMITS])
@pytest.mark.parametrize("policy", ["fifo", "fair"])
def test_5_5_many_sizes_are_served_in_the_order_of_applications(policy: str, settings: str) -> None:
    """Applications of many users ask for many sizes, with and without limits of users. Whatever nodes have room
    for, the first application is the one that a look at all finds, and so is its first ask."""
    rng = Random(policy + settings)
    script = Script(tree(f"a, properties: {{application.sort.policy: {policy}}}, {settings}"))
    script.node("n1", vcore=150, memory=10**6)
    partition = script.scheduler.partition()
    apps: list[Application] = []
    for number in range(12):
        script.app(f"app-{number}", "root.a", user=f"user-{number % 10}")
        apps.append(partition.applications[f"app-{number}"])
    for number in range(2 * BITS):
        own = 0 if number % 2 else number // 2 % 12  # one of them has most sizes
        script.ask(f"app-{own}", f"ask-{number}", vcore=5, memory=1 + number // 2)
    leaf = partition.root.children["a"]
    for _ in range(30):
        without = rng.choice((0, 1, BITS // 2, BITS))
        bits = sum(
            shape.allocate
            for at, shape in partition.shapes.by_number.items()
            if rng.randrange(BITS) >= without
        )
        waiting = [app for app in apps if app.demand & app.passed_on & bits & leaf.demand]
        first = min(waiting, key=lambda app: app.make_rank(), default=None)
        assert leaf.best(bits) is first
        if first is not None:
            groups = [group for group in first.groups.values() if group.demand & bits]
            assert first.best(bits) is min(groups, key=lambda group: group.make_rank())
        for line in script.schedule(rng.randint(1, 4)):
            if line.startswith("new ") and rng.random() < 0.5:
                app_id, _, uuid = line.split()[1].partition("/")
                script.release(app_id, uuid)
