"""Random small clusters with finite jobs, each of which fits alone (Q6): strategies of Hypothesis."""

from dataclasses import replace
from typing import Literal

from finite_jobs import Group, Job, Leaf, Loss, Parent, Setting, fits_alone
from hypothesis import assume
from hypothesis import strategies as st

#: what a gang does after its placeholder timeout
Style = Literal["Hard", "Soft", "elastic"]

#: ``gang.gather.after`` and ``gang.gather.patience``; mostly short
_AFTER = st.sampled_from(("0s", "40s", "600s"))
_PATIENCE = st.sampled_from(("0s", "0s", "30s"))


@st.composite
def clusters(draw: st.DrawFn, style: Style) -> Setting:
    """One to four nodes and two to nine jobs. Nodes that are lost come back."""
    memory = draw(st.sampled_from((st.just(0), st.integers(1, 8))))
    nodes = draw(st.lists(st.tuples(st.integers(1, 6), memory), min_size=1, max_size=4))
    setting = Setting(
        nodes=tuple(nodes),
        jobs=(),
        queues=draw(_trees()),
        properties=(
            ("gang.admission", "atomic"),
            ("gang.gather.after", draw(_AFTER)),
            ("gang.gather.patience", draw(_PATIENCE)),
            ("gang.gather.preempt", draw(st.sampled_from(("never", "overrun")))),
        ),
        node_sort=draw(st.sampled_from(("fair", "binpacking"))),
        confirms_in=draw(st.sampled_from((0, 1, 7))),
        message_order=draw(st.sampled_from(("design", "k8shim"))),
        reservations=draw(st.sampled_from((True, True, False))),
        give_up=draw(st.sampled_from((30, 3600))),
    )
    names = [f"job-{n}" for n in range(draw(st.integers(2, 9)))]
    jobs = tuple(draw(_jobs(setting, name, style)) for name in names)
    losses = []
    for node in range(len(nodes)):
        if draw(st.sampled_from((False, False, True))):
            at = draw(st.integers(5, 60))
            losses.append(Loss(node, at, at + draw(st.sampled_from((1, 20, 300)))))
    return replace(setting, jobs=jobs, losses=tuple(losses))


@st.composite
def _trees(draw: st.DrawFn) -> tuple[Leaf | Parent, ...]:
    """One to three queues below root; one may have two leaves."""
    found: list[Leaf | Parent] = [draw(_leaves("a", 0))]
    if draw(st.booleans()):
        found.append(draw(_leaves("b", 0)))
    if draw(st.booleans()):
        most = draw(_quotas(0))
        leaves = draw(_leaves("left", most)), draw(_leaves("right", most))
        found.append(Parent(name="parent", leaves=leaves, most=most))
    return tuple(found)


def _quotas(most: int) -> st.SearchStrategy[int]:
    """A quota in cores, not above that of the parent; 0: none."""
    return st.just(0) | st.integers(1, most or 12)


def _leaves(name: str, most: int) -> st.SearchStrategy[Leaf]:
    return st.builds(
        Leaf,
        name=st.just(name),
        sort=st.sampled_from(("fifo", "expected", "stateaware", "fair")),
        most=_quotas(most),
        running=st.sampled_from((0, 0, 0, 1, 2)),
        priority=st.sampled_from((0, 0, 5)),
    )


@st.composite
def _jobs(draw: st.DrawFn, setting: Setting, name: str, style: Style) -> Job:
    """A job that fits alone: a single pod, or a gang of up to three task groups."""
    queue, sort, quotas = draw(st.sampled_from(list(setting.leaves())))
    gang = sort != "fair" and draw(st.sampled_from((True, True, False)))
    cores = min(max(cores for cores, _ in setting.nodes), *(most or 99 for most in quotas))
    memory = max(memory for _, memory in setting.nodes)
    groups = st.builds(
        Group, st.integers(1, 4 if gang else 1), st.integers(1, cores), st.integers(0, memory)
    )
    job = Job(
        name=name,
        queue=queue,
        groups=tuple(draw(st.lists(groups, min_size=1, max_size=3 if gang else 1))),
        arrives=draw(st.integers(0, 30)),
        runs=draw(st.sampled_from((1, 10, 40))),
        priority=draw(st.sampled_from((0, 0, 5))),
        gang=gang,
    )
    while not fits_alone(setting, job):
        *others, last = job.groups
        assume(others or last.count > 1)
        fewer = (replace(last, count=last.count - 1),) if last.count > 1 else ()
        job = replace(job, groups=(*others, *fewer))
    if not gang:
        return job
    late = draw(st.sampled_from((0, 0, 0, 1, 2)))
    return replace(
        job,
        style="Hard" if style == "Hard" else "Soft",
        elastic=style == "elastic",
        timeout=draw(st.sampled_from((-1, -1, 0, 200, 20))),
        late=late,
        late_by=draw(st.sampled_from((1, 50, 400))) if late else 0,
        # without placeholderAsk nobody knows that asks are still to come (X35)
        announced=bool(late) or draw(st.sampled_from((True, True, False))),
    )


@st.composite
def tight_gangs(draw: st.DrawFn) -> Setting:
    """A gang alone in a cluster that it fills almost wholly."""
    memory = draw(st.sampled_from((st.just(0), st.integers(1, 8))))
    nodes = draw(st.lists(st.tuples(st.integers(2, 8), memory), min_size=2, max_size=4))
    most = max(each for _, each in nodes)
    groups = st.builds(Group, st.integers(1, 4), st.integers(1, 5), st.integers(0, most))
    job = Job(name="gang", groups=tuple(draw(st.lists(groups, min_size=2, max_size=3))), gang=True)
    setting = Setting(
        nodes=tuple(nodes),
        jobs=(job,),
        properties=(("gang.admission", "atomic"),),
        node_sort=draw(st.sampled_from(("fair", "binpacking"))),
    )
    assume(job.total[0] >= sum(cores for cores, _ in nodes) - 2)
    assume(fits_alone(setting, job))
    return setting
