"""T25, for an hour of simulated time with more faults; ``python -m bench soak`` runs for a day and longer."""

from __future__ import annotations

import pytest

from bench import soak as command
from bench._kubernetes.soak_simulated import Soak
from bench._kubernetes.soaked import Sample, Soaked

#: what may be left when all has ended, and is bounded: records of ended applications and of their users, and memory
#: for equal ones
BOUNDED = {
    "cache.tentative", "core.ended", "core.former_users", "core.serials", "core.shapes", "templates.templates",
    "templates.unused",
}  # fmt: skip


def test_t25_random_work_with_faults_leaves_nothing_behind() -> None:
    run = Soak(1, faults=0.05)
    try:
        before = run.left()
        for _ in range(60):
            run.minute()
        found = run.sample()
        assert found.audits == 60
        run.rest()
        after = run.left()
        assert run.sample().standing == 0
    finally:
        run.close()
    assert run.made["pods of jobs"] > 100
    assert run.made["pods of gangs"] > 100
    assert sum(run.faults.values()) > 20
    # K106: only what the API server itself has denied had to be found again.
    assert sum(run.world.shim.audit.stood.values()) <= run.faults["bind: 404 though it is there"]
    grown = {name for name, size in after.items() if size > before.get(name, 0)}
    assert grown <= BOUNDED, {name: after[name] for name in grown}
    assert after["pods"] == 0


def test_t25_what_a_soak_prints(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [Sample(float(n), n << 20, n, n, 0, {"watched": n}) for n in (1, 2, 3)]
    faults = {"bind: 404 though it is there": 3, "cut": 5}
    command.report(Soaked(samples, {"jobs": 4}, faults, {}, ["audit: watched"]))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "done: 4 jobs"
    assert printed[4].startswith(
        "middle: minute      2: 2 MiB, 2 pods, 2 audits, 0 differences stand"
    )
    assert printed[-1] == "audit: watched"
    with pytest.raises(SystemExit, match="have stood"):
        command.report(Soaked(samples, {}, {"cut": 5}, {}, []))
