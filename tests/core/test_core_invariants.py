"""The invariants of BEHAVIOUR 6.1 after every step of arbitrary histories.

A machine plays a resource manager that does anything the protocol allows, and some things that it
does not: confirmations are lost, repeated, reordered or of the wrong type, nodes vanish, quotas
change, it starts anew. After every step the scheduler's own count of everything must agree with its
books (``scheduler.check``), and what it said must make sense by itself.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quadriga.core import Options, Scheduler
from quadriga.fsm import application as app_life
from quadriga.si import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    NodeInfo,
    RegisterResourceManagerRequest,
    TerminationType,
)
from quadriga.si.constants import TAG_FOREIGN, TAG_REQUIRED_NODE
from quadriga.sim.script import Script, resource

POLICIES = ("fifo", "fair", "stateaware")
BY_CORE = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)
KINDS = (*BY_CORE, TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE)
ENDED = app_life.ENDED


def configuration(rng: random.Random) -> str:
    """Two parents, five leaves, all settings at random; every quota holds at least a small gang."""
    limit = rng.choice(("", "resources: {max: {vcore: 12m}}", "resources: {max: {vcore: 20m}}"))
    lines = [
        "partitions:",
        "  - name: default",
        f"    nodesortpolicy: {{type: {rng.choice(('fair', 'binpacking'))}}}",
        "    preemption: {quotapreemptionenabled: true}",
        "    queues:",
        "      - name: root",
        "        submitacl: '*'",
        *_limits(rng, "        ", {"users: ['*']": "vcore: 10m", "groups: [g1]": "memory: 16"}),
        "        queues:",
        "          - name: p",
        "            parent: true",
    ]
    if limit:
        lines.append("            " + limit)
    most = rng.choice((0, 0, 3))
    if most:
        lines.append(f"            maxapplications: {most}")
    lines.append("            queues:")
    for name in ("a", "b", "c"):
        lines += _leaf(rng, name, "              ", most)
    for name in ("d", "e"):
        lines += _leaf(rng, name, "          ", 0)
    return "\n".join(lines)


def _limits(rng: random.Random, indent: str, entries: dict[str, str]) -> list[str]:
    """Some of these limits of users and groups (2.5), or of one application instead."""
    found = []
    for who, resources in entries.items():
        if rng.random() < 0.25:
            what = f"maxresources: {{{resources}}}"
            if rng.random() < 0.3:
                what = f"maxapplications: {1 if len(indent) > 8 else 4}"
            found.append(f"{indent}  - {{limit: some, {who}, {what}}}")
    return [f"{indent}limits:", *found] if found else []


def _leaf(rng: random.Random, name: str, indent: str, most: int) -> list[str]:
    inside = indent + "  "
    lines = [f"{indent}- name: {name}"]
    resources = []
    if rng.random() < 0.4:
        resources.append(f"max: {{vcore: {rng.randint(4, 12)}m}}")
    if rng.random() < 0.6:
        resources.append(f"guaranteed: {{vcore: {rng.randint(1, 3)}m}}")
    if resources:
        lines.append(f"{inside}resources: {{{', '.join(resources)}}}")
    if most or rng.random() < 0.3:
        lines.append(f"{inside}maxapplications: {rng.randint(1, most or 3)}")
    properties = {
        "application.sort.policy": rng.choice(POLICIES),
        "application.sort.priority": rng.choice(("enabled", "disabled")),
        "gang.hold": rng.choice(("true", "true", "false")),
        "gang.admission": rng.choice(("whole", "whole", "incremental")),
    }
    if rng.random() < 0.2:
        properties["gang.wait.limit"] = "60s"
    if rng.random() < 0.7:
        properties["preemption.delay"] = "1s"
    if rng.random() < 0.3:
        properties["preemption.quota.delay"] = "20s"
    if rng.random() < 0.2:
        properties["preemption.policy"] = rng.choice(("fence", "disabled"))
    if rng.random() < 0.1:
        properties["application.unschedasks.backoff"] = "2"
    memory = f"memory: {rng.randint(4, 12)}"  # within those of root
    lines += _limits(rng, inside, {"users: [ann]": memory, "groups: [g1, g2]": memory})
    lines.append(f"{inside}properties:")
    lines += [f"{inside}  {key}: '{value}'" for key, value in properties.items()]
    return lines


class Life:
    """One resource manager, its scheduler, and what it remembers of what was said.

    Every choice comes from ``rng``, so a history is its seed.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = 0
        self.epoch = 0
        self.extra = {
            "si.messageOrder": rng.choice(("design", "k8shim")),
            "si.stateNames": rng.choice(("quadriga", "yunikorn")),
        }
        self.script = Script(configuration(rng), extra=self.extra)
        self._forget()
        for _ in range(rng.randint(1, 4)):
            self.node()
        for _ in range(2):
            self.app()

    def _forget(self) -> None:
        self.heard = len(self.script.messages)
        self.nodes: list[str] = []
        self.shrunk: set[str] = set()
        self.apps: list[str] = []
        #: gangs' task groups: application, group, size of a member
        self.groups: dict[str, list[tuple[str, int]]] = {}
        self.keys: list[tuple[str, str]] = []
        #: (application, UUID) ever announced, and those whose end was said or confirmed
        self.announced: set[tuple[str, str]] = set()
        self.pending: list[AllocationRelease] = []
        self.confirmed: list[AllocationRelease] = []

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def listen(self) -> None:
        """What was said makes sense: nothing is announced twice, nothing unknown is released."""
        for rm_id, message in self.script.messages[self.heard :]:
            assert rm_id == "rm"
            if not isinstance(message, AllocationResponse):
                continue
            for new in message.new:
                identity = (new.applicationID, new.UUID)
                assert identity not in self.announced, f"{identity} announced twice"
                self.announced.add(identity)
            for release in message.released:
                if not release.applicationID:  # of a foreign one, as it was asked for
                    continue
                assert (release.applicationID, release.UUID) in self.announced
                if release.terminationType in BY_CORE:
                    self.pending.append(release)
        self.heard = len(self.script.messages)

    # -- steps -------------------------------------------------------------------------------------

    def node(self) -> None:
        name = self.name("n")
        self.nodes.append(name)
        action = self.rng.choice((NodeInfo.CREATE,) * 9 + (NodeInfo.CREATE_DRAIN,))
        self.script.node(name, action, vcore=self.rng.randint(2, 8), memory=self.rng.randint(4, 16))

    def recovered_node(self) -> None:
        """A node that brings allocations, as after a restart of the scheduler."""
        rng, name = self.rng, self.name("n")
        existing = []
        for app in rng.sample(self.apps, min(len(self.apps), 2)):
            group, size = rng.choice(self.groups.get(app) or [("", 1)])
            key = self.name("r")
            existing.append(
                Allocation(
                    allocationKey=key,
                    UUID=f"{key}-0",
                    applicationID=app,
                    partitionName="default",
                    resourcePerAlloc=resource({"vcore": size}),
                    taskGroupName=group,
                    placeholder=rng.random() < 0.5,
                    nodeID=name,
                )
            )
        heard = self.script.node(name, vcore=6, memory=6, existing=existing)
        if f"accepted node {name}" in heard:
            self.nodes.append(name)
            self.shrunk.add(name)  # recovered without a check (2.11)
            self.announced.update((a.applicationID, a.UUID) for a in existing)

    def foreign(self) -> None:
        """What others run on the nodes comes, changes, moves and goes (X19)."""
        rng = self.rng
        key = f"f{rng.randint(1, 4)}"
        if rng.random() < 0.3 or not self.nodes:
            gone = AllocationRelease(allocationKey=key, partitionName="default")
            releases = AllocationReleasesRequest(allocationsToRelease=[gone])
            self.script.send(AllocationRequest(rmID="rm", releases=releases))
            return
        name = rng.choice(self.nodes)
        self.shrunk.add(name)
        theirs = Allocation(
            allocationKey=key,
            nodeID=name,
            allocationTags={TAG_FOREIGN: "default"},
            resourcePerAlloc=resource({"vcore": rng.randint(0, 3), "disk": 1}),
        )
        self.script.send(AllocationRequest(rmID="rm", allocations=[theirs]))

    def report(self) -> None:
        """A known allocation is of another size, or a pending ask turns out to run (2.20)."""
        rng = self.rng
        apps = self.script.scheduler.partition().applications
        if not self.nodes or not apps:
            return
        app = apps[rng.choice(list(apps))]
        held = [*app.allocations.values(), *app.placeholders.values()]
        if app.asks and rng.random() < 0.5:
            ask = app.asks[rng.choice(list(app.asks))]
            uuid, node = self.name(f"{ask.ask_key}-90"), rng.choice(self.nodes)
        elif held:
            known = rng.choice(held)
            ask, uuid, node = known.ask, known.uuid, known.node.node_id
        else:
            return
        self.shrunk.add(node)
        ours = Allocation(
            allocationKey=ask.ask_key,
            UUID=uuid,
            applicationID=app.app_id,
            nodeID=node,
            placeholder=ask.placeholder,
            taskGroupName=ask.task_group,
            resourcePerAlloc=resource({"vcore": rng.randint(1, 4)}),
        )
        self.script.send(AllocationRequest(rmID="rm", allocations=[ours]))

    def lose_the_connection(self) -> None:
        """Nothing is scheduled until it is back (I6)."""
        script = self.script
        script._heard(script.scheduler.disconnect("rm", script.now))
        if self.rng.random() < 0.5:
            script.advance(self.rng.choice((1, 20)))
        assert script.schedule() == []
        script._heard(script.scheduler.reconnect("rm", script.now))

    def change_node(self) -> None:
        if not self.nodes:
            return
        rng, name = self.rng, self.rng.choice(self.nodes)
        what = rng.randrange(6)
        if what == 0:
            self.script.node(name, NodeInfo.DRAIN_NODE)
        elif what in (1, 2):
            self.script.node(name, NodeInfo.DRAIN_TO_SCHEDULABLE)
        elif what == 3:
            self.shrunk.add(name)
            self.script.node(name, NodeInfo.UPDATE, vcore=rng.randint(1, 10), memory=8)
        elif what == 4:
            self.shrunk.add(name)
            self.script.node(name, NodeInfo.UPDATE, occupied={"vcore": rng.randint(0, 3)})
        else:
            self.nodes.remove(name)
            self.script.node(name, NodeInfo.DECOMISSION)

    def app(self) -> None:
        rng, name = self.rng, self.name("app")
        queue = rng.choice(("root.p.a", "root.p.b", "root.p.c", "root.d", "root.e"))
        gang = None
        if rng.random() < 0.6:
            groups = [(f"g{at}", rng.randint(1, 2)) for at in range(rng.randint(1, 2))]
            members = [rng.randint(1, 3) for _ in groups]
            gang = {"vcore": sum(n * size for n, (_, size) in zip(members, groups, strict=True))}
        heard = self.script.app(
            name,
            queue,
            user=rng.choice(("ann", "bob")),
            groups=rng.choice(((), ("g1",), ("g2", "g1"))),
            gang=gang,
            style=rng.choice(("Hard", "Soft")),
            timeout_ms=rng.choice((0, 20_000, 60_000, -1)),
        )
        if f"accepted {name}" not in heard:
            return
        self.apps.append(name)
        if gang:
            self.groups[name] = groups
            for (group, size), count in zip(groups, members, strict=True):
                if rng.random() < 0.9:
                    keys = [self.name("ph") for _ in range(count)]
                    self.keys += [(name, key) for key in keys]
                    self.script.ask(name, *keys, group=group, placeholder=True, vcore=size)

    def ask(self) -> None:
        if not self.apps:
            return
        rng, app = self.rng, self.rng.choice(self.apps)
        known = [key for name, key in self.keys if name == app]
        key = rng.choice(known) if known and rng.random() < 0.2 else self.name("k")
        group, size = "", rng.randint(1, 3)
        if app in self.groups and rng.random() < 0.7:
            group, size = rng.choice(self.groups[app])
            size += rng.choice((0, 0, 0, -1, 1))
        self.keys.append((app, key))
        self.script.ask(
            app,
            key,
            group=group,
            placeholder=rng.random() < 0.15,
            repeat=rng.choice((1, 1, 2, 3)),
            priority=rng.choice((0, 0, 5, -5)),
            timeout_ms=rng.choice((0, 0, 0, 30_000)),
            originator=rng.random() < 0.1,
            preempt=rng.choice((None, (True, True), (True, True), (False, True), (False, False))),
            tags={TAG_REQUIRED_NODE: rng.choice(self.nodes or ["n1"])}
            if rng.random() < 0.08
            else None,
            **rng.choice(({"vcore": size}, {"vcore": size, "memory": 1}, {"memory": size + 1})),
        )

    def release_ask(self) -> None:
        if self.keys:
            app, key = self.rng.choice(self.keys)
            self.script.release_ask(app, self.rng.choice((key, key, key, "")))

    def release(self) -> None:
        """The pods of some allocation end, or the resource manager says something odd about it."""
        if self.announced:
            app, uuid = self.rng.choice(sorted(self.announced))
            kind = self.rng.choice((TerminationType.STOPPED_BY_RM,) * 6 + KINDS)
            self.script.release(app, self.rng.choice((uuid,) * 9 + ("",)), kind)

    def confirm(self) -> None:
        """In any order."""
        for _ in range(self.rng.randint(1, 4)):
            if self.pending:
                release = self.pending.pop(self.rng.randrange(len(self.pending)))
                self.confirmed.append(release)
                self._confirm(release, release.terminationType)

    def confirm_again(self) -> None:
        if self.confirmed:
            release = self.rng.choice(self.confirmed)
            self._confirm(release, release.terminationType)

    def confirm_wrongly(self) -> None:
        if self.pending:
            release = self.pending.pop(self.rng.randrange(len(self.pending)))
            self._confirm(release, self.rng.choice(KINDS))

    def lose_a_confirmation(self) -> None:
        if self.pending:
            self.pending.pop(self.rng.randrange(len(self.pending)))

    def _confirm(self, release: AllocationRelease, kind: Any) -> None:
        self.script.release(release.applicationID, release.UUID, kind)
        self.listen()

    def remove_app(self) -> None:
        if self.apps:
            self.script.remove_app(self.apps.pop(self.rng.randrange(len(self.apps))))

    def schedule(self) -> None:
        self.script.schedule(self.rng.choice((1, 2, 5, None, None)))

    def pass_time(self) -> None:
        self.script.advance(self.rng.choice((0.5, 2, 5, 30, 65, 700)))

    def configure(self) -> None:
        self.script.configure(configuration(self.rng))

    def start_anew(self) -> None:
        """I7: the resource manager registers again and everything of it is forgotten."""
        request = RegisterResourceManagerRequest(
            rmID="rm", config=configuration(self.rng), extraConfig=self.extra
        )
        self.script.send(request)
        self._forget()
        self.node()

    STEPS: tuple[tuple[str, int], ...] = (
        ("schedule", 10),
        ("ask", 14),
        ("confirm", 7),
        ("release", 4),
        ("pass_time", 4),
        ("app", 4),
        ("change_node", 2),
        ("node", 2),
        ("release_ask", 2),
        ("confirm_again", 1),
        ("confirm_wrongly", 1),
        ("lose_a_confirmation", 1),
        ("recovered_node", 1),
        ("remove_app", 1),
        ("foreign", 1),
        ("report", 1),
        ("lose_the_connection", 1),
        ("configure", 1),
    )

    def step(self) -> None:
        """Any of them, the usual ones more often."""
        names = [name for name, _ in self.STEPS]
        name = self.rng.choices(names, [weight for _, weight in self.STEPS])[0]
        getattr(self, name)()
        if self.rng.random() < 0.001:
            self.start_anew()
        self.look()

    # -- what holds --------------------------------------------------------------------------------

    def look(self) -> None:
        """What ``scheduler.check`` (which the script calls) does not say."""
        self.listen()
        partition = self.script.scheduler.partition()
        for node in partition.nodes.values():
            if node.node_id not in self.shrunk:
                assert min(node.available) >= 0, f"V2: {node.node_id} is overcommitted"
        nodes = partition.nodes.values()
        kept = {kept for node in nodes for kept in (node.reservation, *node.also_reserved)} - {None}
        assert kept == set(partition.reservations), "V3: nodes and reservations differ"
        assert kept >= {*partition.woken, *partition.stalled}, "V3: a reservation outlived itself"
        for each in partition.reservations:
            assert each in each.ask.app.reservations
            assert each.ask.ask_key in each.ask.app.asks
        for app in partition.ended:
            assert app.state in ENDED
            assert not (app.asks or app.allocations or app.placeholders or app.reservations)
        for name, app in partition.applications.items():
            assert app.state not in ENDED, f"{name} is {app.state} and not forgotten"

    def come_to_an_end(self) -> None:
        """V7: when all is confirmed and every timer has run, nobody is stuck on the way out."""
        script = self.script
        for _ in range(60):
            script.advance(700)
            self.listen()
            while self.pending:
                self.confirm()
            script.schedule()
            self.look()
        stuck = {
            app.app_id: app.state
            for app in script.scheduler.partition().applications.values()
            if app.state in (app_life.RESUMING, app_life.KILLING, app_life.WAITING)
        }
        assert not stuck


