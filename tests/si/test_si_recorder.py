"""The recorder of messages: around a scheduler, a service and its callbacks, and by hand."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.diagrams import sequence
from quadriga.si.api import has_own
from quadriga.si.lines import lines
from quadriga.si.recorder import RecordingError, about_name, read_exchanges
from quadriga.sim.scripted.script import Script
from tests.si.requests import apps, asks, nodes, register


def labels(recorder: si.Recorder) -> list[str]:
    return [exchange.label for exchange in recorder.exchanges]


def test_a_program_of_its_own_records_what_it_likes() -> None:
    times = iter([5, 7, 6])
    recorder = si.Recorder(clock=lambda: next(times))
    recorder.add("shop", "bank", "charge 3 EUR", note="first try")
    recorder.add("bank", "shop", "charged")
    recorder.add("shop", "post", "parcel")  # a clock that was set back
    assert recorder.exchanges == (
        si.Exchange(5, "shop", "bank", "charge 3 EUR", "first try"),
        si.Exchange(7, "bank", "shop", "charged"),
        si.Exchange(7, "shop", "post", "parcel"),
    )
    assert "p0->>p1: charge 3 EUR" in sequence(recorder.exchanges)
    recorder.clear()
    assert recorder.exchanges == ()


@pytest.mark.parametrize(
    ("only", "kept", "dropped"),
    [
        (None, ["new app-1/a-0 on n1", "add node app-1x"], 2),
        (about_name("app-1"), ["add app-1", "new app-1/a-0 on n1"], 0),
    ],
    ids=["the newest", "of one name"],
)
def test_some_are_kept_and_the_others_counted(only: Any, kept: list[str], dropped: int) -> None:
    recorder = si.Recorder(limit=2, only=only)
    for label in ("add app-1", "add app-10", "new app-1/a-0 on n1", "add node app-1x"):
        recorder.add("a", "b", label, time_ns=0)
    assert labels(recorder) == kept
    assert recorder.dropped == dropped


def test_several_threads_record_in_order() -> None:
    recorder = si.Recorder(limit=None)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(lambda: [recorder.add("a", "b", "x") for _ in range(500)])
    times = [exchange.time_ns for exchange in recorder.exchanges]
    assert len(times) == 2000
    assert times == sorted(times)


def test_a_scheduler_is_recorded_with_its_own_times() -> None:
    """And a refused request with the reason."""
    recorder = si.Recorder()
    script = Script(scheduler=recorder.scheduler(Scheduler()))
    script.node("n1", vcore=2000)
    script.advance(3)
    script.app("app-1")
    script.ask("app-1", "a", vcore=1000)
    script.schedule()
    assert recorder.exchanges[:3] == (
        si.Exchange(0, "rm", "core", "register rm"),
        si.Exchange(0, "rm", "core", "add node n1"),
        si.Exchange(0, "core", "rm", "accepted node n1"),
    )
    assert si.Exchange(3_000_000_000, "core", "rm", "new app-1/a-0 on n1") in recorder.exchanges
    assert all(line in labels(recorder) for line in script.log)
    with pytest.raises(si.RequestError):
        recorder.scheduler(Scheduler(), name="quadriga", manager="shim").apply(
            si.NodeRequest(rmID="nobody"), 0
        )
    refused = recorder.exchanges[-1]
    assert (refused.sender, refused.receiver) == ("quadriga", "shim")
    assert refused.label.startswith("refused NodeRequest: ")


class Manager(si.NullCallback):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.heard.append(response)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return "full" if args.nodeID == "n1" else None

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse:
        return si.PreemptionPredicatesResponse(success=args.nodeID == "n2", index=3)

    def get_state_dump(self) -> str:
        return "{}"


def test_a_service_is_recorded_with_its_callbacks() -> None:
    now = 0
    recorder = si.Recorder(clock=lambda: now)
    service = SchedulerService(manual=True, clock=lambda: now)
    api = recorder.api(service)
    manager = Manager()
    api.register_resource_manager(register(), manager)
    with pytest.raises(si.RequestError):
        api.update_node(si.NodeRequest(rmID="other"))
    for method, request in (
        (api.update_node, nodes("n1", "n2")),
        (api.update_application, apps("app-1")),
        (api.update_allocation, asks("app-1", "a")),
    ):
        method(request)
        now += 1
        service.step(now)
    said = labels(recorder)
    assert said[0] == "register rm"
    assert said[1].startswith("refused NodeRequest: ")
    for line in ("add node n1", "accepted app-1", "ask app-1/a"):
        assert line in said
    # the manager answered the question, and heard of the allocation
    asked = said.index("predicates a on n1")
    assert said[asked + 1] == "refused: full"
    assert said[said.index("predicates a on n2") + 1] == "agreed"
    assert "new app-1/a-0 on n2" in said
    assert manager.heard
    assert service.scheduler.check() == []


def test_a_recorded_callback_has_what_the_callback_has() -> None:
    seen: list[Any] = []

    class Api:
        def register_resource_manager(self, request: Any, callback: Any) -> None:
            seen.append(callback)

    recorder = si.Recorder(clock=lambda: 0)

    def recorded_of(callback: Any) -> Any:
        api: Any = Api()
        recorder.api(api).register_resource_manager(register(), callback)
        return seen.pop()

    for callback in (Manager(), si.NullCallback()):
        recorded = recorded_of(callback)
        for method in ("predicates", "preemption_predicates", "send_event"):
            assert has_own(recorded, method) is has_own(callback, method)
        assert isinstance(recorded, si.StateDumpPlugin) is isinstance(callback, si.StateDumpPlugin)
    recorder.clear()
    recorded = recorded_of(Manager())
    for node in ("n1", "n2"):
        recorded.preemption_predicates(si.PreemptionPredicatesArgs(allocationKey="a", nodeID=node))
    assert labels(recorder)[1:] == [
        "preemption predicates a on n1",
        "no victims suffice",
        "preemption predicates a on n2",
        "victims 0 to 3",
    ]


ACTIONS = (*si.NodeInfo.ActionFromRM.values(), 99)
SEVERAL = si.AllocationRequest(
    allocations=[
        {"applicationID": "x", "allocationKey": "a", "nodeID": "n"},
        {"applicationID": "x", "allocationKey": "b"},
    ],
    releases={
        "allocationsToRelease": [{"applicationID": "x", "UUID": "u", "terminationType": 1}],
        "allocationAsksToRelease": [
            {"applicationID": "x", "allocationKey": "k", "terminationType": 77}
        ],
    },
)
WAITING = si.UpdateContainerSchedulingStateRequest(applicartionID="x", allocationKey="a", state=1)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (si.ApplicationRequest(remove=[{"applicationID": "x"}]), "remove x"),
        (
            si.NodeRequest(nodes=[{"nodeID": "n", "action": action} for action in ACTIONS]),
            "unknown action on node n, add node n, update node n, drain node n, remove node n,"
            " undrain node n, add draining node n, unknown action on node n",
        ),
        (SEVERAL, "ask x/b, existing x/a on n, release ask x/k 77, release x/u STOPPED_BY_RM"),
        (si.UpdateConfigurationRequest(rmID="rm", config="secret"), "configure rm"),
        (WAITING, "SKIPPED x/a"),
        (si.EventRecord(), ""),
        ("text", ""),
    ],
)
def test_every_item_of_a_message_is_a_line(message: Any, said: str) -> None:
    assert ", ".join(lines(message)) == said


def test_a_recording_is_written_and_read(tmp_path: Path) -> None:
    recorder = si.Recorder()
    recorder.add("ä", "b", 'x "y"\n', note="n", time_ns=3)
    recorder.add("b", "ä", "z", time_ns=4)
    assert recorder.write(tmp_path / "r") == 2
    assert tuple(read_exchanges(tmp_path / "r")) == recorder.exchanges


GOOD = json.dumps(si.Exchange(1, "a", "b", "c")._asdict())


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line + "\n{",
        lambda line: line + "\n[]",
        lambda line: line + "\n" + line.replace("1", '"1"'),
        lambda line: line + "\n" + line.replace("1", "true"),
        lambda line: line + "\n" + line.replace('"c"', "null"),
        lambda line: line + "\n" + line.replace('"c"', '"c", "more": 1'),
    ],
)
def test_another_file_is_refused_by_line(tmp_path: Path, change: Callable[[str], str]) -> None:
    path = tmp_path / "r"
    path.write_text(change(GOOD), encoding="utf-8")
    with pytest.raises(RecordingError, match=r"r:2: not a message \(an object with time_ns, "):
        list(read_exchanges(path))
    path.write_bytes(b"\xff")
    with pytest.raises(RecordingError, match="not UTF-8"):
        list(read_exchanges(path))
