"""The scheduler as an object in a process: callbacks, predicates, threads (I3 to I5, I36, M8)."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from service_side import (
    METHOD,
    PATIENCE,
    SECOND,
    STORY,
    Heard,
    apps,
    asks,
    bare_core,
    begin,
    nodes,
    placed,
    register,
    release,
    send,
)

from quadriga import si
from quadriga.core import Options, Scheduler, SchedulerService
from quadriga.core.checks.failures import Failure


@pytest.fixture
def service() -> Iterator[SchedulerService]:
    with SchedulerService() as made:
        yield made


@pytest.fixture
def manual() -> SchedulerService:
    return SchedulerService(manual=True, clock=lambda: 0)


def test_m8_m10_the_manual_service_says_what_the_bare_core_says(manual: SchedulerService) -> None:
    heard = Heard()
    begin(manual, heard)
    for at, message in STORY:
        manual.step(at * SECOND, limit=0)
        send(manual, message)
        manual.step(at * SECOND)
    assert heard.calls == bare_core()
    # the story has everything in it
    assert {method for method, _ in heard.calls} == set(METHOD.values())
    for word in ("Completed", "Waiting", "Running", "p0-0", "r1-0", "Node n2 Removed"):
        assert word in repr(heard.calls)


def test_m10_the_threaded_service_says_the_same_of_every_entity() -> None:
    """The clock is the story's; the next message is sent when the owner has come to rest."""
    heard, now = Heard(), [0]
    with SchedulerService(clock=lambda: now[0]) as service:
        service.register_resource_manager(register(), heard)
        for at, message in STORY:
            now[0] = at * SECOND
            service.read(lambda core: None)  # it looks at the clock: timers fire
            send(service, message)
            rest(service)
    expected = bare_core()
    assert sorted(heard.calls) == sorted(expected)
    for method in METHOD.values():
        mine = [call for call in heard.calls if call[0] == method]
        assert mine == [call for call in expected if call[0] == method]


def rest(service: SchedulerService) -> None:
    """Wait until all that was sent before is done, and the round of decisions behind it."""
    service.read(lambda core: None)
    service.read(lambda core: None)


@pytest.mark.parametrize("threaded", [False, True])
def test_a_refused_request_raises_at_the_caller(threaded: bool) -> None:
    with SchedulerService(manual=not threaded) as service:
        with pytest.raises(si.RequestError, match="rmID"):
            service.register_resource_manager(
                si.RegisterResourceManagerRequest(), si.NullCallback()
            )
        for message in (nodes("n1"), apps("a"), asks("a", "k")):
            with pytest.raises(si.RequestError, match="not registered"):
                send(service, message)
        service.register_resource_manager(register(), si.NullCallback())
        with pytest.raises(si.RequestError, match="config"):
            service.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config="["))
        assert service.failures == 0


def test_i5_i7_i9_each_manager_hears_by_its_last_callback(manual: SchedulerService) -> None:
    first, second, refused, other = Heard(), Heard(), Heard(), Heard()
    begin(manual, first)
    begin(manual, second)
    manual.register_resource_manager(register("other"), other)
    with pytest.raises(si.RequestError):
        manual.register_resource_manager(register(config="["), refused)
    manual.update_node(nodes("n1"))
    assert [len(each.calls) for each in (first, second, refused, other)] == [0, 1, 0, 0]


# -- callbacks -------------------------------------------------------------------------------------


class Fails(Heard):
    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        raise OSError("the pipe is broken")


@pytest.mark.parametrize("threaded", [False, True])
def test_a_callback_that_raises_is_logged(threaded: bool, caplog: pytest.LogCaptureFixture) -> None:
    heard = Fails()
    with SchedulerService(manual=not threaded) as service:
        begin(service, heard, nodes("n1"), apps("app"))
        heard.wait_for(lambda messages: len(messages) == 2)
        rest(service)
    assert [method for method, _ in heard.calls] == ["node", "application"]
    assert service.failures == 0
    assert "callback of resource manager rm failed" in caplog.text
    assert "the pipe is broken" in caplog.text


class Eager(Heard):
    """Asks as soon as its application is accepted, and confirms and releases on hearing of it."""

    api: si.SchedulerAPI

    def update_application(self, response: si.ApplicationResponse) -> None:
        super().update_application(response)
        for app in response.accepted:
            self.api.update_allocation(asks(app.applicationID, "a", "b"))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for new in response.new:
            self.api.update_allocation(release(new.applicationID, new.UUID))


def done(messages: list[Any]) -> bool:
    return sum(len(m.released) for m in messages if isinstance(m, si.AllocationResponse)) == 4


