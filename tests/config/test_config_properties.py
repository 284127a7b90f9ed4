"""Queue properties (2.2.2), and those of gangs (X9, X16, 2.10)."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config import (
    ConfigError,
    DurationError,
    Properties,
    QuantityError,
    inherit,
    load,
    parse_duration,
    parse_properties,
    parse_quantity,
)
from quadriga.core.config.properties import unknown_properties
from quadriga.core.config.quantities import INT64_MAX

SECOND = 10**9


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("application.sort.policy", "fair", "sort_policy", "fair"),
        ("application.sort.policy", "StateAware", "sort_policy", "stateaware"),
        ("application.sort.priority", "disabled", "sort_priority", False),
        ("priority.policy", "fence", "priority_policy", "fence"),
        ("priority.offset", "-1000", "priority_offset", -1000),
        ("priority.offset", "-2147483648", "priority_offset", -(2**31)),
        ("preemption.policy", "disabled", "preemption_policy", "disabled"),
        ("preemption.optout", "Strict", "preemption_optout", "strict"),
        ("preemption.delay", "10s", "preemption_delay", 10 * SECOND),
        ("preemption.quota.delay", "1m", "quota_preemption_delay", 60 * SECOND),
        ("quota.preemption.delay", "1m", "quota_preemption_delay", 60 * SECOND),
        ("application.unschedasks.backoff", "5", "backoff", 5),
        ("application.unschedasks.backoff.delay", "1s", "backoff_delay", SECOND),
        ("gang.hold", "false", "gang_hold", False),
        ("gang.admission", "incremental", "gang_admission", "incremental"),
        ("gang.gather.after", "10m", "gang_gather_after", 600 * SECOND),
        ("gang.gather.patience", "1h", "gang_gather_patience", 3600 * SECOND),
        ("gang.gather.preempt", "overrun", "gang_gather_preempt", True),
        ("gang.wait.limit", "1h30m", "gang_wait_limit", 5400 * SECOND),
        ("gang.timeout.from", "Attempt", "gang_timeout_from", "attempt"),
    ],
)
def test_known_properties_are_typed(name: str, text: str, field: str, value: object) -> None:
    properties, refused = parse_properties({name: text})
    assert dataclasses.asdict(properties) == {**dataclasses.asdict(Properties()), field: value}
    assert not refused


BAD = {
    "application.sort.policy": ("lifo",),
    "application.sort.priority": ("true",),
    "priority.policy": ("",),
    "priority.offset": ("2147483648", "1.5", "9" * 5000),
    "preemption.policy": ("off",),
    "preemption.optout": ("never",),
    "preemption.delay": ("0", "-1s", "10"),
    "quota.preemption.delay": ("-1s",),
    "application.unschedasks.backoff": ("-1",),
    "gang.hold": ("no",),
    "gang.admission": ("half",),
    "gang.gather.preempt": ("always",),
    "gang.wait.limit": ("0s",),
    "gang.timeout.from": ("submission",),
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, t in BAD.items() for text in t])
def test_a_bad_value_keeps_the_default(name: str, text: str) -> None:
    properties, refused = parse_properties({name: text, "unknown": "x"})
    assert properties == Properties()
    assert list(refused) == [name]
    assert refused[name].endswith("the default is used")


def test_what_passes_down() -> None:
    parent = {
        "priority.policy": "fence",
        "priority.offset": "5",
        "preemption.policy": "fence",
        "gang.hold": "false",
        "site": "a",
    }
    assert inherit(parent, {"site": "b"}) == {"gang.hold": "false", "site": "b"}
    assert inherit({"preemption.optout": "strict"}, {}) == {"preemption.optout": "strict"}
    disabled = {"preemption.policy": "disabled"}
    assert inherit(disabled, {}) == disabled
    assert inherit(disabled, {"preemption.policy": "fence"}) == {"preemption.policy": "fence"}


def test_properties_in_a_tree_and_the_warning_where_one_is_written() -> None:
    configuration = load(
        """
partitions:
- queues:
  - name: root
    properties: {gang.admission: incremental, priority.offset: 7, gang.hold: nope, note: on}
    queues:
    - name: a
      properties: {gang.wait.limit: 10m}
