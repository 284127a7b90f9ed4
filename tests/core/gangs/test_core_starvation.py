"""Q6: of finite jobs, each of which fits the empty cluster and its quotas, every one ends."""

from dataclasses import replace

import pytest
from finite_history import History
from finite_jobs import Group, Job, Leaf, Loss, Setting
from finite_settings import Style, clusters, tight_gangs
from hypothesis import HealthCheck, given, settings


def live(setting: Setting) -> History:
    """Run it to the end; every job must end."""
    history = History(setting)
    assert not history.run(), f"{setting}\n{history.picture()}\n{history.story()}"
    assert history.ended.keys() == {job.name for job in setting.jobs}
    return history


def fourteen_jobs(admission: str, order: str = "design") -> Setting:
    """Four gangs of a core and three whole nodes, and ten jobs of one core, in two queues."""
    shape = Group(1, cores=1), Group(3, cores=4)
    gangs = [
        Job(name=name, queue=queue, groups=shape, gang=True, timeout=0, arrives=at, runs=600)
        for name, queue, at in (
            ("red", "root.left", 0),
            ("blue", "root.right", 0),
            ("green", "root.left", 60),
            ("white", "root.right", 60),
        )
    ]
    small = [
        Job(name=f"small-{n}", queue=("root.right", "root.left")[n % 2], arrives=10 * n, runs=30)
        for n in range(1, 11)
    ]
    return Setting(
        nodes=((4, 0),) * 4,
        jobs=(*gangs, *small),
        queues=(Leaf(name="left"), Leaf(name="right")),
        properties=(("gang.admission", admission),),
        message_order=order,
    )


def test_q6_incremental_gangs_hold_parts_and_wait_for_one_another() -> None:
    """As in YuniKorn each gang gets some nodes and holds on to them, also after the Soft timeout."""
    history = History(fourteen_jobs("incremental"))
    stuck = {run.job.name: run for run in history.run()}
    assert stuck.keys() >= {"red", "blue", "green", "white"}
    holders = [run for run in stuck.values() if run.placed]
    assert len(holders) >= 2
    assert all(run.resumed and len(run.placed) < 4 for run in holders)


#: when a gang may gather, and the longest time that a small job runs (s)
AFTER, LONGEST = 60, 35


def stream(*wide: Job, every: int = 5, until: int = 700) -> Setting:
    """Three nodes of two cores, and more jobs of one core than they can ever run."""
    small = [
        Job(name=f"small-{at}", arrives=at, runs=LONGEST - at % 11) for at in range(0, until, every)
    ]
    return Setting(
        nodes=((2, 0),) * 3,
        jobs=(*small, *wide),
        properties=(("gang.admission", "atomic"), ("gang.gather.after", f"{AFTER}s")),
    )


@pytest.mark.parametrize(
    ("late_by", "groups"),
    [
        pytest.param(0, (Group(3, cores=2),), id="all nodes"),
        pytest.param(80, (Group(3, cores=2),), id="all nodes, one ask comes late"),
        pytest.param(0, (Group(2, cores=2),), id="two nodes"),
        pytest.param(0, (Group(6, cores=1),), id="all cores"),
        pytest.param(0, (Group(1, cores=1), Group(2, cores=2)), id="unequal"),
    ],
)
def test_q3_q4_a_wide_gang_beside_a_stream_starts(late_by: int, groups: tuple[Group, ...]) -> None:
    """After ``gang.gather.after`` it keeps nodes, and gets them when what runs there has ended."""
    late = {"late": 1, "late_by": late_by} if late_by else {}
    history = live(stream(Job(name="wide", groups=groups, gang=True, arrives=100, **late)))
    started = history.ended["wide"].started
    assert 100 + AFTER <= started <= 100 + late_by + AFTER + LONGEST
    if groups == (Group(2, cores=2),):  # small jobs go on in a full cluster
        assert any(100 + AFTER < run.started < started for run in history.ended.values())


def test_q3_wide_gangs_gather_one_after_the_other() -> None:
    """Each waits for those before it, and then for the jobs that run."""
    wide = [
        Job(name=f"wide-{n}", groups=(Group(3, 2),), gang=True, arrives=100 + n, runs=20)
        for n in range(3)
    ]
    history = live(stream(*wide, until=900))
    first, second, third = (history.ended[job.name].started for job in wide)
    assert first <= 100 + AFTER + LONGEST
    assert first + 20 <= second <= first + 20 + LONGEST
    assert second + 20 <= third <= second + 20 + LONGEST


def test_q4_singles_and_whole_gangs_go_on_where_a_gathering_gang_has_started() -> None:
    """It needs all nodes, and keeps the two that are free as well: nobody else takes them meanwhile."""
    first = Job(name="first", groups=(Group(1, cores=1),), runs=300)
    wide = Job(name="wide", groups=(Group(3, cores=2),), gang=True, arrives=10)
    later = (
        Job(name="single", groups=(Group(1, cores=2),), arrives=100, runs=50),
        Job(name="narrow", groups=(Group(2, cores=1),), gang=True, arrives=100, runs=50),
        Job(name="small", groups=(Group(1, cores=1),), arrives=120, runs=50),
    )
    history = live(replace(stream(wide, until=0), jobs=(first, wide, *later)))
    started = {name: run.started for name, run in history.ended.items()}
    assert started == {"first": 0, "single": 310, "narrow": 310, "small": 310, "wide": 300}


@pytest.mark.parametrize("order", ["design", "k8shim"])
def test_q6_a_running_gang_that_lost_a_placeholder_waits_for_no_gathering_one(order: str) -> None:
    """The one holds a node that the other needs, and lacks a node that the other would keep."""
    running = Job(name="running", groups=(Group(2, cores=4),), gang=True)
    single = Job(name="single", groups=(Group(1, cores=2),), arrives=16, runs=40, priority=5)
    gathering = Job(name="gathering", groups=(Group(2, cores=3),), gang=True, arrives=28)
    setting = Setting(
        nodes=((1, 0), (4, 0), (4, 0)),
        jobs=(running, single, gathering),
        properties=(("gang.admission", "atomic"), ("gang.gather.after", "0s")),
        losses=(Loss(1, at=3, back=27),),
        confirms_in=7,  # n1 is lost before the pods have replaced their placeholders
        message_order=order,
    )
    history = live(setting)
    started = {name: run.started for name, run in history.ended.items()}
    assert history.counts["started over"] == 0
    assert started["single"] < started["running"] < started["gathering"]


_UNHEALTHY = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_DEAR = settings(
    max_examples=max(10, settings.default.max_examples // 4), suppress_health_check=_UNHEALTHY
)


@pytest.mark.parametrize("style", ["Soft", "Hard", "elastic"])
def test_q6_finite_jobs_that_fit_alone_all_end(style: Style) -> None:
    """A Hard gang has ended as well if its placeholder timeout killed it."""

    @_DEAR
    @given(clusters(style))
    def check(setting: Setting) -> None:
        live(setting)

    check()


@_DEAR
@given(tight_gangs())
def test_q6_a_gang_that_fills_the_empty_cluster_starts(setting: Setting) -> None:
    """However its members have to be packed."""
    (run,) = live(setting).ended.values()
    assert run.started == 0
