"""The seven tables as the design states them, written down a second time."""

import pytest

from quadriga.fsm import LIFECYCLES

DESIGN = {
    "application": """
        New reject Rejected
        New,Waiting ask Accepted,Running
        Accepted,Starting,Running,Resuming ask =
        Accepted run Accepted|Starting|Running
        Starting run Starting|Running
        Waiting run Waiting|Running
        Running run =
        Accepted wait Accepted|Waiting
        Starting wait Starting|Waiting
        Running wait Running|Waiting
        Waiting complete Waiting|Completed
        Accepted placeholder_timeout Accepted|Killing|Resuming
        Starting,Running,Waiting,Resuming,Killing placeholder_timeout =
        Resuming resumed Resuming|Accepted
        New,Accepted,Starting,Running,Waiting,Resuming kill Killing
        Killing kill =
        Killing killed Killing|Killed
        Completed,Killed,Rejected expire Expired
    """,
    "gang": """
        Queued gather Gathering
        Gathering abandon Gathering|Queued
        Queued,Gathering place Placed
        Placed place =
        Queued requeue =
        Gathering,Placed requeue Queued
        Queued,Gathering,Placed end Ended
    """,
    "ask": """
        Initial submit Pending
        Initial,Pending,Parked reject Rejected
        Pending allocate Pending|Allocated
        Pending park Parked
        Parked allocate Pending|Allocated
        Parked unpark Pending
        Pending,Parked update =
    """,
    "allocation": """
        Planned allocate Allocated
        Planned discard Discarded
        Allocated,Releasing complete Completed
        Allocated release Releasing
        Releasing release =
        Releasing confirm Expired|Preempted|Replaced
    """,
    "node": """
        New accept Schedulable|Draining
        New reject Rejected
        Schedulable drain Draining
        Draining drain =
        Draining schedule Schedulable
        Schedulable,Draining update =
        Schedulable,Draining decommission Removed
    """,
    "resource_manager": """
        Init,Running,Paused,Stopped register Running
        Running disconnect Paused
        Paused reconnect Running
        Paused timeout Stopped
        Running,Paused shutdown Stopped
    """,
    "queue": """
        Active remove Draining
        Draining remove =
        Active stop Stopped
        Stopped stop =
        Stopped start Active
        Active start =
        Draining restore Active
        Draining,Stopped removed Removed
    """,
}
FINAL = {
    "application": {"Expired"},
    "gang": {"Ended"},
    "ask": {"Allocated", "Rejected"},
    "allocation": {"Discarded", "Completed", "Preempted", "Expired", "Replaced"},
    "node": {"Rejected", "Removed"},
    "resource_manager": set(),
    "queue": {"Removed"},
}


def _stated(text: str) -> set[tuple[str, str, str]]:
    found = set()
    for line in text.split("\n"):
        if not line.strip():
            continue
        sources, trigger, targets = line.split()
        several = sources.split(",")
        # "New,Waiting ask Accepted,Running" pairs them; alternatives have a bar
        pairs = zip(several, targets.split(","), strict=True) if "," in targets else None
        for source, target in pairs or [(s, targets) for s in several]:
            for each in target.split("|"):
                found.add((source, trigger, source if each == "=" else each))
    return found


@pytest.mark.parametrize("name", LIFECYCLES)
def test_the_table_is_the_one_of_the_design(name: str) -> None:
    lifecycle = LIFECYCLES[name]
    built = {(r.source, r.trigger, r.target or r.source) for r in lifecycle.rows}
    assert built == _stated(DESIGN[name])
    assert set(lifecycle.final) == FINAL[name]


def test_the_design_has_seven_tables() -> None:
    assert set(LIFECYCLES) == set(DESIGN) == set(FINAL)
