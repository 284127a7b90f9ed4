"""The settings of the shim, from two ConfigMaps (K47 to K51).

`merge` makes one text for each key of both ConfigMaps. `read` makes `Settings` from the texts, and `change`
applies later ones as far as possible without a restart.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from quadriga.k8s.conversion.settings_table import DEFAULTS, KEYS
from quadriga.k8s.objects import ConfigMap
from quadriga.k8s.tuning import TUNING

#: names of the ConfigMaps; a key of the second one replaces the same key of the first one
DEFAULTS_NAME: Final = "yunikorn-defaults"
CONFIGS_NAME: Final = "yunikorn-configs"

_COMPRESSED: Final = ".gz"
_YAML: Final = ".yaml"
_GZIP: Final = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the ConfigMaps. Times are in ns."""

    cluster_id: str = DEFAULTS["cluster_id"]
    policy_group: str = DEFAULTS["policy_group"]
    #: pods with one of these scheduler names are ours, all others are foreign (K7)
    scheduler_names: tuple[str, ...] = DEFAULTS["scheduler_names"]
    volume_bind_timeout: int = DEFAULTS["volume_bind_timeout"]
    bind_timeout: int = DEFAULTS["bind_timeout"]
    disable_gang_scheduling: bool = DEFAULTS["disable_gang_scheduling"]
    #: the same application id in two namespaces stands for two applications (K52)
    ids_per_namespace: bool = DEFAULTS["ids_per_namespace"]
    #: a gang has placeholders even if all its members exist
    gang_placeholders: bool = DEFAULTS["gang_placeholders"]
    #: how often per minute a group's lost placeholders are recreated
    gang_retries: int = DEFAULTS["gang_retries"]
    #: limits on the size of API objects, by the names in ``bounds``
    bounds: Mapping[str, int] = field(default_factory=lambda: DEFAULTS["bounds"])
    #: limits of a gang (Q16): its members, its task groups, the bytes of its definition, and the bytes that all
    #: its placeholders copy from the definition
    gang_max_members: int = DEFAULTS["gang_max_members"]
    gang_max_groups: int = DEFAULTS["gang_max_groups"]
    gang_max_definition: int = DEFAULTS["gang_max_definition"]
    gang_max_placeholders: int = DEFAULTS["gang_max_placeholders"]
    #: bytes of the definitions that are kept parsed
    gang_cache: int = DEFAULTS["gang_cache"]
    #: an autoscaler adds nodes for waiting pods, so placeholders are created for gangs that no nodes can hold
    #: yet
    gang_scale_up: bool = DEFAULTS["gang_scale_up"]
    #: changes of the ConfigMaps take effect at once
    hot_refresh: bool = DEFAULTS["hot_refresh"]
    leader_election: bool = DEFAULTS["leader_election"]
    placeholder_image: str = DEFAULTS["placeholder_image"]
    placeholder_run_as_user: int | None = DEFAULTS["placeholder_run_as_user"]
    placeholder_run_as_group: int | None = DEFAULTS["placeholder_run_as_group"]
    placeholder_fs_group: int | None = DEFAULTS["placeholder_fs_group"]
    #: label of a node with the machine type
    instance_type_label: str = DEFAULTS["instance_type_label"]
    #: requests to the API server: per second, and at once
    qps: int = DEFAULTS["qps"]
    burst: int = DEFAULTS["burst"]
    #: limit of unanswered requests
    inflight: int = DEFAULTS["inflight"]
    #: Kubernetes events written per second; a tenth of it is left for those of type Normal while binds wait
    events_per_second: int = DEFAULTS["events_per_second"]
    #: conditions of pods, and of PodGroups, written per second
    conditions_per_second: int = DEFAULTS["conditions_per_second"]
    #: time between two messages of one pod's condition
    condition_interval: int = DEFAULTS["condition_interval"]
    #: time from the end of an audit to the next one (K176)
    audit_interval: int = DEFAULTS["audit_interval"]

    # Settings of admission. The lists are regular expressions for `patterns.any_matches`.
    admission_service_name: str = DEFAULTS["admission_service_name"]
    scheduler_service_address: str = DEFAULTS["scheduler_service_address"]
    #: while the webhook does not answer, a user that the requester may not claim is refused (K169)
    admission_fails_closed: bool = DEFAULTS["admission_fails_closed"]
    process_namespaces: tuple[str, ...] = DEFAULTS["process_namespaces"]
    bypass_namespaces: tuple[str, ...] = DEFAULTS["bypass_namespaces"]
    label_namespaces: tuple[str, ...] = DEFAULTS["label_namespaces"]
    no_label_namespaces: tuple[str, ...] = DEFAULTS["no_label_namespaces"]
    generate_unique_app_id: bool = DEFAULTS["generate_unique_app_id"]
    bypass_auth: bool = DEFAULTS["bypass_auth"]
    trust_controllers: bool = DEFAULTS["trust_controllers"]
    system_users: tuple[str, ...] = DEFAULTS["system_users"]
    external_users: tuple[str, ...] = DEFAULTS["external_users"]
    external_groups: tuple[str, ...] = DEFAULTS["external_groups"]

    #: the core's configuration (YAML); "" for the core's default
    queues: str = ""
    #: every other key, for the core (K48)
    extra: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Merged:
    """One text for each key of both ConfigMaps, and why some have none."""

    values: Mapping[str, str]
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings, or every error with its key: then the old settings stay (K49).

    Warnings are about settings that have no effect.
    """

    settings: Settings | None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def merge(defaults: ConfigMap | None, configs: ConfigMap | None) -> Merged:
    """Return the texts of both ConfigMaps; the second one takes precedence, and a missing one is empty.

    Keys of ``binaryData`` end in ``.gz``, are unpacked, and lose the suffix (K47).
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    room = TUNING.config_map_bytes
    for name, config_map in ((DEFAULTS_NAME, defaults), (CONFIGS_NAME, configs)):
        if config_map is None:
            continue
        values.update(config_map.data)
        for key, packed in sorted(config_map.binary_data.items()):
            try:
                text, taken = _unpacked(key, packed, room)
                values[key.removesuffix(_COMPRESSED)] = text
                room -= taken
            except ValueError as error:
                errors.append(f"{key} in the binaryData of {name}: {error}")
    return Merged(MappingProxyType(dict(sorted(values.items()))), tuple(errors))


