"""Event records of gangs that are placed in one step: who waits for what, and who keeps nodes (Q8)."""

from __future__ import annotations

import pytest
from core_world import later, queues, scripted, serve
from event_lines import RecordReader

from quadriga.core import Options
from quadriga.sim.script import Script


def config(admission: str = "atomic") -> str:
    settings = f"gang.admission: {admission}, gang.gather.after: 1m, gang.gather.patience: 5m"
    return queues(
        "default",
        "small",
        "limited",
        root=f"properties: {{{settings}}}",
        small="resources: {max: {vcore: 3}}",
        limited="limits: [{limit: '', users: [joe], maxresources: {vcore: 3}}]",
    )


@pytest.fixture
def script() -> Script:
    """Two nodes of four vcores."""
    return scripted(config(), nodes=("n1", "n2"), options=Options(journal_size=None), vcore=4)


def gang(
    script: Script, name: str, members: int, vcore: int, queue: str = "root.default", **more: object
) -> None:
    script.app(name, queue, gang={"vcore": members * vcore}, **more)  # type: ignore[arg-type]
    keys = [f"{name}-p{at}" for at in range(members)]
    serve(script, name, *keys, group="g", placeholder=True, vcore=vcore)


def single(script: Script, *names: str, vcore: int) -> None:
    for name in names:
        script.app(name)
        serve(script, name, "a", vcore=vcore)


def waits(reader: RecordReader) -> list[str]:
    """The texts of the gangs' records, each after its application."""
    lines = reader.new_lines("APP NONE")
    return [line.removeprefix("APP NONE ") for line in lines if "(Gang " in line]


def test_q8_a_record_says_how_many_members_could_start_and_that_all_did(script: Script) -> None:
    single(script, "s", vcore=1)
    reader = RecordReader(script)
    gang(script, "g", 4, 2)
    assert waits(reader) == [
        "g (Gang waits for nodes: 3 of 4 members could start now, no room for 1 of map[vcore:2])"
    ]
    script.release("s", "a-0")
    script.schedule()
    assert waits(reader) == ["g (Gang is placed: all 4 outstanding members)"]


def test_q8_there_is_one_record_until_the_gang_lacks_something_else(script: Script) -> None:
    single(script, "s", "t", "u", vcore=2)
    reader = RecordReader(script)
    gang(script, "g", 2, 4)
    assert len(waits(reader)) == 1
    script.release("s", "a-0")
    script.schedule()  # one node has room: an attempt that fails as the last one did
    single(script, "v", vcore=4)
    assert waits(reader) == []
    serve(script, "g", "late", group="h", placeholder=True, vcore=3)
    assert waits(reader) == [
        "g (Gang waits for nodes: 0 of 3 members could start now, "
        "no room for 2 of map[vcore:4], no room for 1 of map[vcore:3])"
    ]


def test_q8_a_record_names_the_quota_or_the_limit_that_has_no_room(script: Script) -> None:
    script.app("s", "root.small")
    script.ask("s", "a", vcore=2000)
    script.node("large", vcore=9000)
    script.schedule()
    reader = RecordReader(script)
    gang(script, "g", 2, 1000, "root.small")
    assert waits(reader) == [
        "g (Gang does not fit in queue 'root.small' "
        "(requested map[vcore:2000], available map[vcore:1000]))"
    ]
    gang(script, "h", 4, 1000, "root.limited", user="joe")
    assert waits(reader) == [
        "h (Gang exceeds the available quota of user 'joe' in queue 'root.limited' "
        "(requested map[vcore:4000], available map[vcore:3000]))"
    ]


def test_q8_a_record_says_that_predicates_refuse_a_member(script: Script) -> None:
    script.scheduler.set_predicate(script.rm_id, lambda ask, node, allocate: "no")
    reader = RecordReader(script)
    gang(script, "g", 2, 2)
    script.schedule()
    assert waits(reader) == [
        "g (Gang waits for nodes: the predicates accept no node for one of its members)"
    ]


def test_q8_records_follow_the_gang_that_gathers(script: Script) -> None:
    """It starts to gather, keeps nodes, gives them back, and the next gang gathers."""
    single(script, "s", vcore=3)
    for name in ("g", "h"):
        gang(script, name, 2, 4)
    reader = RecordReader(script)

    def gathers(name: str) -> list[str]:
        return [
            f"APP NONE {name} (Gang starts to gather: it keeps nodes until all its members fit, "
            "1 of 2 fit now)",
            f"NODE ADD NODE_RESERVATION n1 {name}-p0 vcore=4 "
            f"(reserved for the gang of application '{name}')",
        ]

    later(script, 60)
    assert reader.new_lines("APP NONE", "NODE ADD NODE_RES") == gathers("g")
    gang(script, "i", 5, 1)
    assert waits(reader) == [
        "i (Gang waits for nodes: 4 of 5 members could start now, no room for 1 of map[vcore:1]; "
        "nodes with room are reserved: n1 for application g)"
    ]
    script.remove_app("i")
    reader.new_lines()
    later(script, 300)
    assert reader.new_lines("APP NONE", "NODE ADD NODE_RES", "NODE REMOVE NODE_RES") == [
        "APP NONE g (Gang gives its reserved nodes back (1): "
        "none of them had more room for its members in all its patience)",
        "NODE REMOVE NODE_RESERVATION n1 g-p0 vcore=4",
        *gathers("h"),
    ]


def test_q8_a_gang_that_timed_out_and_waits_again_is_recorded_again(script: Script) -> None:
    single(script, "s", vcore=1)
    script.app("g", gang={"vcore": 8}, timeout_ms=10_000)
    reader = RecordReader(script)
    serve(script, "g", "p0", group="g", placeholder=True, vcore=4)
    assert waits(reader) == [
        "g (Gang waits for its asks: announced map[vcore:8], asked for map[vcore:4] so far)"
    ]
    script.advance(10)
    serve(script, "g", "r0", "r1", group="g", vcore=4)
    assert [line.split(":")[0] for line in waits(reader)] == ["g (Gang waits for nodes"]


def test_gangs_that_are_placed_one_by_one_have_no_such_record() -> None:
    script = scripted(config("whole"), vcore=4)
    reader = RecordReader(script)
    gang(script, "g", 4, 2, timeout_ms=10_000)
    script.advance(10)
    assert waits(reader) == []
