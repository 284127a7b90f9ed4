"""The policy ``expected``: (waiting time / expected run time)³ x size, the greatest first (Q11)."""

from typing import Any

import pytest
from core_world import later, launch, news, queues
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga.base.times import SECOND
from quadriga.core import Options
from quadriga.core.model import predictions
from quadriga.core.ordering import by_run_time
from quadriga.sim.scripted.script import Script

HOUR = 3600


def full(policy: str = "application.sort.policy: expected", **more: Any) -> Script:
    """A node of eight vcores that is in use, so that whoever is next can be seen when it is free."""
    script = Script(queues("default", root=f"properties: {{{policy}}}"), **more)
    script.node("n1", vcore=8)
    launch(script, "other", "o", vcore=8)
    return script


def waits(script: Script, app: str, runtime: int = 0, vcore: int = 8, **more: Any) -> None:
    tags = {"expected.runtime": str(runtime)} if runtime else {}
    launch(script, app, "k", vcore=vcore, tags=tags, **more)


def order(script: Script, *apps: str, ends: str = "other/o") -> list[str]:
    """Who gets the node, one after the other."""
    served = []
    for _ in apps:
        app, key = ends.split("/")
        script.release(app, f"{key}-0")
        (line,) = news(script.schedule())
        ends = line.partition(" ")[0].removesuffix("-0")
        served.append(ends.partition("/")[0])
    return served


def test_q11_of_equal_waits_the_shorter_run_comes_first_until_another_has_waited_long() -> None:
    script = full()
    waits(script, "long", HOUR)
    waits(script, "short", 60)
    later(script, 100)
    assert order(script, "long", "short") == ["short", "long"]
    script = full()
    waits(script, "long", HOUR)
    later(script, 100 * HOUR)
    waits(script, "short", 60)
    later(script, HOUR)
    assert order(script, "long", "short") == ["long", "short"]


def test_q11_of_equal_waits_and_runs_the_larger_comes_first_and_then_the_first() -> None:
    script = full()
    waits(script, "one", HOUR, vcore=5)
    waits(script, "large", HOUR)
    waits(script, "two", HOUR, vcore=5)
    later(script, 100)
    assert order(script, "one", "large", "two") == ["large", "one", "two"]


@pytest.mark.parametrize(("runtime", "first"), [(99, "told"), (101, "unknown")])
def test_q11_unknown_run_times_count_as_the_median_of_the_queue(runtime: int, first: str) -> None:
    script = full("application.sort.policy: expected, runtime.prediction: disabled")
    for at, ran in enumerate((10, 100, 1000)):
        launch(script, f"a{at}", "k", vcore=8)
        script.release("other" if not at else f"a{at - 1}", "o-0" if not at else "k-0")
        script.schedule()
        script.advance(ran)
    script.release("a2", "k-0")  # `other` ran for 0 s: of four the lower middle is 10 s
    launch(script, "last", "o", vcore=8)
    later(script, 5000)
    script.release("last", "o-0")
    launch(script, "next", "o", vcore=8)  # five have ended: 100 s
    waits(script, "told", runtime)
    waits(script, "unknown")
    later(script, 200)
    assert order(script, "told", "unknown", ends="next/o")[0] == first


def test_q11_priority_comes_before_the_score_and_a_time_limit_bounds_what_is_told() -> None:
    script = full()
    waits(script, "told", 50)
    waits(script, "limited", HOUR, timeout_ms=40_000)
    later(script, 100)
    script.release("other", "o-0")
    assert news(script.schedule()) == ["limited/k-0 on n1"]
    script = full()
    waits(script, "short", 60)
    waits(script, "urgent", HOUR, priority=1)
    later(script, 100)
    assert order(script, "short", "urgent") == ["urgent", "short"]


def test_q11_the_wait_of_an_application_begins_anew_with_its_next_ask() -> None:
    script = full()
    waits(script, "old", HOUR)
    later(script, 10 * HOUR)
    assert order(script, "old") == ["old"]
    waits(script, "young", HOUR)
    later(script, 100)
    script.ask("old", "l", vcore=8, tags={"expected.runtime": str(HOUR)})
    later(script, 100)
    script.release("old", "k-0")
    assert news(script.schedule()) == ["young/k-0 on n1"]