@pytest.mark.parametrize("threaded", [False, True])
def test_a_callback_may_call_the_scheduler_and_the_order_stays(threaded: bool) -> None:
    heard = Eager()
    with SchedulerService(manual=not threaded, clock=lambda: 0) as service:
        heard.api = service
        begin(service, heard, nodes("n1"), apps("one", "two"))
        if not threaded:
            service.step(1)
        heard.wait_for(done)
        assert service.read(lambda core: core.check()) == []
    # no allocation is heard of before it is made, no state before the one that leads to it
    said: list[str] = []
    for message in heard.messages:
        if isinstance(message, si.ApplicationResponse):
            said += [f"{u.applicationID} {u.state}" for u in message.updated]
        if isinstance(message, si.AllocationResponse):
            said += [f"{n.applicationID} new {n.UUID}" for n in message.new]
            said += [f"{r.applicationID} released {r.UUID}" for r in message.released]
    for app in ("one", "two"):
        mine = [line.removeprefix(f"{app} ") for line in said if line.startswith(f"{app} ")]
        assert (mine[:2], mine[-1]) == (["Accepted", "Running"], "Waiting")
        for uuid in ("a-0", "b-0"):
            assert mine.index(f"new {uuid}") < mine.index(f"released {uuid}")


@pytest.mark.parametrize("threaded", [False, True])
def test_a_callback_may_register_again(threaded: bool) -> None:
    second = Heard()

    class Restarts(Heard):
        def update_node(self, response: si.NodeResponse) -> None:
            super().update_node(response)
            service.register_resource_manager(register(), second)

    with SchedulerService(manual=not threaded, clock=lambda: 0) as service:
        begin(service, Restarts(), nodes("n1"))
        rest(service)
        service.update_node(nodes("n1"))
        second.wait_for(lambda messages: len(messages) == 1)
    assert [n.nodeID for n in second.messages[0].accepted] == ["n1"]


def test_a_callback_may_stop_the_service() -> None:
    ended = threading.Event()

    class Stops(Heard):
        def update_node(self, response: si.NodeResponse) -> None:
            service.stop()
            ended.set()

    service = SchedulerService()
    begin(service, Stops(), nodes("n1"))
    assert ended.wait(PATIENCE)
    service.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        service.update_node(nodes("n2"))