"""
    )
    root = configuration.partitions[0].root
    (child,) = root.children
    assert root.properties.priority_offset == 7
    assert child.properties == Properties(
        gang_admission="incremental", gang_wait_limit=600 * SECOND
    )
    assert child.raw_properties == {
        "gang.admission": "incremental",
        "gang.hold": "nope",
        "note": "on",
        "gang.wait.limit": "10m",
    }
    assert (root.properties.gang_wait_limit, Properties().gang_admission) == (None, "")
    warning, note = configuration.warnings
    assert note.path == "partitions[0].queues[0].properties.note"
    assert (warning.path, warning.line) == ("partitions[0].queues[0].properties.gang.hold", 5)


# -- a property without effect is named, with the one that was meant ---------------------------------


def _load(queue: str) -> Any:
    return load(f"partitions:\n- queues:\n  - name: root\n    queues:\n    - {queue}\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("application.sort.polcy", "application.sort.policy"),
        ("Application.Sort.Policy", "application.sort.policy"),
        ("gang.admision", "gang.admission"),
        ("preemption_delay", "preemption.delay"),
        ("reservation.maxshare", "reservation.max.share"),
    ],
)
def test_a_misspelled_property_is_a_warning_naming_the_nearest(written: str, meant: str) -> None:
    (warning,) = _load(f"{{name: a, properties: {{{written}: fifo}}}}").warnings
    assert warning.line == 5
    assert warning.path == f"partitions[0].queues[0].queues[0].properties.{written}"
    assert warning.reason == f"unknown property, without effect; did you mean {meant}?"


def test_a_template_is_checked_like_a_queue_and_a_property_named_where_it_is_written() -> None:
    template = "{properties: {gang.hodl: 'true', gang.admission: some}}"
    names = [
        warning.path.rpartition("properties.")[2]
        for warning in _load(f"{{name: a, parent: true, childtemplate: {template}}}").warnings
    ]
    assert names == ["gang.hodl", "gang.admission"]
    leaf = "queues: [{name: b}, {name: c}]"
    assert len(_load(f"{{name: a, properties: {{no.such: x}}, {leaf}}}").warnings) == 1
    found = unknown_properties(["team", "x" * 10_000, "gang.hold"])
    assert set(found.values()) == {"unknown property, without effect"}
    assert list(found) == ["team", "x" * 10_000]


def test_properties_of_another_type_and_an_empty_item_of_queues_are_one_problem() -> None:
    for queue in ("{name: a, properties: 5}", "{name: a, childtemplate: {properties: 5}}"):
        with pytest.raises(ConfigError) as caught:
            _load(queue)
        assert len(caught.value.problems) == 1
    with pytest.raises(ConfigError) as caught:
        _load("null")
    (problem,) = caught.value.problems
    assert problem.path == "partitions[0].queues[0].queues[0].name"


# -- quantities and durations (2.2.1, 2.2.2, and the examples of 5.13) -------------------------------


POWERS = {"": 1} | {
    f"{prefix}{binary}": base**power
    for binary, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("KMGTPE" if binary else "kMGTPE", 1)
}


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("vcore", "2", 2000),
        ("vcore", "500m", 500),
        ("memory", "2Gi", 2147483648),
        ("memory", "1k", 1000),
        ("memory", " 2 Gi ", 2147483648),
        ("nvidia.com/gpu", "8", 8),
        ("vcore", "1k", 1_000_000),
        ("memory", "0", 0),
        ("memory", "0" * 5000 + "7", 7),
        ("memory", str(INT64_MAX), INT64_MAX),
        ("memory", "7Ei", 7 * 2**60),
    ],
)
def test_5_13_quantity(resource: str, text: str, amount: int) -> None:
    assert parse_quantity(resource, text) == amount


VCORES = ["1mi", str(INT64_MAX)]
MEMORY = ["1K", "1.5", "-1", "+1", "10m", "1ki", "", "G", "1 G i", "\u0661", "8Ei", "9" * 5000]


@pytest.mark.parametrize(
    ("resource", "text"),
    [*(("vcore", t) for t in VCORES), *(("memory", t) for t in (*MEMORY, str(INT64_MAX + 1)))],
)
def test_5_13_quantity_errors(resource: str, text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(resource, text)


@given(st.integers(0, INT64_MAX), st.sampled_from(sorted(POWERS)))
def test_every_amount_survives_being_written(amount: int, suffix: str) -> None:
    count = amount // POWERS[suffix]
    assert parse_quantity("memory", f"{count}{suffix}") == count * POWERS[suffix]
    assert parse_quantity("vcore", f"{amount}m") == amount


@given(st.text())
def test_a_quantity_is_an_int64_or_an_error(text: str) -> None:
    try:
        amount = parse_quantity("vcore", text)
    except QuantityError:
        return
    assert 0 <= amount <= INT64_MAX


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("30s", 30 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1h", 3600 * SECOND),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("0", 0),
        ("-0", 0),
        ("-2ms", -2_000_000),
        ("+3us", 3000),
        ("4\u00b5s5ns", 4005),
        ("0.3ns", 0),
        ("0.1s", SECOND // 10),
    ],
)
def test_durations_are_those_of_go(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "30", "s", ".s", "1d", "1 s", " 1s", "1s ", "1m30", "3000000h", "1e3s", "9" * 200],
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


@given(st.integers(0, INT64_MAX))
def test_every_duration_survives_being_written(nanoseconds: int) -> None:
    assert parse_duration(f"{nanoseconds}ns") == nanoseconds
    seconds, rest = divmod(nanoseconds, SECOND)
    assert parse_duration(f"-{seconds}.{rest:09d}s") == -nanoseconds
