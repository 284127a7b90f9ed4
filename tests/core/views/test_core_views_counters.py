"""Numbers for metrics, node utilisation and histories (2.10, 2.14, 2.15)."""

import random

import pytest
from core_steps import on_nodes, run, serve, submit
from core_world import queues
from everything_life import Life
from views_side import has

from quadriga.core.views import History, Sample, Views
from quadriga.core.views.nodes import BUCKETS, bucket_of
from quadriga.si import Allocation, AllocationResponse
from quadriga.sim.scripted.script import Script, resource

QUEUES = queues("p.a", "p.b", p_a="resources: {guaranteed: {vcore: 1}, max: {vcore: 3}}")
MOST = 2**62


@pytest.mark.parametrize(
    ("used", "whole", "bucket"),
    [
        *[(0, 1000, 0), (100, 1000, 0), (101, 1000, 1), (1000, 1000, 9), (1300, 1000, 9)],
        *[(-5, 10, 0), (MOST // 10 + 1, MOST, 1), (MOST // 10, MOST, 0)],  # floats are not exact
    ],
)
def test_5_13_utilisation_bucket(used: int, whole: int, bucket: int) -> None:
    assert bucket_of(used, whole) == bucket


def test_2_14_nodes_by_how_full_they_are_of_each_type() -> None:
    script = on_nodes(empty={"vcore": 1000, "memory": 100}, full=1000, gpus={"gpu": 4})
    run(script, "app", "k", vcore=1000, tags={"yunikorn.apache.org/requiredNode": "full"})
    views = Views(script.scheduler)
    (partition,) = views.node_utilisations()
    assert (partition["clusterId"], partition["partition"]) == ("rm", "default")
    by_type = {
        each["type"]: {
            b["bucketName"]: b["nodeNames"] for b in each["utilization"] if b["numOfNodes"]
        }
        for each in partition["utilizations"]
    }
    assert by_type == {
        "gpu": {"0-10%": ["gpus"]},
        "memory": {"0-10%": ["empty"]},
        "vcore": {"0-10%": ["empty"], "90-100%": ["full"]},
    }
    assert (BUCKETS[0], BUCKETS[9], len(BUCKETS)) == ("0-10%", "90-100%", 10)
    for each in partition["utilizations"]:
        assert [bucket["bucketName"] for bucket in each["utilization"]] == list(BUCKETS)
        for bucket in each["utilization"]:
            assert bucket["numOfNodes"] == len(bucket["nodeNames"])
    assert views.node_utilisation()["type"] == "vcore"  # half of it is allocated, of others nothing
    empty = Views(Script().scheduler).node_utilisation()
    assert (empty["type"], [each["numOfNodes"] for each in empty["utilization"]]) == ("", [0] * 10)
    idle = on_nodes(n1={"vcore": 1, "memory": 1})
    assert Views(idle.scheduler).node_utilisation()["type"] == "memory"  # the first name


# -- counters --------------------------------------------------------------------------------------


def test_2_15_queues_count_for_all_below_also_what_has_ended() -> None:
    script = on_nodes(QUEUES, n1=8000)
    for name, queue in (("one", "a"), ("two", "b")):
        submit(script, name, "k", queue=f"root.p.{queue}", repeat=2, vcore=1000)
    script.schedule()
    script.release("one")
    script.advance(31)
    by_path = {each["queue"]: each for each in Views(script.scheduler).queue_counters("default")}
    assert list(by_path) == ["root", "root.p", "root.p.a", "root.p.b"]
    root, p, a, b = by_path.values()
    has(a, containers={"allocated": 2, "released": 2}, applications={"Completed": 1})
    has(a, guaranteed={"vcore": 1000}, max={"vcore": 3000})
    has(b, containers={"allocated": 2, "released": 0})
    has(p, applications={"Completed": 1, "Running": 1})
    has(root, containers={"allocated": 4, "released": 2})
    has(root, max={"vcore": 8000}, allocated={"vcore": 2000})


def test_2_15_a_replacement_is_one_more_and_one_less() -> None:
    script = on_nodes(n1=4000)
    run(script, "g", "p", gang={"vcore": 1000}, group="tg", placeholder=True, vcore=1000)
    serve(script, "g", "r", group="tg", vcore=1000)
    views = Views(script.scheduler)
    assert views.partition_counters("default")["placeholderAllocations"] == 1
    script.confirm()
    has(views.counters()["containers"], allocated=2, released=1)
    found = views.partition_counters("default")
    has(found, allocations=1, placeholderAllocations=0, reservations=0)
    has(found, applications=1, completedApplications=0, rejectedApplications=0)


def test_2_12_a_failed_node_is_one_until_it_is_taken_up() -> None:
    script = Script()
    size = resource({"vcore": 1})
    lost = Allocation(allocationKey="k", applicationID="gone", resourcePerAlloc=size)
    script.node("n1", vcore=1, existing=[lost])
    views = Views(script.scheduler)
    assert views.counters()["nodes"]["failed"] == 1
    script.node("n1", vcore=1)
    assert views.counters()["nodes"]["failed"] == 0


@pytest.mark.parametrize("seed", range(320, 324))
def test_2_15_what_was_announced_is_what_was_counted(seed: int) -> None:
    """In a faulty run: allocations heard of, or reported by a node, against the counters."""
    life = Life(random.Random(seed), alone=True)
    views = Views(life.script.scheduler)
    for _ in range(100):
        life.step()
        containers = views.counters()["containers"]
        held = views.partition_counters("default")["allocations"]
        assert containers["allocated"] == life.place.announced
        assert containers["allocated"] - containers["released"] == held
        root, *_ = views.queue_counters("default")
        assert root["containers"]["allocated"] == containers["allocated"]
    rejected = sum(
        len(message.rejected) + len(message.rejectedAllocations)
        for _, message in life.script.messages
        if isinstance(message, AllocationResponse)
    )
    assert views.counters()["containers"]["rejected"] == rejected


def test_2_14_history_remembers_what_ran_minute_by_minute() -> None:
    script = on_nodes(n1=4000)
    views = Views(script.scheduler)
    assert (views.history.applications(), views.history.containers()) == ([], [])
    views.sample()
    submit(script, "app", "k", repeat=3, vcore=1000)
    script.app("idle")
    script.schedule()
    script.advance(60)
    views.sample()
    minute = 60 * 10**9
    assert views.history.applications() == [
        {"timestamp": 0, "totalApplications": "0"},
        {"timestamp": minute, "totalApplications": "1"},
    ]
    assert views.history.containers() == [
        {"timestamp": 0, "totalContainers": "0"},
        {"timestamp": minute, "totalContainers": "3"},
    ]


def test_2_10_history_keeps_a_day() -> None:
    history = History()
    for minute in range(2000):
        history.add(Sample(minute, minute, 0))
    assert len(history) == 1440
    assert history.applications()[0] == {"timestamp": 560, "totalApplications": "560"}