@pytest.mark.parametrize("threaded", [False, True])
def test_an_illegal_trigger_is_counted_and_logged(
    threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    with SchedulerService(manual=not threaded, clock=lambda: 0) as service:
        begin(service, heard, nodes("n1"))
        # as a bug of ours would leave it: in a state that does not know the next trigger
        service.read(lambda core: setattr(core.partition().nodes["n1"], "state", "Removed"))
        service.update_node(nodes("n1", action=si.NodeInfo.UPDATE))
        assert service.failures == 1
        # that one message is refused, and the service goes on
        service.update_node(nodes("n2"))
        heard.wait_for(lambda messages: len(messages) == 2)
    assert [n.nodeID for m in heard.messages for n in m.accepted] == ["n1", "n2"]
    assert "refused: node 'n1' cannot 'update' in state Removed" in caplog.text
    assert "New --accept--> Schedulable" in caplog.text


def test_an_illegal_trigger_in_a_step_is_counted_too(
    manual: SchedulerService, caplog: pytest.LogCaptureFixture
) -> None:
    begin(manual, Heard(), nodes("n1"), apps("app"), asks("app", "a"))
    manual.read(lambda core: setattr(core.application("app").asks["a"], "state", "Rejected"))
    manual.step(1)
    assert manual.failures == 1
    assert manual.failure_log.recent(1) == [
        Failure(1, "InvalidTransition: ask 'app/a' cannot 'allocate' in state Rejected")
    ]
    assert "ask 'app/a' cannot 'allocate' in state Rejected" in caplog.text
    assert "Initial --submit--> Pending" in caplog.text


def test_a_failure_of_a_timer_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    with SchedulerService(clock=lambda: 0) as service:
        service.register_resource_manager(register(), heard)

        def set_off(core: Scheduler) -> None:
            core._kernel.timers.start(0, 0, "a timer that nobody knows", core.partition())

        service.read(set_off)
        service.update_node(nodes("n1"))
        heard.wait_for(lambda messages: len(messages) == 1)
        rest(service)
        assert service.failures == 1
        (failure,) = service.failure_log.recent(service.now())
        assert "a timer that nobody knows" in failure.text
    assert "a timer that nobody knows" in caplog.text


# -- time and the thread ---------------------------------------------------------------------------


def test_the_threaded_service_lets_timers_fire_by_itself() -> None:
    heard = Heard()
    options = Options(lasts={("application", "Waiting"): 1})
    with SchedulerService(options) as service:
        begin(service, heard, nodes("n1"), apps("app"), asks("app", "a"))
        heard.wait_for(lambda messages: bool(placed(heard)))
        service.update_allocation(release("app", "a-0"))
        heard.wait_for(lambda messages: "Completed" in repr(messages))


def test_a_timer_in_the_far_future_does_not_end_the_thread() -> None:
    heard = Heard()
    with SchedulerService() as service:
        begin(service, heard, nodes("n1"), apps("app", timeout_ms=2**63 - 1))
        send(service, apps("gang", gang=1000, timeout_ms=2**63 - 1), asks("app", "a"))
        service.update_allocation(asks("gang", "p", group="g", placeholder=True))
        heard.wait_for(lambda messages: len(placed(heard)) == 2)
        rest(service)
        assert service.failures == 0


def test_step_asks_the_clock_where_no_time_is_given() -> None:
    now = [5 * SECOND]
    service = SchedulerService(manual=True, clock=lambda: now[0])
    heard = Heard()
    begin(service, heard, nodes("n1"), apps("app"), asks("app", "a"))
    assert service.step() == 2
    service.update_allocation(release("app", "a-0"))
    now[0] += 30 * SECOND
    assert service.step() == 1  # events are not made for somebody who does not hear them
    assert heard.messages[-1].updated[0].state == "Completed"
    assert heard.messages[-1].updated[0].stateTransitionTimestamp == 35 * SECOND


def test_a_threaded_service_steps_itself(service: SchedulerService) -> None:
    with pytest.raises(RuntimeError, match="manual=True"):
        service.step(0)


@pytest.mark.parametrize("threaded", [False, True])
def test_requests_after_the_end_are_refused(threaded: bool) -> None:
    heard = Heard()
    service = SchedulerService(manual=not threaded)
    begin(service, heard, nodes("n1"))
    service.stop()
    service.stop()
    for message in (nodes("n2"), apps("app"), asks("app", "a")):
        with pytest.raises(RuntimeError, match="stopped"):
            send(service, message)
    with pytest.raises(RuntimeError, match="stopped"):
        service.register_resource_manager(register(), heard)
    assert len(heard.calls) == 1


def test_requests_of_many_threads_before_the_end_are_answered(service: SchedulerService) -> None:
    heard = Heard()
    begin(service, heard)

    def work(number: int) -> None:
        for each in range(20):
            service.update_node(nodes(f"n{number}-{each}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.stop()
    assert len(heard.messages) == 160
    assert len(service.scheduler.partition().nodes) == 160


def test_a_race_between_the_end_and_requests_hangs_nobody() -> None:
    for _ in range(20):
        service = SchedulerService()
        service.register_resource_manager(register(), si.NullCallback())
        refused = threading.Event()

        def ask(service: SchedulerService = service, refused: threading.Event = refused) -> None:
            number = 0
            try:
                while True:
                    number += 1
                    service.update_node(nodes(f"n{number}"))
            except RuntimeError:
                refused.set()

        thread = threading.Thread(target=ask)
        thread.start()
        service.stop()
        assert refused.wait(PATIENCE)
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_i6_the_service_knows_connections(manual: SchedulerService) -> None:
    heard = Heard()
    begin(manual, heard, nodes("n1"), apps("app"))
    manual.disconnect("rm")
    manual.update_allocation(asks("app", "a"))
    manual.step(1)
    assert placed(heard) == []
    manual.reconnect("rm")
    manual.step(2)
    assert len(placed(heard)) == 1
    manual.shutdown("rm")
    with pytest.raises(si.RequestError, match="not registered"):
        manual.update_node(nodes("n2"))


# -- predicates ------------------------------------------------------------------------------------


class Picky(Heard):
    """Refuses nodes by name; notes what it was asked."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[tuple[str, str, bool]] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked.append((args.allocationKey, args.nodeID, args.allocate))
        return "taint" if args.nodeID in self.refused else None


class Careful(Picky):
    """Tells a decision from an explanation."""

    def __init__(self, *refused: str) -> None:
        super().__init__(*refused)
        self.read: list[str] = []

    def refusal(self, args: si.PredicatesArgs) -> str | None:
        self.read.append(args.nodeID)
        return "taint" if args.nodeID in self.refused else None


def test_i36_an_explanation_leads_to_no_decision(manual: SchedulerService) -> None:
    heard = Careful("n1", "n2")
    begin(manual, heard, nodes("n1", "n2"), apps("app"), asks("app", "a"))
    manual.step(1)
    heard.asked.clear()
    told = manual.explain("rm", "default", "app", "a").result()
    assert (heard.asked, sorted(heard.read)) == ([], ["n1", "n2"])
    assert "2 nodes: taint" in told.reasons
    assert [each.text for each in told.checks] == list(told.reasons)


def raises(service: SchedulerService) -> None:
    raise OSError("no answer")


def removes_the_node(service: SchedulerService) -> None:
    service.update_node(nodes("n1", action=si.NodeInfo.DECOMISSION))


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [(raises, "no answer"), (removes_the_node, "a predicate cannot send requests")],
)
def test_i36_predicates_that_raise_or_send_requests_say_no(
    wrong: Any, said: str, threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: Any = Heard()
    with SchedulerService(manual=not threaded, clock=lambda: 0) as service:
        heard.predicates = lambda args: wrong(service) if args.nodeID == "n1" else None
        begin(service, heard, nodes("n1", "n2"), apps("app"), asks("app", "a"))
        if not threaded:
            service.step(1)
        heard.wait_for(lambda messages: bool(placed(heard)))
        assert service.read(lambda core: sorted(core.partition().nodes)) == ["n1", "n2"]
        assert service.read(lambda core: core.check()) == []
    assert placed(heard) == [("a-0", "n2")]
    assert said in caplog.text
