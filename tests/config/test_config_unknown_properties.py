"""A property without effect is named, with the one that was meant; an empty queue is refused."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.core.config import ConfigError, load
from quadriga.core.config.properties import unknown_properties


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
def test_a_misspelled_property_is_a_warning_that_names_the_nearest(
    written: str, meant: str
) -> None:
    (warning,) = _load(f"{{name: a, properties: {{{written}: fifo}}}}").warnings
    assert warning.line == 5
    assert warning.path == f"partitions[0].queues[0].queues[0].properties.{written}"
    assert warning.reason == f"unknown property, without effect; did you mean {meant}?"


def test_a_property_like_no_known_one_is_a_warning_without_a_guess() -> None:
    found = unknown_properties(["team", "x" * 10_000, "gang.hold"])
    assert set(found.values()) == {"unknown property, without effect"}
    assert list(found) == ["team", "x" * 10_000]


def test_a_template_is_checked_like_a_queue() -> None:
    template = "{properties: {gang.hodl: 'true', gang.admission: some}}"
    names = [
        warning.path.rpartition("properties.")[2]
        for warning in _load(f"{{name: a, parent: true, childtemplate: {template}}}").warnings
    ]
    assert names == ["gang.hodl", "gang.admission"]


def test_a_property_is_named_where_it_is_written_not_where_it_is_inherited() -> None:
    leaf = "queues: [{name: b}, {name: c}]"
    assert len(_load(f"{{name: a, properties: {{no.such: x}}, {leaf}}}").warnings) == 1


def test_properties_of_another_type_are_one_problem() -> None:
    for queue in ("{name: a, properties: 5}", "{name: a, childtemplate: {properties: 5}}"):
        with pytest.raises(ConfigError) as caught:
            _load(queue)
        assert len(caught.value.problems) == 1


def test_an_empty_item_of_a_list_of_queues_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError) as caught:
        _load("null")
    (problem,) = caught.value.problems
    assert problem.path == "partitions[0].queues[0].queues[0].name"
