"""What views say of asks, allocations, gangs and victims (2.14), and what is kept from others (Q8)."""

from core_steps import later, on_nodes, run, serve, submit
from core_world import queues, scripted
from views_side import TREE, app_of, ask_of, has, log_of, views_of

from quadriga.core.views import Holdings, holdings_of
from quadriga.sim.scripted.script import ONE_QUEUE, Script
from quadriga.web.pages.data.application import application

# -- asks ------------------------------------------------------------------------------------------


def test_2_14_the_log_of_an_ask_says_what_is_in_its_way_now() -> None:
    script = on_nodes(TREE, n1={"vcore": 8000, "memory": 100}, n2={"vcore": 8000, "memory": 100})
    script.app("app", "root.prod.web")
    script.app("dev", "root.dev")
    script.ask("app", "big", vcore=1000, memory=41)
    script.ask("dev", "wide", vcore=9000)
    assert not ask_of(script, "app", "big")["schedulingAttempted"]
    script.schedule()
    assert log_of(script, "app", "big") == ["Not enough queue quota"]
    assert log_of(script, "dev", "wide") == ["No node has room"]
    for app, key in (("app", "big"), ("dev", "wide")):
        assert ask_of(script, app, key)["schedulingAttempted"]
    assert not ask_of(script, "dev", "wide")["triggeredScaleUp"]
    script.advance(2)
    assert ask_of(script, "dev", "wide")["triggeredScaleUp"]
    entry = ask_of(script, "app", "big")["allocationLog"][0]
    assert (entry["lastOccurrence"], entry["count"]) == (2 * 10**9, 1)
    script.node("n3", vcore=9000, memory=10)
    script.schedule()
    assert app_of(script, "dev")["requests"] == []
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "no")
    serve(script, "dev", "k", vcore=1000)
    assert log_of(script, "dev", "k") == ["Predicate failed on every node"]


def test_x9_x16_g29_the_log_knows_the_gang() -> None:
    script = on_nodes(TREE, n1={"vcore": 8000, "memory": 80})
    script.app("first", "root.prod.batch", gang={"vcore": 4000})
    script.ask("first", "p1", "p2", "p3", group="tg", placeholder=True, vcore=1000)
    script.ask("first", "real", group="tg", vcore=1000)
    script.app("second", "root.prod.batch", gang={"vcore": 4000})
    serve(script, "second", "q1", group="tg", placeholder=True, vcore=1000)
    assert log_of(script, "first", "real") == ["Held until the gang is complete"]
    assert log_of(script, "second", "q1") == ["Not enough queue quota for the whole gang"]
    script.ask("first", "p4", group="tg", placeholder=True, vcore=1000)
    script.schedule(1)  # the last placeholder
    assert log_of(script, "first", "real") == ["Waiting for a placeholder of its task group"]
    script.schedule(1)
    assert log_of(script, "first", "real") == ["Waiting for the placeholder to be released"]
    parked = ask_of(script, "first", "real")
    assert (parked["pendingCount"], parked["schedulingAttempted"]) == (0, True)


PREEMPTING = queues(
    "low",
    "high",
    low="resources: {guaranteed: {vcore: 500m}}",
    high="resources: {guaranteed: {vcore: 2}}",
)


def test_2_8_preemption_shows_on_the_ask_its_victims_and_their_queues() -> None:
    script = on_nodes(PREEMPTING, n1=2000)
    run(script, "low", "v", queue="root.low", repeat=2, vcore=1000)
    script.app("high", "root.high")
    serve(script, "high", "h", preempt=(True, True), vcore=1000)
    assert not ask_of(script, "high", "h")["triggeredPreemption"]
    later(script, 31)
    assert ask_of(script, "high", "h")["triggeredPreemption"]
    assert len([a["uuid"] for a in app_of(script, "low")["allocations"] if a["preempted"]]) == 1
    views = views_of(script)
    for path in ("root", "root.low"):
        assert views.queue("default", path)["preemptingResource"] == {"vcore": 1000}
    assert views.queue("default", "root.high")["preemptingResource"] == {}
    script.confirm()
    assert views.queues("default")["preemptingResource"] == {}
    history = app_of(script, "low")["resourceHistory"]
    assert history["preemptedResource"] == {"UNKNOWN": {"vcore": 31_000}}


def test_2_2_2_an_application_that_is_left_alone_says_until_when() -> None:
    script = Script(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a, "
        "properties: {application.unschedasks.backoff: '1', "
        "application.unschedasks.backoff.delay: 10s}}]}]}]"
    )
    script.node("n1", vcore=1000)
    submit(script, "app", "k", "l", queue="root.a", vcore=600)
    assert "backoffDeadline" not in app_of(script, "app")
    script.schedule()
    assert app_of(script, "app")["backoffDeadline"] == 10 * 10**9
    assert log_of(script, "app", "l")[-1].startswith("Application is left alone")
    script.advance(11)
    assert "backoffDeadline" not in app_of(script, "app")


# -- allocations, gangs ----------------------------------------------------------------------------


