"""The embedded model: its promises, and how near it comes to the log it was fitted to."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from bench._support import fit
from bench._support.fit import LOG_START_S, MIN_JOBS, bags, profile
from quadriga.sim.workload import MEMORY, VCORE, Job, Workload, embedded, figures
from quadriga.sim.workload.cerit import ACKNOWLEDGEMENT
from quadriga.sim.workload.tables import POINTS, apportion, deal, deal_by, pick, quantile

SEEDS = (1, 2, 3)
POINTS_COMPARED = (0.25, 0.5, 0.75, 0.9, 0.95)

Figure = Callable[[Sequence[Job]], list[int]]


@pytest.fixture(scope="module", params=SEEDS)
def model(request: pytest.FixtureRequest) -> Workload:
    return embedded(seed=request.param)


@pytest.fixture(scope="module")
def log(cerit: Workload) -> list[Job]:
    """The log's jobs, less the queues too small to be described."""
    counts = Counter(job.queue for job in cerit.jobs)
    return [job for job in cerit.jobs if counts[job.queue] >= MIN_JOBS]


def at(values: Iterable[int], points: tuple[float, ...] = POINTS_COMPARED) -> list[int]:
    ordered = sorted(values)
    return [ordered[int(len(ordered) * point)] for point in points]


def shares(values: Iterable[object]) -> dict[object, float]:
    counts = Counter(values)
    return {value: count / counts.total() for value, count in counts.items()}


def distance(one: dict[object, float], other: dict[object, float]) -> float:
    """Total variation: the share of jobs that would have to change."""
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other}) / 2


def cores(job: Job) -> int:
    return job.total()[VCORE] // 1000


# Promises


def digest(workload: Workload) -> str:
    return hashlib.sha256(repr(workload).encode()).hexdigest()


def test_the_same_seed_gives_the_same_bytes_in_every_python() -> None:
    assert digest(embedded(days=20, seed=7)) == digest(embedded(days=20, seed=7))
    assert digest(embedded(days=20, seed=7)) != digest(embedded(days=20, seed=8))
    assert digest(embedded()) == "278a3b44752635c2649b39112eac1ce578dcebe5b374e1194bf9488b243f7bd2"


def test_the_workload_is_well_formed(model: Workload) -> None:
    assert ACKNOWLEDGEMENT in model.source
    assert ACKNOWLEDGEMENT in " ".join((figures.__doc__ or "").split())
    assert [job.submit_s for job in model.jobs] == sorted(job.submit_s for job in model.jobs)
    assert all(0 <= job.submit_s < model.horizon_s == 90 * 86_400 for job in model.jobs)
    assert len({job.job_id for job in model.jobs}) == len(model.jobs)
    assert {job.queue for job in model.jobs} <= {queue.name for queue in model.queues}
    assert all(job.walltime_s and 1 <= job.runtime_s <= job.walltime_s for job in model.jobs)


