"""Shared devices: an ask takes a share of one unit, or whole free units (Q14)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga.core import Options
from quadriga.si import Allocation, AllocationResponse, NodeInfo, RequestError
from quadriga.sim.scripted.script import Script, resource

GPU = "nvidia.com/gpu"
CONFIG = """
partitions:
  - name: default
    topology: [rack]
    devices: [{name: nvidia.com/gpu, shared: %s}]
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {guaranteed: {nvidia.com/gpu: 2k}}
            properties: {preemption.delay: 1s}
          - name: b
            properties: {preemption.delay: 1s}
"""


def gpu(milli: int, vcore: int = 1) -> Any:
    return {GPU: milli, "vcore": vcore}


def cluster(*sizes: int, **options: Any) -> Script:
    """Nodes n0, n1, ... with this many GPUs, and the applications a and b in queues of these names."""
    script = Script(CONFIG % "true", options=Options(journal_size=None, **options))
    for at, size in enumerate(sizes):
        script.node(f"n{at}", attributes={"rack": f"r{at % 2}"}, **gpu(1000 * size, 100))
    for name in ("a", "b"):
        script.app(name, f"root.{name}")
    return script


def placed(script: Script) -> dict[str, str]:
    """The node and the units of each key, as the messages say."""
    found = {}
    for _, message in script.messages:
        if isinstance(message, AllocationResponse):
            for new in message.new:
                units = new.allocationTags.get("devices", "").removeprefix(f"{GPU}=")
                found[new.allocationKey] = f"{new.nodeID}:{units}"
    return found


def asked(script: Script, *asks: int, app: str = "a") -> dict[str, str]:
    """Ask for these amounts (milli), with the keys k0, k1, ..., and return where they are."""
    for at, milli in enumerate(asks):
        script.ask(app, f"k{at}", **gpu(milli))
        script.schedule()
    return placed(script)


def reasons(script: Script, key: str) -> str:
    found = script.scheduler.explain("a", key)
    assert found is not None
    return " ".join(f"{check.text} {check.verdict}" for check in found.checks if not check.passed)


@pytest.mark.parametrize(
    ("asks", "units"),
    [
        ([500, 500, 600], ["n0:0", "n0:0", "n0:1"]),
        ([500, 2000], ["n0:0"]),
        ([500, 600, 500, 400], ["n0:0", "n0:1", "n0:0", "n0:1"]),
        ([1000, 300, 700], ["n0:0", "n0:1", "n0:1"]),
        ([2000], ["n0:0,1"]),
    ],
)
def test_q14_a_share_is_of_one_unit_and_whole_units_are_wholly_free(
    asks: list[int], units: list[str]
) -> None:
    assert list(asked(cluster(2), *asks).values()) == units


@pytest.mark.parametrize("milli", [1001, 1500, 2999])
def test_q14_more_than_one_device_is_whole_devices(milli: int) -> None:
    (rejected,) = cluster(4).ask("a", "k", **gpu(milli))
    assert f"wants {milli}m of {GPU}: a share is at most 1000m" in rejected


def test_q14_explain_says_what_is_left_on_one_unit() -> None:
    script = cluster(2, 2)
    asked(script, 700, 700, 700, 700, 500, 2000)
    assert f"no {GPU} has 500m left; the most is 300m" in reasons(script, "k4")
    script.release("a", "k0-0")
    script.schedule()
    assert "k4" in placed(script)
    script = cluster(2)
    asked(script, 500, 1000, 1000)
    assert "lacks 500m" in reasons(script, "k2")
    script = cluster(3)
    asked(script, 600, 600, 600, 1000)
    assert f"no node has 1 {GPU} wholly free; the most is 0" in reasons(script, "k3")
    script = cluster(2, 2)
    asked(script, 300, 900, 300, 900, 1000)
    script.release("a", "k1-0")
    script.release("a", "k3-0")
    asked(script, 300, 300, app="b")
    assert script.scheduler.check() == []


def test_q14_a_reported_allocation_keeps_its_units() -> None:
    script = cluster()

    def running(key: str, milli: int, **tags: str) -> Allocation:
        return Allocation(
            allocationKey=key,
            UUID=f"{key}-0",
            applicationID="a",
            nodeID="n0",
            resourcePerAlloc=resource(gpu(milli)),
            allocationTags=tags,
        )

    script.node(
        "n0",
        existing=[
            running("x", 400, devices=f"{GPU}=1"),
            running("y", 1000, devices=f"{GPU}=2"),
            running("z", 500, devices="else=7"),  # unreadable: a unit is chosen
        ],
        **gpu(4000, 100),
    )
    assert script.scheduler.check() == []
    node = script.scheduler.partition().nodes["n0"]
    registry = node.partition.registry
    units = {each.ask.ask_key: registry.units_text(each.units) for each in node.allocations}
    assert units == {"x": f"{GPU}=1", "y": f"{GPU}=2", "z": f"{GPU}=1"}
    assert asked(script, 2000)["k0"] == "n0:0,3"


def test_q14_victims_free_enough_on_one_unit() -> None:
    """Two shares of one unit go, and neither of those on the other unit, although four have the amount."""
    script = cluster(2)
    for at, milli in enumerate((600, 600, 300, 300)):
        script.ask("b", f"v{at}", **gpu(milli))
        script.schedule()
    assert {key: unit[-1] for key, unit in placed(script).items()} == {
        "v0": "0",
        "v1": "1",
        "v2": "0",
        "v3": "1",
    }
    script.ask("a", "k", preempt=(True, True), **gpu(1000))
    for _ in range(5):
        script.advance(5)
        script.schedule()
    gone = {release.allocationKey for release in script.outstanding}
    assert gone in ({"v0", "v2"}, {"v1", "v3"})
    for _ in gone:
        script.confirm()
    script.schedule()
    assert "k" in placed(script)


def test_q14_resources_of_others_take_units_and_nothing_changes_under_what_runs() -> None:
    script = cluster(2)
    script.node("n0", NodeInfo.UPDATE, occupied=gpu(1300))
    assert asked(script, 800, 700, 700) == {"k1": "n0:0"}
    with pytest.raises(RequestError, match="shared devices cannot change"):
        script.configure(CONFIG % "false")
    (refused,) = script.node("n1", **gpu(65_000))
    assert "over 64 devices" in refused


@settings(max_examples=max(1, settings.default.max_examples // 2))  # type: ignore[attr-defined]
@given(st.data())
def test_q14_units_add_up_whatever_happens(data: st.DataObject) -> None:
    """Asks, gangs, releases and nodes in any order: no unit is used beyond its capacity, an ask has the units that
    it is worth, and what waits fits on no node."""
    admission = data.draw(st.sampled_from(("atomic", "whole")))
    script = cluster(*data.draw(st.lists(st.integers(0, 4), max_size=3)), gang_admission=admission)
    if data.draw(st.booleans()):  # plans are then made before anything is charged
        script.scheduler.set_predicate("rm", lambda key, node, allocate: None)
    amounts = st.one_of(st.integers(1, 999), st.sampled_from((1000, 2000, 3000)))
    running: list[tuple[str, str]] = []
    for at in range(data.draw(st.integers(1, 15))):
        match data.draw(st.sampled_from(("ask", "ask", "gang", "release", "node"))):
            case "ask":
                script.ask(
                    data.draw(st.sampled_from("ab")),
                    f"k{at}",
                    repeat=data.draw(st.integers(1, 3)),
                    **gpu(data.draw(amounts)),
                )
            case "gang":
                sizes = [data.draw(amounts) for _ in range(2)]
                rule = data.draw(st.sampled_from(({}, {"topology.required": "rack"})))
                script.app(f"g{at}", "root.a", gang=gpu(2 * sum(sizes), 4), tags=rule)
                for group, milli in enumerate(sizes):
                    script.ask(
                        f"g{at}", f"p{at}-{group}", repeat=2, group=f"t{group}", placeholder=True,
                        **gpu(milli),
                    )  # fmt: skip
                    script.ask(
                        f"g{at}", f"m{at}-{group}", repeat=2, group=f"t{group}", **gpu(milli)
                    )
            case "release" if running:
                script.release(*running.pop(data.draw(st.integers(0, len(running) - 1))))
            case _:
                script.node(f"m{at}", **gpu(1000 * data.draw(st.integers(0, 4)), 100))
        script.schedule()
        while script.outstanding:
            script.confirm()
            script.schedule()
        partition = script.scheduler.partition()
        running = [
            (each.ask.app.app_id, each.uuid)
            for node in partition.nodes.values()
            for each in node.allocations
            if not each.placeholder
        ]
        for node in partition.nodes.values():
            assert min(node.available) >= 0
            for each in node.allocations:
                assert sum(a for _, a in each.units) == each.vector[partition.registry.index[GPU]]
                assert all(amount == 1000 for _, amount in each.units) or len(each.units) == 1
            for app in (partition.applications["a"], partition.applications["b"]):
                for group in app.groups.values():
                    assert not group.shape.fits(node.available)
    assert script.scheduler.check() == []
