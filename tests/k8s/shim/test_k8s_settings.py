"""The settings of the shim, from two ConfigMaps (K47 to K51)."""

import base64
import gzip
from dataclasses import fields, replace
from typing import Any

import pytest

from quadriga.k8s.conversion import patterns
from quadriga.k8s.conversion.settings import (
    CONFIGS_NAME,
    DEFAULTS_NAME,
    Reading,
    Settings,
    change,
    from_maps,
    merge,
    read,
)
from quadriga.k8s.conversion.settings_table import DEFAULTS, KEYS
from quadriga.k8s.objects import ConfigMap
from tests.k8s.decoded import decoded

SECOND = 1_000_000_000


def config_map(data: dict[str, str] | None = None, packed: dict[str, bytes] | None = None) -> Any:
    binary = {key: base64.b64encode(value).decode() for key, value in (packed or {}).items()}
    return decoded(ConfigMap, {"data": data or {}, "binaryData": binary})


def settings_of(**values: str) -> Settings:
    return read({f"service.{key}": value for key, value in values.items()}).settings


def test_k47_k48_the_second_map_replaces_the_first_key_by_key() -> None:
    assert (DEFAULTS_NAME, CONFIGS_NAME) == ("yunikorn-defaults", "yunikorn-configs")
    merged = merge(config_map({"a": "1", "b": "1"}), config_map({"b": "2", "c": "2"}))
    assert (merged.values, merged.errors) == ({"a": "1", "b": "2", "c": "2"}, ())
    assert merge(None, None).values == {}
    assert merge(config_map({"a": "1"}), None).values == {"a": "1"}
    assert from_maps(None, None) == Reading(Settings())
    defaults = config_map({"queues.yaml": "text"}, {"queues.yaml.gz": gzip.compress(b"packed")})
    assert merge(defaults, None).values == {"queues.yaml": "packed"}
    assert merge(defaults, config_map({"queues.yaml": "later"})).values == {"queues.yaml": "later"}
    two = gzip.compress(b"one ") + gzip.compress("zw\u00f6lf".encode())
    merged = merge(None, config_map(packed={"a.gz": two, "b.gz": gzip.compress(b"")}))
    assert (merged.values, merged.errors) == ({"a": "one zw\u00f6lf", "b": ""}, ())


BAD_ARCHIVES = {
    "queues.yaml.gz": (b"no archive", "it is not a gzip archive"),
    "cut.gz": (gzip.compress(b"a" * 100)[:-4], "the gzip archive is not complete"),
    "nothing.gz": (b"", "the gzip archive is not complete"),
    "rest.gz": (gzip.compress(b"a") + b"rest", "it is not a gzip archive"),
    "latin.gz": (gzip.compress(b"\xff"), "it is not UTF-8 text"),
    "bomb.gz": (gzip.compress(bytes(17 << 20)), "it holds more than"),
    "plain": (b"text", "its name does not end in .gz"),
}


@pytest.mark.parametrize("key", BAD_ARCHIVES)
def test_k47_a_bad_archive_is_an_error_and_the_old_settings_stay(key: str) -> None:
    packed, expected = BAD_ARCHIVES[key]
    reading = from_maps(
        config_map({"service.clusterId": "a"}), config_map({"service.x": "1"}, {key: packed})
    )
    assert reading.settings is None
    (error,) = reading.errors
    assert error.startswith(f"{key} in the binaryData of yunikorn-configs: {expected}")
    assert reading.warnings == ("service.x: there is no such setting",)


def test_k48_the_policy_groups_yaml_is_for_the_core_and_others_are_dropped() -> None:
    extra = {"service.policyGroup": "blue", "log.level": "DEBUG", "anything": "else"}
    found = read({**extra, "blue.yaml": "partitions: []", "queues.yaml": "others"}).settings
    assert (found.queues, found.extra) == ("partitions: []", extra)
    found = read({"blue.yaml": "partitions: []"}).settings
    assert (found.policy_group, found.queues) == ("queues", ""), "the core has its default"


def test_every_key_has_its_attribute_and_the_same_texts_make_equal_settings() -> None:
    named = [key.attribute for key in KEYS.values() if not key.ignored]
    own = {each.name for each in fields(Settings)} - {"queues", "extra"}
    assert sorted(named) == sorted(own) == sorted(DEFAULTS)
    values = {"service.clusterId": "a", "queues.yaml": "b", "c": "d"}
    assert read(values) == read(dict(reversed(values.items())))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("clusterId", " prod ", "prod"),
        ("placeholderRunAsUser", "65535", 65535),
        ("placeholderRunAsGroup", "0", None),
        ("placeholderFsGroup", "", None),
        ("schedulerNames", "yunikorn, quadriga,yunikorn", ("yunikorn", "quadriga")),
        ("volumeBindTimeout", "1h30m", 5400 * SECOND),
        ("bindTimeout", "500ms", SECOND // 2),
        ("bindTimeout", "1.5s", SECOND * 3 // 2),
        *(("disableGangScheduling", text, True) for text in "1 t T TRUE true True".split()),
        *(("leaderElection", text, False) for text in "0 f F FALSE false False".split()),
    ],
)
def test_k50_k51_k7_values_are_read_without_spaces(key: str, text: str, value: object) -> None:
    found = getattr(settings_of(**{key: text}), KEYS[f"service.{key}"].attribute)
    assert (found, type(found)) == (value, type(value))


