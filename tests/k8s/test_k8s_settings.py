"""The settings of the shim, from two ConfigMaps (K47 to K51)."""

from __future__ import annotations

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
    found = read({f"service.{key}": value for key, value in values.items()}).settings
    assert found is not None
    return found


# -- two ConfigMaps --------------------------------------------------------------------------------


def test_k47_the_second_map_replaces_the_first_key_by_key() -> None:
    assert (DEFAULTS_NAME, CONFIGS_NAME) == ("yunikorn-defaults", "yunikorn-configs")
    merged = merge(config_map({"a": "1", "b": "1"}), config_map({"b": "2", "c": "2"}))
    assert merged.values == {"a": "1", "b": "2", "c": "2"}
    assert merged.errors == ()


def test_k47_maps_that_are_missing_are_empty() -> None:
    assert merge(None, None).values == {}
    assert merge(config_map({"a": "1"}), None).values == {"a": "1"}
    assert from_maps(None, None) == Reading(Settings())


def test_k47_packed_keys_win_over_texts_of_the_same_map_and_lose_their_suffix() -> None:
    defaults = config_map({"queues.yaml": "text"}, {"queues.yaml.gz": gzip.compress(b"packed")})
    assert merge(defaults, None).values == {"queues.yaml": "packed"}
    assert merge(defaults, config_map({"queues.yaml": "later"})).values == {"queues.yaml": "later"}


def test_k47_an_archive_may_have_several_members_and_be_empty() -> None:
    two = gzip.compress(b"one ") + gzip.compress("zw\u00f6lf".encode())
    merged = merge(None, config_map(packed={"a.gz": two, "b.gz": gzip.compress(b"")}))
    assert merged.values == {"a": "one zw\u00f6lf", "b": ""}
    assert merged.errors == ()


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


# -- keys ------------------------------------------------------------------------------------------


def test_k48_the_policy_groups_yaml_is_for_the_core_and_others_are_dropped() -> None:
    values = {
        "service.policyGroup": "blue",
        "blue.yaml": "partitions: []",
        "queues.yaml": "others",
        "log.level": "DEBUG",
        "anything": "else",
    }
    found = read(values).settings
    assert found is not None
    assert found.queues == "partitions: []"
    assert found.extra == {
        "service.policyGroup": "blue",
        "log.level": "DEBUG",
        "anything": "else",
    }


def test_k48_without_a_yaml_the_core_has_its_default() -> None:
    found = read({"blue.yaml": "partitions: []"}).settings
    assert found is not None
    assert (found.policy_group, found.queues) == ("queues", "")


def test_k50_the_defaults() -> None:
    found = Settings()
    assert found.cluster_id == "mycluster"
    assert found.policy_group == "queues"
    assert found.volume_bind_timeout == 600 * SECOND
    assert found.disable_gang_scheduling is False
    assert found.hot_refresh is True
    assert found.placeholder_image.endswith("/pause:3.7")
    assert found.placeholder_run_as_user is None
    assert found.instance_type_label == "node.kubernetes.io/instance-type"
    assert (found.qps, found.burst) == (1000, 1000)
    assert found.admission_service_name == "yunikorn-admission-controller-service"
    assert found.scheduler_service_address == "yunikorn-service:9080"
    assert found.process_namespaces == found.label_namespaces == found.no_label_namespaces == ()
    assert found.bypass_namespaces == ("^kube-system$",)
    assert found.generate_unique_app_id is False
    assert (found.bypass_auth, found.trust_controllers) == (False, True)
    assert found.system_users == ("^system:serviceaccount:kube-system:",)
    assert found.external_users == found.external_groups == ()


def test_k51_the_defaults_of_our_own_keys() -> None:
    found = Settings()
    assert found.scheduler_names == ("yunikorn",)
    assert found.inflight == 32
    assert found.bind_timeout == 121 * SECOND
    assert found.leader_election is True
    assert found.gang_retries == 3


def test_every_key_has_its_attribute_and_every_attribute_its_key() -> None:
    named = [key.attribute for key in KEYS.values() if not key.ignored]
    own = {each.name for each in fields(Settings)} - {"queues", "extra"}
    assert sorted(named) == sorted(own) == sorted(DEFAULTS)


