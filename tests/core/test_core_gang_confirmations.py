"""Confirmations of one message are carried out together, and say what single ones say (G30 to G33)."""

from __future__ import annotations

from random import Random

import pytest
from core_world import queues, scripted

from quadriga.core import Options
from quadriga.core.events.records import message_of
from quadriga.si import AllocationReleasesRequest, AllocationRequest, NodeInfo
from quadriga.sim.script import Script

QUEUES = queues("default", "fair", fair="properties: {application.sort.policy: fair}")


def replaced(seed: int, *, rounds: int | None) -> Script:
    """Gangs whose members have taken over their placeholders, as far as the scheduler decides that: equal
    ones, smaller and larger ones, with time limits, and on nodes that drain meanwhile."""
    random = Random(seed)
    nodes = tuple(f"n{at}" for at in range(6))
    options = Options(journal_size=None, gang_admission="atomic")
    script = scripted(QUEUES, nodes=nodes, options=options, vcore=20)
    sizes = {f"g{at}": random.randint(1, 8) for at in range(6)}
    for at, (name, members) in enumerate(sizes.items()):
        queue = ("root.default", "root.fair")[at % 2]
        script.app(name, queue, gang={"vcore": 2 * members})
        keys = [f"p{each}" for each in range(members)]
        script.ask(name, *keys, group="t", placeholder=True, vcore=2)
    script.schedule()
    for name, members in sizes.items():
        vcore = random.choice((2, 2, 2, 1, 3))
        keys = [f"m{each}" for each in range(members)]
        limit = random.choice((0, 0, 60_000))
        script.ask(name, *keys, group="t", vcore=vcore, timeout_ms=limit)
    if rounds is None:
        script.schedule()
    else:
        while script.schedule(rounds):
            pass
    if random.random() < 0.5:
        script.node(f"n{random.randrange(6)}", NodeInfo.DRAIN_NODE)
    random.shuffle(script.outstanding)
    return script


def confirm_together(script: Script) -> None:
    releases = AllocationReleasesRequest(allocationsToRelease=script.outstanding)
    script.outstanding = []
    script.send(AllocationRequest(rmID=script.rm_id, releases=releases))


def told(script: Script) -> tuple[list[str], list[str], list[str]]:
    """Messages, journal and event records."""
    story = [f"{r.key} {r.source} {r.trigger} {r.target}" for r in script.scheduler.journal]
    events = script.scheduler.events.batch(0, 10**9).records
    return script.log, story, [str(message_of(each)) for each in events]


@pytest.mark.parametrize("seed", range(12))
def test_confirmations_together_say_what_single_ones_say(seed: int) -> None:
    single, together = (replaced(seed, rounds=None) for _ in range(2))
    assert single.outstanding
    single.confirm()
    confirm_together(together)
    assert told(together) == told(single)


@pytest.mark.parametrize("seed", range(6))
def test_replacements_of_a_batch_say_what_single_ones_say(seed: int) -> None:
    single, batch = replaced(seed, rounds=1), replaced(seed, rounds=None)
    assert told(batch) == told(single)


def test_g30_a_confirmation_that_comes_twice_in_a_message_counts_once() -> None:
    script = replaced(0, rounds=None)
    script.outstanding *= 2
    confirm_together(script)
    members = [line for line in script.log if line.startswith("new ") and "/m" in line]
    assert len(members) == len(set(members)) > 0