BAD_VALUES = {
    "service.clusterId": ("", "it is empty"),
    "service.schedulerNames": (" , ", "it names no scheduler"),
    "service.schedulingInterval": ("fast", "'fast' is not a duration"),
    "service.bindTimeout": ("0", "'0' is not longer than 0"),
    "service.volumeBindTimeout": ("-1s", "'-1s' is not longer than 0"),
    "service.eventChannelCapacity": ("0", "is not a whole number from 1"),
    "service.disableGangScheduling": ("yes", "'yes' is neither true nor false"),
    "service.enableConfigHotRefresh": ("tRUE", "'tRUE' is neither true nor false"),
    "service.placeholderRunAsUser": ("-1", "is not a whole number from 0"),
    "service.gangRetries": ("3.5", "is not a whole number from 0"),
    "kubernetes.qps": ("0", "is not a whole number from 1"),
    "kubernetes.burst": ("1" * 5000, "is not a whole number from 1"),
    "admissionController.filtering.bypassNamespaces": ("^a$,(", "'(' is not a regular expression"),
}


@pytest.mark.parametrize("key", BAD_VALUES)
def test_k49_a_value_that_cannot_be_read_is_named_with_its_key(key: str) -> None:
    text, expected = BAD_VALUES[key]
    reading = read({key: text})
    assert reading.settings is None
    (error,) = reading.errors
    assert error.startswith(f"{key}: ") and expected in error
    assert len(error) < 400


def test_k51_unknown_keys_warn_and_every_error_is_named() -> None:
    reading = read({"service.clusterID": "a", "kubernetes.qsp": "1", "log.level": "INFO", "x": "1"})
    assert reading.settings is not None
    assert reading.warnings == (
        "kubernetes.qsp: there is no such setting",
        "service.clusterID: there is no such setting",
    )
    reading = read({key: text for key, (text, _) in BAD_VALUES.items()})
    assert [each.partition(": ")[0] for each in reading.errors] == sorted(BAD_VALUES)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("service.schedulingInterval", "1s"),
        ("service.eventChannelCapacity", "1048576"),
        ("service.dispatchTimeout", "5m"),
        ("service.operatorPlugins", "general"),
        ("service.instanceTypeNodeLabelKey", "node.kubernetes.io/instance-type"),
        ("admissionController.filtering.defaultQueue", "root.default"),
    ],
)
def test_k14_k15_settings_without_effect_warn(key: str, text: str) -> None:
    reading = read({key: text})
    assert reading.settings == replace(Settings(), extra={key: text})
    (warning,) = reading.warnings
    assert warning.startswith(f"{key} has no effect: ")


def test_k50_lists_are_expressions_that_match_anywhere() -> None:
    found = read({"admissionController.filtering.processNamespaces": "^spark-, ,team$"}).settings
    names = found.process_namespaces
    assert names == ("^spark-", "team$")
    matched = [patterns.any_matches(names, each) for each in ("spark-j", "a-team", "team-spark-x")]
    assert matched == [True, True, False]
    assert not patterns.any_matches((), "team")


def test_k49_a_change_without_restart_applies_with_the_queues_of_the_old_policy_group() -> None:
    current = read({"queues.yaml": "old"}).settings
    values = {"queues.yaml": "new", "admissionController.accessControl.bypassAuth": "true"}
    reading = change(current, values)
    assert reading == read(values)
    assert (reading.settings.queues, reading.settings.bypass_auth) == ("new", True)
    current = read({"queues.yaml": "old"}).settings
    others = {"service.policyGroup": "blue", "queues.yaml": "new", "blue.yaml": "others"}
    found = change(current, others).settings
    assert (found.policy_group, found.queues) == ("queues", "new")


def test_k49_what_needs_a_restart_is_undone_with_a_warning_and_the_rest_applies() -> None:
    current = read({"service.clusterId": "a", "queues.yaml": "old"}).settings
    reading = change(
        current,
        {"service.clusterId": "b", "kubernetes.qps": "5", "log.level": "DEBUG", "queues.yaml": "x"},
    )
    assert reading.settings == replace(
        current, queues="x", extra={"service.clusterId": "a", "log.level": "DEBUG"}
    )
    assert reading.warnings == (
        "service.clusterId: the change takes effect with a restart",
        "kubernetes.qps: the change takes effect with a restart",
    )
    # also what is taken out
    current = read({"kubernetes.qps": "5"}).settings
    reading = change(current, {})
    assert reading.settings == current
    assert reading.warnings == ("kubernetes.qps: the change takes effect with a restart",)


def test_k49_a_change_with_an_error_changes_nothing_and_one_without_hot_refresh_waits() -> None:
    wrong = {"queues.yaml": "new", "kubernetes.qps": "many"}
    reading = change(Settings(), wrong)
    assert (reading.settings, len(reading.errors)) == (None, 1)
    current = settings_of(enableConfigHotRefresh="F")
    reading = change(current, wrong)
    assert (reading.settings, reading.errors) == (current, ())
    (warning,) = reading.warnings
    assert "restart" in warning