def test_q11_explain_names_what_the_order_is_made_of() -> None:
    script = full()
    waits(script, "long", HOUR)
    later(script, 100)
    (check,) = [c for c in script.scheduler.explain("long", "k").checks if c.about == "order"]
    assert check.text == (
        "queue root.default serves by expected run times: waiting time 96 s, run time 3600 s "
        "(told), 1 of the partition; score 1.9e-05"
    )


def test_q11_the_policy_may_change_while_applications_wait() -> None:
    script = full("application.sort.policy: fifo")
    waits(script, "long", HOUR)
    waits(script, "short", 60)
    later(script, 100)
    script.configure(queues("default", root="properties: {application.sort.policy: expected}"))
    assert order(script, "long", "short") == ["short", "long"]


def test_q11_eight_updates_each_time_that_a_wait_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    script = full()
    for number in range(20):
        waits(script, f"a{number}", HOUR)
    later(script, 1024)
    count, begin = [0], by_run_time.begin
    monkeypatch.setattr(
        by_run_time, "begin", lambda app: (count.__setitem__(0, count[0] + 1), begin(app))
    )
    for _ in range(128):
        later(script, 8)
    assert count == [20 * 8]


def test_q11_a_call_renews_a_part_and_the_next_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_run_time, "_MOST", 2)
    script = full()
    apps = [f"a{number}" for number in range(5)]
    for app in apps:
        waits(script, app, HOUR)
    script.advance(100)
    waited = []
    for _ in range(3):
        script.schedule()
        scores = [script.scheduler.application(app).score for app in apps]
        waited.append(sum(score > 0 for score in scores))
    assert waited == [1, 3, 5]  # the first one, which runs by now, costs one as well


# -- what is expected --------------------------------------------------------------------------------


def runs(script: Script, app: str, *times: int, **more: Any) -> None:
    """An application whose asks run for these times, one after the other."""
    script.app(app, queue=more.pop("queue", "root.default"), user=more.pop("user", "user"))
    for at, seconds in enumerate(times):
        script.ask(app, f"k{at}", vcore=1, **more)
        script.schedule()
        script.advance(seconds)
        script.release(app, f"k{at}-0")


def expected(script: Script, app: str = "new", queue: str = "root.default", **more: Any) -> str:
    """What is expected of the ask of a new application, as `explain` has it."""
    script.app(app, queue=queue, user=more.pop("user", "user"), tags=more.pop("app_tags", {}))
    script.ask(app, "k", vcore=10**6, **more)
    found = script.scheduler.explain(app, "k").checks
    return next(c.text for c in found if c.about == "run time").removeprefix("expected run time ")


def node(properties: str = "runtime.prediction: enabled") -> Script:
    script = Script(queues("default", "other", root=f"properties: {{{properties}}}"))
    script.node("n1", vcore=100)
    return script


def test_q11_nine_in_ten_of_the_last_twenty_runs_predict_if_there_were_three() -> None:
    script = node()
    runs(script, "old", 10, 30)
    assert expected(script) == "unknown"
    runs(script, "last", 20)
    assert expected(script, "next") == "30 s (predicted by user, queue and task group)"
    script = node()
    runs(script, "old", *[9000] * 5, *range(1, 21))
    assert expected(script) == "18 s (predicted by user, queue and task group)"
    script = node("runtime.prediction: disabled")
    runs(script, "old", 100, 100, 100)
    assert expected(script) == "unknown"