def test_k50_values_are_read_and_spaces_around_them_are_not() -> None:
    found = settings_of(
        clusterId=" prod ",
        volumeBindTimeout="1h30m",
        placeholderRunAsUser="65535",
        placeholderRunAsGroup="0",
        placeholderFsGroup="",
        enableConfigHotRefresh="F",
    )
    assert found.cluster_id == "prod"
    assert found.volume_bind_timeout == 5400 * SECOND
    assert found.placeholder_run_as_user == 65535
    assert found.placeholder_run_as_group is None, "0 is unset"
    assert found.placeholder_fs_group is None
    assert found.hot_refresh is False


def test_k7_several_schedulers_are_ours() -> None:
    assert settings_of(schedulerNames="yunikorn, quadriga,yunikorn").scheduler_names == (
        "yunikorn",
        "quadriga",
    )


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_k51_true(text: str) -> None:
    assert settings_of(disableGangScheduling=text).disable_gang_scheduling is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_k51_false(text: str) -> None:
    assert settings_of(leaderElection=text).leader_election is False


@pytest.mark.parametrize(
    ("text", "ns"), [("500ms", SECOND // 2), ("1h30m", 5400 * SECOND), ("1.5s", SECOND * 3 // 2)]
)
def test_k51_durations_are_written_as_in_go(text: str, ns: int) -> None:
    assert settings_of(bindTimeout=text).bind_timeout == ns


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
    assert error.startswith(f"{key}: ")
    assert expected in error
    assert len(error) < 400


def test_k49_every_error_is_named() -> None:
    reading = read({key: text for key, (text, _) in BAD_VALUES.items()})
    assert [each.partition(": ")[0] for each in reading.errors] == sorted(BAD_VALUES)


def test_k51_unknown_keys_warn() -> None:
    reading = read({"service.clusterID": "a", "kubernetes.qsp": "1", "log.level": "INFO", "x": "1"})
    assert reading.settings is not None
    assert reading.warnings == (
        "kubernetes.qsp: there is no such setting",
        "service.clusterID: there is no such setting",
    )


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
    assert found is not None
    assert found.process_namespaces == ("^spark-", "team$")
    assert patterns.any_matches(found.process_namespaces, "spark-jobs")
    assert patterns.any_matches(found.process_namespaces, "blue-team")
    assert not patterns.any_matches(found.process_namespaces, "team-spark-x")
    assert not patterns.any_matches((), "team")


# -- changes ---------------------------------------------------------------------------------------


def test_k49_a_change_without_restart_applies() -> None:
    current = read({"queues.yaml": "old"}).settings
    assert current is not None
    values = {"queues.yaml": "new", "admissionController.accessControl.bypassAuth": "true"}
    reading = change(current, values)
    assert reading == read(values)
    assert reading.settings is not None
    assert reading.settings.queues == "new"
    assert reading.settings.bypass_auth is True


def test_k49_what_needs_a_restart_is_undone_with_a_warning_and_the_rest_applies() -> None:
    current = read({"service.clusterId": "a", "queues.yaml": "old"}).settings
    assert current is not None
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


def test_k49_a_setting_that_is_taken_out_stays_until_the_restart() -> None:
    current = read({"kubernetes.qps": "5"}).settings
    assert current is not None
    reading = change(current, {})
    assert reading.settings == current
    assert reading.warnings == ("kubernetes.qps: the change takes effect with a restart",)


def test_k49_with_another_policy_group_the_queues_are_those_of_the_old_one() -> None:
    current = read({"queues.yaml": "old"}).settings
    assert current is not None
    reading = change(
        current, {"service.policyGroup": "blue", "queues.yaml": "new", "blue.yaml": "others"}
    )
    assert reading.settings is not None
    assert (reading.settings.policy_group, reading.settings.queues) == ("queues", "new")


def test_k49_a_change_with_an_error_changes_nothing() -> None:
    reading = change(Settings(), {"queues.yaml": "new", "kubernetes.qps": "many"})
    assert reading.settings is None
    assert len(reading.errors) == 1


def test_k49_without_hot_refresh_a_change_waits_for_the_restart() -> None:
    current = settings_of(enableConfigHotRefresh="false")
    reading = change(current, {"queues.yaml": "new", "kubernetes.qps": "many"})
    assert reading.settings == current
    assert reading.errors == ()
    (warning,) = reading.warnings
    assert "restart" in warning


def test_the_same_texts_make_equal_settings() -> None:
    values = {"service.clusterId": "a", "queues.yaml": "b", "c": "d"}
    assert read(values) == read(dict(reversed(values.items())))
