"""Jobs that never started: who holds what they need (Q8), and which jobs are unschedulable instead."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.si.explained import Explained
from quadriga.sim import Report, fitting, render
from quadriga.sim.fitting import Quota, obstacle
from quadriga.sim.fragmentation import Holding
from quadriga.sim.holders import Unfinished
from quadriga.sim.lifecycles import BOUND, SCHEDULING
from quadriga.sim.outcomes import NEVER_STARTED, UNSCHEDULABLE, HeldBy, ReservedNode
from quadriga.sim.pods import Pod, Run
from quadriga.sim.workload import Member, QueueSpec, Workload
from tests.sim.by_hand import INCREMENTAL, job, queues_below_root, simulate, workload

TWO_QUEUES = queues_below_root("[{name: a}, {name: b}]", properties=INCREMENTAL)


def deadlock(**options: Any) -> Report:
    """Two gangs of three that get two of four nodes each, a job for any node, and a gang that fits nowhere."""
    jobs = (
        job("a1", 0, 100, (3, 4), queue="a"),
        job("b1", 0, 100, (3, 4), queue="b"),
        job("late", 3, 10, (1, 4), queue="a"),
        job("huge", 3, 10, (5, 4), queue="a"),
    )
    work = workload((4, 4, 4, 4), *jobs, queues=(QueueSpec("a"), QueueSpec("b")))
    return simulate(work, config=TWO_QUEUES, **options)


def outcomes(report: Report) -> dict[str, str]:
    return {fate.job.job_id: fate.outcome for fate in report.fates}


def named(report: Report, kind: str) -> dict[str, list[Any]]:
    return {each["job"]: each["held_by"][kind]["first"] for each in report.data["never_started"]}


def test_two_gangs_that_wait_for_each_other_are_named(order: str) -> None:
    report = deadlock(placeholder_timeout_s=-1, message_order=order)
    assert outcomes(report) == {
        "a1": NEVER_STARTED, "b1": NEVER_STARTED, "late": NEVER_STARTED, "huge": UNSCHEDULABLE,
    }  # fmt: skip
    assert report.data["jobs"]["never_started"] == 3
    assert named(report, "gathering") == {"a1": ["b1"], "b1": ["a1"], "late": ["a1", "b1"]}
    assert named(report, "running") == {"a1": [], "b1": [], "late": []}
    holders = report.data["held_at_end"]["applications"]
    assert [(each["application"], each["queue"], each["gathers"]) for each in holders] == [
        ("a1", "root.a", True), ("b1", "root.b", True),
    ]  # fmt: skip
    for each in holders:
        assert (each["pods"], each["members"]) == (2, 3)
        assert (each["holds"]["vcore"], each["lacks"]["vcore"]) == (8000, 4000)
    (huge,) = report.data["unschedulable"]
    assert huge["reasons"][0].startswith("the empty cluster has room for 4 of 5 pods with ")

    text = render(report, measure=False)
    assert "\nUnschedulable jobs: 1\n  huge\n" in text
    assert "\nJobs that never started, but fit the empty cluster: 3\n  a1\n" in text
    assert "    held by a1, b1: gangs that gather\n" in text and "\nHeld at the end\n" in text
    assert [line.split()[:6] for line in text.splitlines() if "  gathers  " in line] == [
        ["a1", "root.a", "gathers", "2", "of", "3"], ["b1", "root.b", "gathers", "2", "of", "3"],
    ]  # fmt: skip


def test_after_a_soft_timeout_members_hold_what_placeholders_held() -> None:
    report = deadlock(placeholder_timeout_s=60)
    assert report.data["gangs"]["soft_timeouts"] == 2
    assert named(report, "running") == {"a1": ["b1"], "b1": ["a1"], "late": ["a1", "b1"]}
    assert named(report, "gathering") == {"a1": [], "b1": [], "late": []}
    assert "    held by a1, b1: pods that run\n" in render(report, measure=False)


def test_a_gang_that_is_unschedulable_holds_what_another_job_needs() -> None:
    """The gang waits for a third node that never comes; the job would fit without it."""
    large, late = job("large", 0, 10, (3, 4)), job("late", 5, 10, (1, 4))
    config = queues_below_root("[{name: q}]", properties=INCREMENTAL)
    report = simulate(workload((4, 4), large, late), config=config, placeholder_timeout_s=-1)
    assert outcomes(report) == {"large": UNSCHEDULABLE, "late": NEVER_STARTED}
    assert named(report, "gathering") == {"late": ["large"]}


def limited(who: str) -> str:
    return f"queues: [{{name: q, limits: [{{limit: '', {who}, maxresources: {{vcore: 2}}}}]}}]"


@pytest.mark.parametrize(
    ("config", "owner"),
    [
        ("queues: [{name: q, resources: {max: {vcore: 2}}}]", "queue root.q"),
        (limited("users: ['*']"), "the limit of user ann in root.q"),
        (limited("groups: [ann]"), "the limit of group ann in root.q"),
        ("resources: {}, childtemplate: {resources: {max: {vcore: 2}}}", "queue root.q"),
    ],
)
def test_a_job_larger_than_its_quota_is_unschedulable(config: str, owner: str) -> None:
    """The quotas are those that the scheduler would apply, also of queues made from a template."""
    text = "partitions: [{name: default, placementrules: [{name: tag, value: namespace, create: true}],"
    text += " queues: [{name: root, submitacl: '*', " + config + "}]}]"
    work = workload((4,), job("big", 0, 10, (1, 3)), job("ok", 0, 10, (1, 2)))
    report = simulate(work, config=text)
    assert outcomes(report) == {"big": UNSCHEDULABLE, "ok": "completed"}
    (big,) = report.data["unschedulable"]
    assert big["reasons"][0] == f"it needs vcore=3000, and {owner} allows vcore=2000"


# -- one job and its holders, state by state -------------------------------------------------------


def application(
    name: str, size: int, held: Mapping[str, int], pending: int, *, gang: bool = False
) -> Run:
    """An application with pods of one size: so many run on each node of `held`, and `pending` wait."""
    run = Run(job(name, 0, 10, (sum(held.values()) + pending, size)), name)
    pods = iter(run.placeholders if gang else run.real)
    for node, count in held.items():
        for _ in range(count):
            pod = next(pods)
            pod.state, pod.node = BOUND, node
            pod.holding = Holding(node, pod.resources, 0, -1)
    for pod in pods:
        pod.state = SCHEDULING
    return run


def held_by(
    nodes: tuple[int, ...],
    runs: list[Run],
    *,
    gathers: tuple[str, ...] = (),
    reserved: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    quotas: Mapping[str, tuple[Quota, ...]] | None = None,
) -> dict[str, HeldBy | None]:
    """Who holds what each job needs. `gathers` and `reserved` are what the scheduler would say."""

    def explain(run: Run, pod: Pod) -> Explained:
        kept = (reserved or {}).get(run.key, ())
        return Explained("root.q", "Running", ("no room",), "", run.key in gathers, kept)

    cluster: Workload = workload(nodes, job("unused", 0, 1))
    unfinished = Unfinished(runs, cluster.nodes, quotas or {}, explain)
    return {fate.job.job_id: fate.held_by for fate in unfinished.fates}


def test_only_nodes_that_the_job_could_use_count() -> None:
    """`small` fits no pod of `big`, which needs all of n1."""
    runs = [
        application("one", 1, {"n1": 1}, 1),
        application("small", 2, {"n2": 1}, 1),
        application("big", 4, {}, 1),
    ]
    assert held_by((4, 2), runs)["big"] == HeldBy(running=("one",))


def test_a_reservation_holds_a_node_only_if_it_has_room() -> None:
    """n1 and n2 have a core left, n3 has none; all are reserved, n2 for the job itself."""
    runs = [
        application("g", 3, {"n1": 1, "n2": 1}, 1, gang=True),
        application("h", 4, {"n3": 1}, 1),
        application("late", 1, {}, 2),
    ]
    reserved = {"g": (("n1", "g-tg-2"),), "h": (("n3", "h-1"),), "late": (("n2", "late-0"),)}
    found = held_by((4, 4, 4), runs, gathers=("g",), reserved=reserved)
    assert found["late"] == HeldBy(
        gathering=("g",), running=("h",), reservations=(ReservedNode("n1", "g", "g-tg-2"),)
    )


def test_a_quota_is_held_by_the_applications_under_it() -> None:
    """The nodes have room. What the gang still lacks is taken from the quota already."""
    quota = (Quota("queue root.a", {"vcore": 8000}),)
    runs = [
        application("g", 1, {"n1": 3}, 3, gang=True),
        application("elsewhere", 1, {"n1": 1}, 1),
        application("fits", 1, {}, 2),
        application("waits", 1, {}, 3),
    ]
    quotas = {"g": quota, "fits": quota, "waits": quota}
    found = held_by((20,), runs, gathers=("g",), quotas=quotas)
    assert found["waits"] == HeldBy(gathering=("g",), quotas=("queue root.a",))
    for name in ("fits", "g"):
        holders = found[name]
        assert holders is not None
        assert holders.quotas == ()


def test_sizes_that_have_room_alone_and_not_together() -> None:
    pair = Run(job("pair", 0, 10, (1, 3), (1, 2)), "pair")
    for pod in pair.real:
        pod.state = SCHEDULING
    runs = [application("one", 2, {"n1": 1}, 1), pair]
    assert held_by((6,), runs)["pair"] == HeldBy(running=("one",))


def test_many_holders_are_counted_and_the_first_are_named() -> None:
    """Six gangs hold one node each and need two; the report names five of them for a job."""
    gangs = [job(f"g-{name}", 0, 100, (2, 4), queue=name) for name in "abcdef"]
    queues = ", ".join(f"{{name: {name}}}" for name in "abcdef")
    work = workload(
        (4,) * 6,
        *gangs,
        job("late", 5, 10, (1, 4), queue="a"),
        queues=tuple(QueueSpec(name) for name in "abcdef"),
    )
    config = queues_below_root(f"[{queues}]", properties=INCREMENTAL)
    report = simulate(work, config=config, placeholder_timeout_s=-1)
    held = {each["job"]: each["held_by"] for each in report.data["never_started"]}
    assert held["late"]["gathering"]["count"] == 6
    assert len(held["late"]["gathering"]["first"]) == 5
    assert "and 1 more: gangs that gather" in render(report, measure=False)


# -- whether a job could run on the empty cluster ----------------------------------------------------


def cores(*sizes: int) -> list[dict[str, int]]:
    return [{"vcore": size} for size in sizes]


def gang(*groups: tuple[int, int]) -> tuple[Member, ...]:
    """``(2, 3)``: two pods of three cores."""
    return tuple(Member(count, {"vcore": size}) for count, size in groups)


@pytest.mark.parametrize(
    ("members", "nodes", "said"),
    [
        (gang((1, 4)), (4,), ""),
        (gang((1, 5)), (4, 4), "no node of the empty cluster has vcore=5"),
        (gang((1, 1)), (), "no node of the empty cluster has vcore=1"),
        (gang((3, 4)), (4, 9), ""),
        # nine cores are free, in pieces of one
        (gang((3, 4)), (7, 7, 3), "the empty cluster has room for 2 of 3 pods with vcore=4"),
        (gang((1, 2), (2, 2)), (4, 2), ""),
        (gang((1, 3), (2, 2)), (4, 2), "it needs vcore=7, and the empty cluster has vcore=6"),
        # the total fits, each size alone fits, but not both
        (gang((2, 3), (1, 4)), (5, 5), "its 3 pods of 2 sizes do not fit the empty cluster together"),
        # the tightest node for the large pod is the wrong one for the others
        (gang((1, 4), (1, 5), (3, 3)), (9, 9), ""),
        (gang((1, 0)), (1,), ""),
    ],
)  # fmt: skip
def test_examples(members: tuple[Member, ...], nodes: tuple[int, ...], said: str) -> None:
    assert obstacle(members, cores(*nodes)) == said


def test_quotas_bound_the_sum_of_all_pods() -> None:
    members, nodes = gang((2, 3)), cores(4, 4)
    wide = Quota("queue root.a", {"vcore": 6, "memory": 0})
    assert obstacle(members, nodes, [wide]) == ""
    tight = Quota("the limit of user ann in root", {"vcore": 5})
    assert obstacle(members, nodes, [wide, tight]) == (
        "it needs vcore=6, and the limit of user ann in root allows vcore=5"
    )


def test_a_search_without_result_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = gang((2, 3), (1, 4)), cores(5, 5)
    assert obstacle(*impossible)
    monkeypatch.setattr(fitting, "_SEARCH_LIMIT", -2)
    assert obstacle(*impossible) == ""


def test_thousands_of_pods_on_a_thousand_nodes() -> None:
    nodes = cores(*([8] * 1000))
    assert obstacle(gang((1000, 5), (1000, 3)), nodes) == ""
    assert obstacle(gang((1001, 5), (1000, 1)), nodes).endswith("1000 of 1001 pods with vcore=5")


amount = st.integers(0, 4)


@given(
    nodes=st.lists(st.tuples(amount, amount), max_size=3),
    groups=st.lists(st.tuples(st.integers(1, 2), amount, amount), min_size=1, max_size=3),
)
def test_the_answer_is_that_of_all_placements(nodes: Any, groups: Any) -> None:
    members = tuple(Member(count, {"vcore": v, "memory": m}) for count, v, m in groups)
    pods = [(v, m) for count, v, m in groups for _ in range(count)]

    def fits(where: tuple[int, ...]) -> bool:
        return all(
            sum(pod[kind] for pod, at in zip(pods, where, strict=True) if at == node) <= has
            for node, capacity in enumerate(nodes)
            for kind, has in enumerate(capacity)
        )

    possible = any(fits(where) for where in product(range(len(nodes)), repeat=len(pods)))
    capacities = [{"vcore": v, "memory": m} for v, m in nodes]
    assert (obstacle(members, capacities) == "") == possible
