"""Q6 for every order in which three gangs and three single jobs arrive and end on three nodes."""

import pytest
from finite_jobs import Group, Job, Setting
from finite_orders import Orders

#: any two of these gangs together need more than the three nodes have
GANGS = (
    Job(name="pair", groups=(Group(2, cores=3),), gang=True),
    Job(name="narrow", groups=(Group(3, cores=2),), gang=True),
    Job(name="wide", groups=(Group(3, cores=3),), gang=True),
)
SINGLES = (
    Job(name="small", groups=(Group(1, cores=1),)),
    Job(name="half", groups=(Group(1, cores=2),)),
    Job(name="whole", groups=(Group(1, cores=4),)),
)


def orders(gangs: int, singles: int, pace: int, admission: str = "atomic") -> Orders:
    """All orders of the first ones; after 3 s asks reserve nodes, after 100 s gangs gather."""
    setting = Setting(
        nodes=((4, 0),) * 3,
        jobs=(*GANGS[:gangs], *SINGLES[:singles]),
        properties=(("gang.admission", admission), ("gang.gather.after", "60s")),
    )
    found = Orders(setting, pace)
    found.explore()
    return found


@pytest.mark.parametrize(("gangs", "singles", "pace"), [(3, 1, 0), (3, 1, 3), (3, 1, 100)])
def test_q6_a_few_jobs_end_in_every_order(gangs: int, singles: int, pace: int) -> None:
    found = orders(gangs, singles, pace)
    assert not found.stuck, found.stuck
    assert found.ends == 1  # every order leads to the empty cluster
    assert len(found.seen) > 90


@pytest.mark.slow
@pytest.mark.parametrize(("singles", "pace"), [(2, 0), (2, 3)])
def test_q6_three_gangs_and_singles_end_in_every_order(singles: int, pace: int) -> None:
    """With three singles it takes minutes and passes as well."""
    found = orders(3, singles, pace)
    assert not found.stuck, found.stuck
    assert found.ends == 1
    assert len(found.seen) > 500
