"""With limits of users and groups, the same decisions as a scheduler that is slow and plainly right.

The reference of ``test_core_order_reference`` learns section 2.5: who counts where, what is left of
each limit, whose turn it is, all from scratch for every decision. Random trees carry random limits
(named, wildcards, nested), random users with random groups submit, and now and then the limits
change while everything goes on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .test_core_order_reference import (
    App,
    Both,
    Node,
    Queue,
    Reference,
    Resources,
    _walk,
    amounts,
    total,
)
from .tree_side import in_units

USERS = ("ann", "bob", "cem", "dot")
GROUPS = ("g1", "g2", "g3")


@dataclass(eq=False)
class Grant:
    """What one entry of ``limits`` grants."""

    users: list[str]
    groups: list[str]
    resources: Resources
    applications: int


class LimitedReference(Reference):
    def __init__(self, root: Queue, policy: str, weights: dict[str, int]) -> None:
        super().__init__(root, policy, weights)
        self.grants: dict[Queue, list[Grant]] = {}
        self.user: dict[App, str] = {}
        self.groups: dict[App, list[str]] = {}
        self.bound: dict[App, str] = {}
        self.counted: set[App] = set()

    def limits_in(self, queue: Queue) -> list[dict[str, Any]]:
        return [
            {
                "limit": str(number),
                "users": grant.users,
                "groups": grant.groups,
                "maxresources": in_units(grant.resources),
                "maxapplications": grant.applications,
            }
            for number, grant in enumerate(self.grants.get(queue, ()))
        ]

    # -- 2.5 ---------------------------------------------------------------------------------------

    def group_of(self, app: App) -> str:
        if app in self.bound:  # for life, once it has held anything
            return self.bound[app]
        for queue in app.queue.lineage:
            named = [name for grant in self.grants.get(queue, ()) for name in grant.groups]
            for name in named:
                if name in self.groups[app]:
                    return name
            if "*" in named:
                return "*"
        return ""

    def limits_of(self, app: App) -> list[tuple[Grant, list[App]]]:
        """Every limit that applies, with all applications that share it."""
        found = []
        for queue in app.queue.lineage:
            users = {name: g for g in self.grants.get(queue, ()) for name in g.users}
            grant = users.get(self.user[app]) or users.get("*")
            if grant is not None:
                own = [a for a in queue.all_apps if self.user[a] == self.user[app]]
                found.append((grant, own))
            groups = {name: g for g in self.grants.get(queue, ()) for name in g.groups}
            group = self.group_of(app)
            if group in groups:
                own = [a for a in queue.all_apps if self.group_of(a) == group]
                found.append((groups[group], own))
        return found

    def within_limits(self, app: App, vector: Resources) -> bool:
        for grant, own in self.limits_of(app):
            used = total(each.allocated for each in own)
            for name, limit in grant.resources.items():
                if vector.get(name) and used.get(name, 0) + vector[name] > limit:
                    return False
        return True

    def may_count(self, app: App) -> bool:
        if app in self.counted:
            return True
        return all(
            not grant.applications
            or sum(each in self.counted for each in own) + 1 <= grant.applications
            for grant, own in self.limits_of(app)
        )

    # -- 5.3, 5.6 ----------------------------------------------------------------------------------

    def served(self, leaf: Queue) -> list[App]:
        return [a for a in super().served(leaf) if a.state != "Accepted" or self.may_count(a)]

    def _first_of_leaf(self, leaf: Queue) -> Any:
        for app in sorted(self.served(leaf), key=self.place_of_app):
            for ask in sorted(app.asks.values(), key=lambda a: (-a.priority, a.seq)):
                if self.within_limits(app, ask.vector) and self.within_quota(leaf, ask.vector):
                    node = self.node_for(ask.vector)
                    if node is not None:
                        return app, ask, node
        return None

    def first(self, queue: Queue) -> Any:
        found = super().first(queue)
        if found is not None and queue is self.root:
            app: App = found[0]
            self.bound.setdefault(app, self.group_of(app))
            self.counted.add(app)
        return found

    def _rest(self, app: App) -> None:
        super()._rest(app)
        if app.state == "Waiting":
            self.counted.discard(app)


# -- random limits ---------------------------------------------------------------------------------


def random_grants(rng: random.Random, root: Queue) -> dict[Queue, list[Grant]]:
    """No entry exceeds that of the same name, or else of the wildcard, in a queue above."""
    found: dict[Queue, list[Grant]] = {}
    for queue in _walk(root):  # parents first
        if rng.random() < 0.45:
            entries = [_random_grant(rng, queue, names, found) for names in _random_names(rng)]
            found[queue] = [entry for entry in entries if entry.resources or entry.applications]
            named = [name for entry in found[queue] for name in entry.groups]
            if named == ["*"]:  # forbidden (2.2)
                for entry in found[queue]:
                    entry.groups = []
            found[queue] = [entry for entry in found[queue] if entry.users or entry.groups]
    return found


def _random_names(rng: random.Random) -> list[tuple[list[str], list[str]]]:
    users = rng.sample(USERS, rng.choice((0, 0, 1, 2)))
    groups = rng.sample(GROUPS, rng.choice((0, 0, 1, 2)))
    names = [([user], []) for user in users] + [([], [group]) for group in groups]
    if groups and rng.random() < 0.5:
        names.append(([], ["*"]))
    if rng.random() < 0.6:
        names.append((["*"], []))
    if len(users) == 2 and rng.random() < 0.5:  # one entry for two: each gets as much
        names = [(users, []), *names[2:]]
    return names


def _random_grant(
    rng: random.Random,
    queue: Queue,
    names: tuple[list[str], list[str]],
    above: dict[Queue, list[Grant]],
) -> Grant:
    users, groups = names
    resources: Resources = amounts(rng, 7) if rng.random() < 0.8 else {}
    applications = rng.choice((0, 0, 1, 2, 3))
    ceilings = [queue.max or {}]
    counts = [queue.max_applications]
    for each in queue.lineage[1:]:
        for kind, name in [*(("users", u) for u in users), *(("groups", g) for g in groups)]:
            known = {n: g for g in above.get(each, ()) for n in getattr(g, kind)}
            bound = known.get(name) or known.get("*")
            if bound is not None:
                ceilings.append(bound.resources)
                counts.append(bound.applications)
    for ceiling in ceilings:
        resources = {n: min(v, ceiling.get(n, v)) for n, v in resources.items()}
    if not any(resources.values()):
        resources = {}
    for count in counts:
        applications = min(applications, count) if count else applications
    return Grant(users, groups, resources, applications)


class BothLimited(Both):
    """Both are told of users, groups and limits as well."""

    reference: LimitedReference

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        plain = self.reference
        self.reference = LimitedReference(plain.root, plain.policy, plain.weights)
        for app in plain.apps.values():
            app.queue.apps.remove(app)
        self.reference.grants = random_grants(rng, plain.root)
        self.script = self.new_script()
        for node in plain.nodes.values():
            self.reference.nodes[node.name] = Node(node.name, node.capacity)
            self.script.node(node.name, **node.capacity)
        for _ in range(rng.randint(2, 8)):
            self.new_app()

    def new_app(self) -> None:
        if not isinstance(self.reference, LimitedReference):
            super().new_app()
            return
        rng = self.rng
        name, queue = self.name("app"), rng.choice(self.leaves)
        user, groups = rng.choice(USERS), rng.sample(GROUPS, rng.randint(0, 3))
        self.reference.add_app(name, queue)
        app = self.reference.apps[name]
        self.reference.user[app], self.reference.groups[app] = user, groups
        path = ".".join(each.name for each in reversed(queue.lineage))
        assert self.script.app(name, path, user=user, groups=groups) == [f"accepted {name}"]

    def new_limits(self) -> None:
        self.reference.grants = random_grants(self.rng, self.reference.root)
        self.script.configure(self.reference.config())

    def run(self, steps: int) -> None:
        for _ in range(max(1, steps // 30)):
            super().run(30)
            if self.rng.random() < 0.3:
                self.new_limits()
                self.schedule()


@pytest.mark.parametrize(
    ("seed", "steps"), [(n, 60) for n in range(60)] + [(n, 400) for n in range(2000, 2012)]
)
def test_limits_the_same_decisions_as_the_reference(seed: int, steps: int) -> None:
    BothLimited(random.Random(seed)).run(steps)


@settings(max_examples=max(5, settings.default.max_examples // 5))  # each is dear
@given(st.randoms(use_true_random=False))
def test_limits_the_same_decisions_as_the_reference_shrunk(rng: random.Random) -> None:
    BothLimited(rng).run(30)