# -- the machine -----------------------------------------------------------------------------------


class Anything(RuleBasedStateMachine):
    """Hypothesis picks the steps, so that a failure shrinks to a few of them."""

    life: Life

    @initialize(rng=st.randoms(use_true_random=False))
    def begin(self, rng: random.Random) -> None:
        self.life = Life(rng)

    @invariant()
    def nothing_is_wrong(self) -> None:
        if hasattr(self, "life"):
            self.life.look()


def _as_rule(name: str) -> Callable[[Anything], None]:
    def step(self: Anything) -> None:
        getattr(self.life, name)()

    step.__name__ = name
    return step


for _name in [*(name for name, _ in Life.STEPS), "start_anew"]:
    setattr(Anything, _name, rule()(_as_rule(_name)))

TestAnything = Anything.TestCase
TestAnything.settings = settings(
    settings.default, stateful_step_count=40, max_examples=min(settings.default.max_examples, 60)
)


@pytest.mark.slow
class TestAnythingLonger(Anything.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(
        settings.default,
        stateful_step_count=100,
        suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow],
    )


# -- by name ---------------------------------------------------------------------------------------


def history(seed: int, steps: int = 150) -> Life:
    life = Life(random.Random(seed))
    for _ in range(steps):
        life.step()
    return life


