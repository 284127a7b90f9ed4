"""Queues that come and go under load, at random: what must hold holds after every step (6.1)."""

from __future__ import annotations

import json
import random

import pytest

from quadriga.sim.script import Script

HEAD = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
        filter: {users: ['^u']}
        parent: {name: user, create: true, parent: {name: fixed, value: root.ns}}
      - {name: provided, create: true}
    queues:
      - name: root
        submitacl: '*'
        limits:
          - {limit: each, users: ['*'], maxresources: {memory: 60}, maxapplications: 4}
        queues:
          - name: ns
            parent: true
            maxapplications: 9
"""
TEMPLATES = (
    "            childtemplate: {maxapplications: 2, resources: {max: {memory: 30}}}\n",
    "            childtemplate: {maxapplications: 9, resources: {guaranteed: {memory: 5}}}\n",
    "            childtemplate: {maxapplications: 1, properties: {application.sort.policy: fair}}\n",
)
MORE = (
    "",
    "          - {name: made}\n",
    "          - {name: made, parent: true}\n",
    "          - {name: made, queues: [{name: x, resources: {max: {memory: 20}}}, {name: y}]}\n",
)


def storm(seed: int, steps: int = 120) -> tuple[list[str], list[str]]:
    """What was heard, and the queues at the end."""
    chance = random.Random(seed)
    script = Script(HEAD + TEMPLATES[0])
    for number in range(3):
        script.node(f"n{number}", memory=40, pods=20)
    apps: list[str] = []
    for step in range(steps):
        what = chance.random()
        if what < 0.3:
            app = f"app{step:03}"
            tags = {}
            if chance.random() < 0.6:
                tags["namespace"] = chance.choice(["a", "b", "c.d"])
            if chance.random() < 0.3:
                quota = {"resources": {"memory": {"value": chance.randint(0, 40)}}}
                tags["namespace.resourcequota"] = json.dumps(quota)
                tags["namespace.resourcemaxapps"] = str(chance.randint(0, 3))
            queue = chance.choice(["root.made.x", "root.made", "root.made.y", "other", ""])
            gang = {"memory": chance.randint(1, 40)} if chance.random() < 0.2 else None
            user = chance.choice(["u1", "u2", "joe"])
            if f"accepted {app}" in script.app(app, queue, user=user, tags=tags, gang=gang):
                apps.append(app)
                if gang:
                    script.ask(app, f"{app}-p", group="g", placeholder=True, **gang)
                for key in range(chance.randint(0, 4)):
                    script.ask(app, f"{app}-{key}", memory=chance.randint(1, 15))
        elif what < 0.5:
            script.schedule(chance.randint(1, 8))
        elif what < 0.65 and apps:
            script.remove_app(apps.pop(chance.randrange(len(apps))))
        elif what < 0.75 and apps:
            script.release(chance.choice(apps))
        elif what < 0.8:
            script.confirm()
        elif what < 0.9:
            script.advance(chance.choice([1, 4, 10, 35]))
        elif what < 0.95:
            script.scheduler.clean_queues(script.now)
        else:
            try:
                script.configure(HEAD + chance.choice(TEMPLATES) + chance.choice(MORE))
            except ValueError as refused:  # a busy queue cannot change its kind
                assert "applications" in str(refused)
    for app in apps:
        script.remove_app(app)
    script.confirm()
    script.configure(HEAD + TEMPLATES[0])
    script.advance(60)
    return script.log, [queue.path for queue in script.scheduler.partition().queues()]


@pytest.mark.parametrize("seed", range(12))
def test_v1_to_v9_queues_that_come_and_go(seed: int) -> None:
    _, left = storm(seed)
    assert left == ["root", "root.ns"]


def test_v10_the_same_storm_is_heard_twice() -> None:
    assert storm(7) == storm(7)