def test_every_job_fits_the_cluster(model: Workload) -> None:
    """A member fits a node, and a gang fits the empty cluster with its members spread."""
    for members in {
        tuple((m.count, m.resources[VCORE], m.resources[MEMORY]) for m in job.members)
        for job in model.jobs
    }:
        for count, vcore, memory in members:
            room = sum(
                min(node.resources[VCORE] // vcore, node.resources[MEMORY] // max(memory, 1))
                for node in model.nodes
            )
            assert room >= count, (count, vcore, memory)


@pytest.mark.parametrize("days", [1, 7, 30, 180])
def test_days_are_about_alike(days: int) -> None:
    workload = embedded(days=days, seed=3)
    assert workload.horizon_s == days * 86_400
    assert all(job.submit_s < workload.horizon_s for job in workload.jobs)
    bags_a_day = len(bags(workload.jobs)) / days
    assert 30 <= bags_a_day <= 45
    if days >= 30:
        assert 170 <= len(workload.jobs) / days <= 230


def test_scale_multiplies_the_load_and_cluster_the_nodes() -> None:
    one, three = embedded(days=20), embedded(days=20, scale=3)
    assert one.nodes == three.nodes
    assert 2.7 <= len(three.jobs) / len(one.jobs) <= 3.3
    assert 2.7 <= three.offered(VCORE) / one.offered(VCORE) <= 3.3
    assert len(embedded(days=1, scale=0.001).jobs) < 20
    one, two = embedded(days=5), embedded(days=5, cluster=2)
    assert one.jobs == two.jobs
    assert len(two.nodes) == 2 * len(one.nodes) == 88
    assert len({node.name for node in two.nodes}) == 88
    assert len(embedded(days=1, cluster=0.001).nodes) == 2


@pytest.mark.parametrize(
    "arguments", [{"days": 0}, {"days": 99_999}, {"scale": 0}, {"scale": float("nan")}]
)
def test_nonsense_is_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        embedded(**arguments)
    with pytest.raises(ValueError, match="cluster is -1"):
        embedded(cluster=-1)


# Tables


def test_quantiles_between_and_at_the_points_and_picks_by_weight() -> None:
    table = list(POINTS)
    found = [quantile(table, share) for share in (0, 0.005, 0.25, 0.9995, 1)]
    assert found == [0, 5, 250, 999, 1000]
    assert [pick((1, 0, 3), share) for share in (0, 0.24, 0.25, 0.99, 1)] == [0, 0, 2, 2, 2]


def test_what_is_dealt_is_even_and_apportioned_counts_are_near_and_add_up() -> None:
    rng = Random(5)
    assert sorted(int(share * 50) for share in deal(rng, 50)) == list(range(50))
    weights = [7, 1, 1, 1]
    dealt = deal_by(rng, weights)
    edges = sorted((s - w / 20, s + w / 20) for s, w in zip(dealt, weights, strict=True))
    assert edges[0][0] == pytest.approx(0)
    assert all(end == pytest.approx(start) for (_, end), (start, _) in pairwise(edges))
    amounts = [0.3] * 10 + [2.5, 7.0]
    counts = apportion(Random(1), amounts)
    assert sum(counts) in (12, 13)
    assert all(abs(count - amount) < 1 for count, amount in zip(counts, amounts, strict=True))


def test_a_bag_is_alike_and_close_together() -> None:
    def job(job_id: str, submit_s: int, user: str = "u") -> Job:
        return Job(job_id, submit_s, 1, user, "q", ())

    jobs = [job("1", 0), job("2", 5, "v"), job("3", 900), job("4", 1801)]
    assert [[job.job_id for job in bag] for bag in bags(jobs)] == [["1", "3"], ["2"], ["4"]]


# Nearness to the log


def test_the_figures_are_those_of_the_log(
    cerit_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "figures.py"
    assert fit.main([str(cerit_path), "--write", str(written)]) == 0
    assert written.read_text(encoding="utf-8") == Path(figures.__file__).read_text("utf-8")
    assert fit.main([str(cerit_path)]) == 0
    assert capsys.readouterr().out == written.read_text(encoding="utf-8")


def test_fitting_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit.main([str(tmp_path)]) == 1
    assert "there is neither nodes.csv nor" in capsys.readouterr().err


def test_jobs_bags_and_nodes_as_logged(model: Workload, cerit: Workload, log: list[Job]) -> None:
    mine, theirs = model.horizon_s / 86_400, cerit.horizon_s / 86_400
    assert len(model.jobs) / mine == pytest.approx(len(log) / theirs, rel=0.05)
    assert len(bags(model.jobs)) / mine == pytest.approx(len(bags(log)) / theirs, rel=0.02)
    assert model.capacity() == cerit.capacity()
    assert len(model.nodes) == len(cerit.nodes)


def of_jobs(value: Callable[[Job], int]) -> Figure:
    return lambda jobs: at(map(value, jobs))


def runtimes_in(queue: str) -> Figure:
    points = (0.5, 0.75, 0.9, 0.95)
    return lambda jobs: at((job.runtime_s for job in jobs if job.queue == queue), points)


#: a figure of jobs, and how many times less or more the model's may be than the log's
NEAR: dict[str, tuple[Figure, float]] = {
    "jobs a day": (lambda jobs: at(Counter(j.submit_s // 86_400 for j in jobs).values()), 1.4),
    "sizes of bags": (lambda jobs: at(map(len, bags(jobs))), 1.3),
    "jobs of the busiest users": (
        lambda jobs: [n for _, n in Counter(job.user for job in jobs).most_common(10)],
        1.15,
    ),
    "memory": (of_jobs(lambda job: job.total()[MEMORY]), 1.3),
    # Requests are round numbers, so a quantile of the quotient moves in jumps.
    "memory a core": (of_jobs(lambda job: job.total()[MEMORY] // cores(job)), 1.75),
    "runtimes": (of_jobs(lambda job: job.runtime_s), 1.1),
    **{f"runtimes in {q}": (runtimes_in(q), 1.2) for q in ("q_2h", "q_1d", "q_2d", "q_1w")},
}


@pytest.mark.parametrize("name", NEAR)
def test_quantiles_are_near_those_of_the_log(model: Workload, log: list[Job], name: str) -> None:
    figure, factor = NEAR[name]
    for mine, theirs in zip(figure(model.jobs), figure(log), strict=True):
        assert theirs / factor <= mine <= theirs * factor


#: a property of jobs, and the share of jobs that may have another one than in the log
SHARES: dict[str, tuple[Callable[[Job], object], float]] = {
    "queue": (lambda job: job.queue, 0.03),
    "cores": (cores, 0.05),
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_are_near_those_of_the_log(model: Workload, log: list[Job], name: str) -> None:
    value, far = SHARES[name]
    mine, theirs = shares(map(value, model.jobs)), shares(map(value, log))
    assert distance(mine, theirs) < far
    assert name != "queue" or set(mine) == set(theirs)
    assert len({job.user for job in model.jobs}) >= 70


def test_users_work_in_campaigns(model: Workload, log: list[Job]) -> None:
    """How many bags begin within a day of one of the same user and queue."""

    def soon(jobs: Iterable[Job]) -> float:
        latest: dict[tuple[str, str], int] = {}
        found = bags(jobs)
        count = 0
        for bag in found:
            key = bag[0].user, bag[0].queue
            count += key in latest and bag[0].submit_s - latest[key] <= 86_400
            latest[key] = bag[0].submit_s
        return count / len(found)

    assert soon(model.jobs) == pytest.approx(soon(log), abs=0.1)


def test_gangs(model: Workload, log: list[Job]) -> None:
    mine, theirs = ([job for job in jobs if job.gang] for jobs in (model.jobs, log))
    assert len(mine) / len(model.jobs) == pytest.approx(len(theirs) / len(log), rel=0.1)
    assert distance(shares(job.pods for job in mine), shares(job.pods for job in theirs)) < 0.06


def test_rhythm_of_hours_and_weekdays(model: Workload, log: list[Job]) -> None:
    """Of bags: a bag of a thousand jobs makes its hour in either, but not the same hour."""
    mine = profile(bag[0].submit_s for bag in bags(model.jobs))
    theirs = profile((bag[0].submit_s for bag in bags(log)), LOG_START_S)
    for one, other in zip(mine, theirs, strict=True):
        pairs = zip(one, other, strict=True)
        assert sum(abs(a / sum(one) - b / sum(other)) for a, b in pairs) / 2 < 0.06


def test_offered_load(model: Workload, cerit: Workload, log: list[Job]) -> None:
    capacity = cerit.capacity()

    def load(jobs: Iterable[Job], resource: str, horizon_s: int) -> float:
        amount = sum(job.total()[resource] * job.runtime_s for job in jobs)
        return amount / capacity[resource] / horizon_s

    theirs = load(log, VCORE, cerit.horizon_s)
    assert load(model.jobs, VCORE, model.horizon_s) == pytest.approx(theirs, rel=0.07)
    # A few jobs of 500 GiB and months hold a fifth of the log's memory: no figure has their like.
    theirs = load([job for job in log if job.queue != "q_2w_plus"], MEMORY, cerit.horizon_s)
    mine = load((j for j in model.jobs if j.queue != "q_2w_plus"), MEMORY, model.horizon_s)
    assert mine == pytest.approx(theirs, rel=0.15)