def _unpacked(key: str, packed: bytes, room: int) -> tuple[str, int]:
    """Return the text, and how many bytes of ``room`` it takes."""
    if not key.endswith(_COMPRESSED):
        raise ValueError(f"its name does not end in {_COMPRESSED}")
    # A gzip file can have several members.
    unpacked, rest = b"", packed
    while True:
        member = zlib.decompressobj(_GZIP)
        try:
            unpacked += member.decompress(rest, room + 1 - len(unpacked))
        except zlib.error as error:
            raise ValueError(f"it is not a gzip archive: {error}") from None
        if len(unpacked) > room:
            raise ValueError(
                f"it holds more than {TUNING.config_map_bytes} bytes, with all others before it"
            )
        if not member.eof:
            raise ValueError("the gzip archive is not complete")
        rest = member.unused_data
        if not rest:
            break
    try:
        return unpacked.decode("utf-8"), len(unpacked)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text: {error}") from None


def read(values: Mapping[str, str]) -> Reading:
    """Return the settings of merged texts. All values are read, so that every error is named."""
    found: dict[str, Any] = {}
    errors: list[str] = []
    warnings: list[str] = []
    for name, text in sorted(values.items()):
        key = KEYS.get(name)
        if key is None:
            if name.startswith(("service.", "kubernetes.", "admissionController.")):
                warnings.append(f"{name}: there is no such setting")
            continue
        try:
            value = key.parse(text.strip())
        except ValueError as error:
            errors.append(f"{name}: {error}")
            continue
        if key.ignored:
            warnings.append(f"{name} has no effect: {key.ignored}")
        else:
            found[key.attribute] = value
    if errors:
        return Reading(None, tuple(errors), tuple(warnings))
    own = found.get("policy_group", DEFAULTS["policy_group"]) + _YAML
    extra = {name: text for name, text in sorted(values.items()) if not name.endswith(_YAML)}
    settings = Settings(**found, queues=values.get(own, ""), extra=MappingProxyType(extra))
    return Reading(settings, (), tuple(warnings))


def from_maps(defaults: ConfigMap | None, configs: ConfigMap | None) -> Reading:
    """Return the settings of two ConfigMaps: `merge`, then `read`."""
    merged = merge(defaults, configs)
    reading = read(merged.values)
    if merged.errors:
        return Reading(None, (*merged.errors, *reading.errors), reading.warnings)
    return reading


def change(current: Settings, values: Mapping[str, str]) -> Reading:
    """Return the current settings after a change of the texts.

    A setting that needs a restart keeps its value, with a warning (K49). Without hot refresh all settings keep
    their values.
    """
    if not current.hot_refresh:
        name = "service.enableConfigHotRefresh"
        return Reading(current, (), (f"{name} is false: the change takes effect with a restart",))
    reading = read(values)
    wanted = reading.settings
    if wanted is None:
        return reading
    warnings = list(reading.warnings)
    kept: dict[str, Any] = {}
    extra = dict(wanted.extra)
    for name, key in KEYS.items():
        if not key.restart:
            continue
        before, after = getattr(current, key.attribute), getattr(wanted, key.attribute)
        if before == after:
            continue
        kept[key.attribute] = before
        _keep(extra, current.extra, name)
        warnings.append(f"{name}: the change takes effect with a restart")
    if not kept:
        return Reading(wanted, (), tuple(warnings))
    queues = values.get(current.policy_group + _YAML, "")
    undone = replace(wanted, **kept, queues=queues, extra=MappingProxyType(extra))
    return Reading(undone, (), tuple(warnings))


def _keep(extra: dict[str, str], before: Mapping[str, str], name: str) -> None:
    if name in before:
        extra[name] = before[name]
    else:
        extra.pop(name, None)