def test_2_14_who_took_over_a_placeholder_has_waited_since_that_one_was_placed() -> None:
    script = on_nodes(n1=4000)
    submit(script, "g", "p1", "p2", gang={"vcore": 2000}, group="tg", placeholder=True, vcore=1000)
    later(script, 1)
    script.advance(1)
    serve(script, "g", "r1", group="tg", vcore=1000)
    placed = {a["uuid"]: a for a in app_of(script, "g")["allocations"]}
    assert set(placed) == {"p1-0", "p2-0"}  # the real one is announced on confirmation (G33)
    script.advance(3)
    script.confirm()
    placed = {a["uuid"]: a for a in app_of(script, "g")["allocations"]}
    assert set(placed) == {"p2-0", "r1-0"}
    real = placed["r1-0"]
    assert (real["placeholder"], real["placeholderUsed"]) == (False, True)
    assert (real["requestTime"], real["allocationTime"]) == (1 * 10**9, 5 * 10**9)
    assert real["allocationDelay"] == 4 * 10**9
    assert (placed["p2-0"]["placeholder"], placed["p2-0"]["placeholderUsed"]) == (True, False)


def test_q8_a_gang_that_waits_says_when_and_where_its_start_is_planned() -> None:
    """The page, REST and ``explain`` have it from one place; a gang that is placed has none of it."""
    root = "properties: {gang.admission: atomic, gang.gather.after: 1m, gang.timeout.from: attempt}"
    script = scripted(queues("default", root=root), nodes=("n1", "n2"), vcore=4000)
    for name, tags in (("a", {"expected.runtime": "300"}), ("b", {})):
        script.app(name, tags=tags)
        serve(script, name, "k", vcore=3000)
    submit(script, "g", "p1", "p2", gang={"vcore": 8000}, group="tg", placeholder=True, vcore=4000)
    later(script, 0)
    minute, budget = 60 * 10**9, 12096 * 10**9
    waits = {"style": "Soft", "lacks": "nodes", "members": 2, "missing": 2, "budgetLeft": budget}
    since = {"waitingSince": 0, "mayGatherFrom": minute, "timesOut": 15 * minute}
    assert app_of(script, "g")["waitingGang"] == {**waits, **since, "mayGather": False}
    explained = script.scheduler.explain("g", "p1")
    (check,) = [each.text for each in explained.checks if each.about == "planned start"]
    budget_left = "and the budget for idle capacity has 3.36 hours of the whole cluster left"
    assert check == f"its start may be planned in 60 s, {budget_left}"
    later(script, 60)
    found = app_of(script, "g")["waitingGang"]
    assert found["mayGather"]
    assert found["plannedStart"] == {
        "start": 5 * minute,
        "promised": 5 * minute,
        "nodes": ["n1", "n2"],
        "nodeCount": 2,
        "users": ["a", "b"],
        "userCount": 2,
        "estimates": {"told": 1, "limit": 0, "predicted": 0, "unknown": 1},
        "overran": 0,
    }
    assert application(script.scheduler, "default", "g")["waiting"] == found
    said = script.scheduler.explain("g", "p1").verdict
    plan = "on n1, n2, which a, b use until then (expected ends: 1 told, 1 unknown)"
    assert f"its start is planned in 240 s {plan}, {budget_left}" in said
    for name in "ab":
        script.release(name, "k-0")
    script.schedule()
    assert "waitingGang" not in app_of(script, "g")
    assert application(script.scheduler, "default", "g")["waiting"] is None


def test_v4_placeholder_data_adds_up_through_replacement_and_timeout() -> None:
    script = on_nodes(n1=8000)
    script.app("g", gang={"vcore": 5000}, timeout_ms=10_000)
    script.ask("g", "b1", "b2", group="beta", placeholder=True, vcore=1000)
    serve(script, "g", "a1", "a2", "a3", group="alpha", placeholder=True, vcore=1000)
    serve(script, "g", "r1", group="alpha", vcore=1000)
    script.confirm()

    def data() -> list[tuple[str, int, int, int]]:
        return [
            (each["taskGroupName"], each["count"], each["replaced"], each["timedout"])
            for each in app_of(script, "g")["placeholderData"]
        ]

    assert data() == [("alpha", 3, 1, 0), ("beta", 2, 0, 0)]
    script.advance(11)
    script.confirm()
    assert data() == [("alpha", 3, 1, 2), ("beta", 2, 0, 2)]
    (alpha, _) = app_of(script, "g")["placeholderData"]
    assert alpha["minResource"] == {"vcore": 1000}


def held(script: Script, app: str) -> Holdings:
    return holdings_of(script.scheduler.application(app))


def test_an_application_holds_the_nodes_that_are_reserved_for_its_asks() -> None:
    script = on_nodes(n1=4000)
    run(script, "small", "s", vcore=2000)
    script.node("n2", vcore=3000)
    submit(script, "large", "l", vcore=4000)
    later(script, 3)
    assert held(script, "large") == Holdings(reservations=(("n1", "l"),))
    # and named on both sides (2.7)
    has(app_of(script, "large"), hasReserved=True, reservations=["n1|l"])
    has(views_of(script).node("default", "n1"), isReserved=True, reservations=["large|l"])
    has(app_of(script, "small"), hasReserved=False)
    assert held(script, "small") == Holdings()


def test_an_application_that_has_ended_holds_nothing() -> None:
    assert held(scripted(ONE_QUEUE, "rejected:root.nowhere"), "rejected") == Holdings()