@pytest.mark.parametrize("seed", range(12))
def test_v1_v2_v3_v4_v5_v6_v8_v9_hold_after_every_step(seed: int) -> None:
    """``Script`` asks ``scheduler.check`` after every message, ``Life`` looks at the rest."""
    life = history(seed)
    assert sum(line.startswith("new ") for line in life.script.log) >= 5


@pytest.mark.parametrize("seed", range(100, 112))
def test_v7_nobody_is_stuck_on_the_way_out(seed: int) -> None:
    life = history(seed, 80)
    life.come_to_an_end()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 260))
def test_v7_nobody_is_stuck_after_a_long_history(seed: int) -> None:
    life = history(seed, 400)
    life.come_to_an_end()


def said(seed: int, steps: int = 120) -> str:
    """A digest of every byte that the scheduler said in a history, with all stories."""
    life = history(seed, steps)
    digest = hashlib.sha256()
    for rm_id, message in life.script.messages:
        digest.update(rm_id.encode() + type(message).__name__.encode())
        digest.update(message.SerializeToString(deterministic=True))
    return digest.hexdigest()


def test_v10_same_input_same_output() -> None:
    assert said(7) == said(7)
    assert said(7) != said(8)


_SAY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("invariants", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["invariants"] = module
spec.loader.exec_module(module)
print(" ".join(module.said(seed) for seed in (7, 8, 9)))
"""


def test_v10_same_input_same_output_whatever_the_hash_seed() -> None:
    """Nothing depends on the order of a set or of a hash."""
    heard = set()
    for hash_seed in ("0", "1", "4242"):
        result = subprocess.run(
            [sys.executable, "-c", _SAY, __file__],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        heard.add(result.stdout)
    assert heard == {" ".join(said(seed) for seed in (7, 8, 9)) + "\n"}


def test_v10_a_scheduler_has_no_clock_of_its_own() -> None:
    scheduler = Scheduler(Options())
    assert scheduler.now == 0
    assert scheduler.next_deadline() is None
