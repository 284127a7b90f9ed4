"""A simulation whose scheduler is behind a server: the same report, byte for byte."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quadriga.cli.main import main
from quadriga.si.access import Access
from quadriga.si.client import Client
from quadriga.sim import RemoteSimulation, Simulation, SimulationError, SimulationOptions, first
from quadriga.sim.workload import Workload, embedded
from tests.si.remote_side import PATIENCE, SOON, Serving
from tests.sim.by_hand import INCREMENTAL, job, queues_below_root, workload


@pytest.fixture
def serving() -> Iterator[Serving]:
    with Serving(steps=True) as serving:
        yield serving


def without_inside(text: str) -> dict[str, Any]:
    """A report without what only a scheduler in this process tells."""
    told: dict[str, Any] = json.loads(text)
    del told["scheduler"]
    return told


def same(serving: Serving, workload: Workload, **options: Any) -> dict[str, Any]:
    here = Simulation(workload, SimulationOptions(**options)).run()
    with Client(serving.address, backoff=SOON, timeout_s=PATIENCE) as client:
        there = RemoteSimulation(workload, SimulationOptions(**options), client=client).run()
    assert there.unaccounted == 0
    assert without_inside(here.json()) == without_inside(there.json())
    return there.data


def test_the_embedded_workload(serving: Serving) -> None:
    same(serving, first(embedded(days=3, seed=5), None, 40))


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_gangs_that_wait_are_held_up_and_time_out(serving: Serving, order: str, style: str) -> None:
    """Two gangs for the same nodes, one that waits for ever, and lost and repeated confirmations."""
    jobs = (
        job("a", 0, 100, (3, 4)),
        job("b", 0, 100, (3, 4)),
        job("big", 5, 10, (4, 4)),
        job("late", 900, 50, (1, 2), (2, 1)),
    )
    report = same(
        serving,
        workload((4, 4, 4), *jobs),
        gang_admission="incremental",
        message_order=order,
        gang_style=style,
        placeholder_timeout_s=60,
        lose=0.3,
        repeat=0.3,
    )
    assert report["gangs"][f"{style.lower()}_timeouts"] > 0


def test_a_job_that_fits_nowhere_has_the_same_reasons(serving: Serving) -> None:
    """Why it is stuck is asked of the scheduler, by `Explain`."""
    report = same(serving, workload((4,), job("huge", 0, 10, (1, 9)), job("ok", 0, 10)))
    assert report["jobs"]["unschedulable"] == 1


def test_gangs_that_gather_and_reserved_nodes_are_the_same(serving: Serving) -> None:
    """Two gangs hold two nodes each and need three; their asks reserve nodes."""
    config = queues_below_root("[{name: a}, {name: b}]", properties=INCREMENTAL)
    gangs = (job(name, 0, 100, (3, 3), queue=name) for name in "ab")
    work = workload((4, 4, 4, 4), *gangs, job("late", 5, 10, (1, 3), queue="a"))
    report = same(serving, work, config=config, placeholder_timeout_s=-1)
    assert [each["gathers"] for each in report["held_at_end"]["applications"]] == [True, True]
    late = {each["job"]: each["held_by"] for each in report["never_started"]}["late"]
    assert late["gathering"] == {"count": 2, "first": ["a", "b"]}
    assert report["held_at_end"]["reservations"]


def test_where_an_application_was_placed_is_asked_as_well(serving: Serving) -> None:
    config = (
        "partitions: [{name: default, placementrules: [{name: user, create: true}],"
        " queues: [{name: root, submitacl: '*'}]}]"
    )
    jobs = [job(f"j{n}", n, 30, user=user) for n, user in enumerate(("ann", "bob", "ann"))]
    report = same(serving, workload((4,), *jobs), config=config)
    assert set(report["waits"]["queues"]) == {"root.ann", "root.bob"}


def test_a_scheduler_with_a_clock_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with Serving() as serving:
        with Client(serving.address, timeout_s=PATIENCE) as client:
            simulation = RemoteSimulation(workload((4,), job("a", 0, 1)), client=client)
            with pytest.raises(SimulationError, match="has a clock of its own .*--clock client"):
                simulation.run()
        assert main(["simulate", "--limit", "1", "--quiet", "--connect", serving.address]) == 1
    assert "quadriga serve --clock client" in capsys.readouterr().err


def test_a_clock_that_was_used_up(serving: Serving) -> None:
    same(serving, workload((4,), job("a", 0, 100)))
    with pytest.raises(SimulationError, match="went back"):
        same(serving, workload((4,), job("a", 0, 100)))


def test_nobody_there() -> None:
    with Serving() as serving:
        address = serving.address
    with (
        Client(address, backoff=SOON, timeout_s=0.2) as client,
        pytest.raises(SimulationError, match="127.0.0.1"),
    ):
        RemoteSimulation(workload((4,), job("a", 0, 1)), client=client).run()


# -- the command -----------------------------------------------------------------------------------


def test_the_command_gives_the_same_json(serving: Serving, tmp_path: Path) -> None:
    run = ["simulate", "--days", "2", "--limit", "15", "--quiet", "--json"]
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert main([*run, str(here)]) == 0
    assert main([*run, str(there), "--connect", serving.address]) == 0
    assert without_inside(there.read_text()) == without_inside(here.read_text())


def test_the_command_shows_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens, token = tmp_path / "tokens", tmp_path / "token"
    tokens.write_text("planner rm:* plain:a-token-of-the-planners-own\n")
    tokens.chmod(0o600)
    token.write_text("a-token-of-the-planners-own\n")
    run = ["simulate", "--days", "1", "--limit", "2", "--quiet", "--connect"]
    with Serving(steps=True, access=Access.from_file(tokens)) as serving:
        assert main([*run, serving.address]) == 1
        assert "no known token" in capsys.readouterr().err
        assert main([*run, serving.address, "--token-file", str(token)]) == 0
    monkeypatch.setenv("QUADRIGA_TOKEN", "a-token-of-the-planners-own")
    with Serving(steps=True, access=Access.from_file(tokens)) as serving:
        assert main([*run, serving.address]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--connect nowhere", "write HOST:PORT"),
        ("--connect localhost:http", "write HOST:PORT"),
        ("--connect 127.0.0.1:1 --check", "--check and --journal need a scheduler in this process"),
        ("--tls-ca x.pem", "go with --connect"),
        ("--connect 127.0.0.1:1 --token-file /no/such", "/no/such: No such file"),
        ("--connect 127.0.0.1:1 --tls-cert here", "a certificate needs its key"),
        ("--connect 10.0.0.1:1 --token-file here", "can be read by others"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [__file__ if word == "here" else word for word in arguments.split()]
    assert main(["simulate", "--limit", "1", "--quiet", *words]) == 2
    assert said in capsys.readouterr().err
