"""What waits longest for a quota or a limit has a planned start there (Q12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from core_world import news, queues, scripted

from quadriga.core import Options
from quadriga.sim.scripted.script import Script

HOUR = 3600


class World:
    """Two nodes of 50 vcores, a queue or user that may use 10, and a job of one vcore each minute for ten minutes."""

    def __init__(self, bound: str, told: int | None = None, **properties: str) -> None:
        both = {"gang.gather.after": "1h", **properties}
        words = ", ".join(f"{name}: '{value}'" for name, value in both.items())
        config = queues("a", "b", root=f"properties: {{{words}}}", a=bound)
        options = Options(journal_size=None, gang_admission="atomic")
        self.script: Script = scripted(config, nodes=("n1", "n2"), options=options, vcore=50)
        self.told = told
        self.jobs = 0
        self.now = 0
        self._ends: dict[int, list[tuple[str, str]]] = {}

    def submit(self, name: str, pods: int, vcore: int, *, told: int | None = None, priority: int = 0) -> None:
        """A job; one of several pods is a gang of real asks."""
        tags = {"expected.runtime": f"{told}"} if told else {}
        gang = None
        if pods > 1:
            tags["gang.placeholders"], gang = "none", {"vcore": pods * vcore}
        self.script.app(name, "root.a", gang=gang, tags=tags)
        keys = [f"p{at}" for at in range(pods)]
        self.script.ask(name, *keys, priority=priority, vcore=vcore)

    def run(self, minutes: int, until: str = "-") -> int | None:
        """Let jobs come and go; return the minute at which the job ``until`` starts."""
        for _ in range(minutes):
            self.jobs += 1
            self.submit(f"j{self.jobs}", 1, 1, told=self.told)
            started = news(self.script.schedule())
            for line in started:
                name, uuid = line.split()[0].split("/")
                if name[0] == "j":
                    self._ends.setdefault(self.now + 10, []).append((name, uuid))
            if any(line.startswith(until) for line in started):
                return self.now
            self.now += 1
            self.script.advance(60)
            for name, uuid in self._ends.pop(self.now, ()):
                self.script.release(name, uuid)
        return None


QUOTA = "resources: {max: {vcore: 10m}}"
LIMIT = "limits: [{limit: x, users: ['*'], maxresources: {vcore: 10m}}]"


def gang(world: World) -> None:
    world.submit("wide", 8, 1)


def single(world: World) -> None:
    world.submit("wide", 1, 8, priority=9)


@pytest.mark.parametrize("bound", [QUOTA, LIMIT])
@pytest.mark.parametrize("submit", [gang, single])
def test_q12_what_waits_longest_for_its_quota_or_limit_starts_as_planned(
    bound: str, submit: Callable[[World], None]
) -> None:
    """Jobs that come each minute use all ten. Without a plan the wide one never starts; with one it does ten
    minutes after the hour, when what runs then has ended."""
    world = World(bound)
    world.run(20)
    submit(world)
    assert world.run(HOUR // 60 + 15, "wide") == 20 + 60 + 7