def test_q11_what_predicts_is_the_closest_that_three_have_ended_of() -> None:
    script = node()
    runs(script, "mine", 10, 10, 10, queue="root.other", user="me")
    runs(script, "theirs", 500, 500, 500, user="them")
    assert expected(script, "a", user="me", queue="root.other").endswith("queue and task group)")
    assert expected(script, "b", user="me") == "10 s (predicted by user)"
    assert expected(script, "c", user="new") == "500 s (predicted by queue)"
    assert expected(script, "d", user="them", group="tg") == "500 s (predicted by user)"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            {"tags": {"expected.runtime": "60"}, "app_tags": {"expected.runtime": "70"}},
            "60 s (told)",
        ),
        ({"app_tags": {"expected.runtime": "70"}}, "70 s (told)"),
        ({"tags": {"expected.runtime": "60", "expected.runtime.bound": "50"}}, "50 s (limit)"),
        ({"tags": {"expected.runtime.bound": "50"}, "timeout_ms": 40_000}, "40 s (limit)"),
        ({"tags": {"expected.runtime": "soon"}}, "100 s (predicted by user, queue and task group)"),
        (
            {"tags": {"expected.runtime.bound": "101"}},
            "100 s (predicted by user, queue and task group)",
        ),
    ],
)
def test_q11_what_is_told_comes_before_what_is_predicted(asked: dict[str, Any], text: str) -> None:
    script = node()
    runs(script, "old", 100, 100, 100)
    assert expected(script, **asked) == text


def test_q11_an_overrun_is_expected_to_last_as_long_again_and_a_minute_at_least() -> None:
    script = node()
    script.app("app", tags={"expected.runtime": "100"})
    script.ask("app", "k", vcore=1)
    script.schedule()
    (running,) = script.scheduler.application("app").allocations.values()
    now = running.created
    ends = [predictions.expected_end(running, now + at * SECOND) for at in (0, 99, 100, 150, 400)]
    assert [(end.time - now) // SECOND for end in ends if end] == [100, 100, 160, 210, 700]


def test_q11_verdicts_compare_what_was_expected_with_what_came() -> None:
    script = node()
    script.scheduler.partition().run_times.judges = True
    for number, (told, ran) in enumerate([(1000, 1050), (1000, 1200), (1000, 900), (1000, 500)]):
        runs(script, f"a{number}", ran, tags={"expected.runtime": str(told)})
    verdicts = script.scheduler.partition().run_times.verdicts
    assert verdicts == {("told", "right"): 1, ("told", "short"): 1, ("told", "long"): 2}


@settings(deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 5000), st.integers(1, 5000), st.integers(1, 8), st.integers(0, 1)),
        min_size=1,
        max_size=12,
    ),
    enabled=st.booleans(),
    limited=st.booleans(),
)
def test_q11_the_order_is_that_of_a_full_sort(
    jobs: list[tuple[int, int, int, int]], enabled: bool, limited: bool
) -> None:
    """With user limits the applications are in lanes."""
    priority = "enabled" if enabled else "disabled"
    script = full(
        f"application.sort.policy: expected, application.sort.priority: {priority}",
        options=Options(reservation_delay=10**18),
    )
    if limited:
        root = f"properties: {{application.sort.policy: expected, application.sort.priority: {priority}}}"
        limit = "limits: [{limit: all, users: ['*'], maxresources: {vcore: 100}}]"
        script.configure(queues("default", root=root, root_default=limit))
    passed, ranks = 0, []
    for at, (gap, runtime, size, urgent) in enumerate(jobs):
        waits(script, f"a{at}", runtime, size, priority=urgent, user=f"u{at % 3}")
        ranks.append((passed, runtime, size, urgent))
        later(script, gap)
        passed += gap

    def rank(at: int) -> tuple[float, ...]:
        since, runtime, size, urgent = ranks[at]
        waited = passed - since
        step = 2 ** max(0, waited.bit_length() - 4)
        score = (waited // step * step) ** 3 * (2**32 * size // 8) * 2**32 // runtime**3
        return (-urgent, -score, at) if enabled else (-score, -urgent, at)

    leaf = script.scheduler.partition().queue("root.default")
    assert leaf is not None
    ordered = sorted(leaf.apps.values(), key=lambda app: app.rank or app.make_rank())
    served = [app.app_id for app in ordered if app.app_id != "other"]
    assert served == [f"a{at}" for at in sorted(range(len(jobs)), key=rank)]
