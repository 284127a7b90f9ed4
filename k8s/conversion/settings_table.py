"""The keys of the settings: how the text of each is read, and whether a change needs a restart (K50, K51)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from quadriga.core.config.durations import parse_duration
from quadriga.k8s.conversion import bounds, patterns
from quadriga.k8s.conversion.problems import shown
from quadriga.k8s.tuning import TUNING

_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    #: attribute of `Settings`
    attribute: str
    #: makes the value from the text; raises ValueError
    parse: Callable[[str], Any]
    default: str
    #: a change takes effect only after a restart
    restart: bool
    #: why the setting has no effect here; "" if it has one
    ignored: str = ""


def boolean(text: str) -> bool:
    """Return the boolean as Go parses it. Raises ValueError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"{shown(text)} is neither true nor false")


def _text(text: str) -> str:
    if not text:
        raise ValueError("it is empty")
    return text


def _anything(text: str) -> str:
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part for each in text.split(",") if (part := each.strip())))
    if not names:
        raise ValueError("it names no scheduler")
    return names


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # Twenty digits are enough, and keep int() away from long texts.
        """Return the integer, checked against the range."""
        if re.fullmatch(r"[+-]?[0-9]{1,20}", text) is None or not low <= int(text) <= high:
            raise ValueError(f"{shown(text)} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def _gang_placeholders(text: str) -> bool:
    """Return whether complete gangs have placeholders too."""
    if text not in ("always", "missing"):
        raise ValueError(f"{shown(text)} is neither always nor missing")
    return text == "always"


def _id(text: str) -> int | None:
    """Return a user or group id; 0 and "" mean none."""
    return _number(0, _INT64_MAX)(text) or None if text else None


def _duration(text: str) -> int:
    duration = parse_duration(text)
    if duration <= 0:
        raise ValueError(f"{shown(text)} is not longer than 0")
    return duration


_SCHEDULING: Final = "the shim acts on each event at once"
_QUEUE: Final = "the queue of events has no limit"
_PLACEMENT: Final = "placement rules choose the queue"
_PLUGINS: Final = "there are no plug-ins to choose from"
_RENAMED: Final = "it is read from service.nodeInstanceTypeNodeLabelKey"

_ADMISSION_NAME: Final = "yunikorn-admission-controller-service"
_PAUSE: Final = "registry.k8s.io/pause:3.7"
_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_KUBE_SYSTEM: Final = "^system:serviceaccount:kube-system:"

_HOOK: Final = "admissionController.webHook."
_FILTER: Final = "admissionController.filtering."
_ACCESS: Final = "admissionController.accessControl."

_Row = tuple[str, Callable[[str], Any], str]

# fmt: off
#: settings that take effect after a restart: attribute, reader, default
_RESTART: Final[dict[str, _Row]] = {
    "service.clusterId":                    ("cluster_id",               _text,                 "mycluster"),
    "service.policyGroup":                  ("policy_group",             _text,                 "queues"),
    "service.schedulerNames":               ("scheduler_names",          _names,                "yunikorn"),
    "service.volumeBindTimeout":            ("volume_bind_timeout",      _duration,             "10m"),
    "service.bindTimeout":                  ("bind_timeout",             _duration,             "121s"),
    "service.disableGangScheduling":        ("disable_gang_scheduling",  boolean,               "false"),
    "service.gangPlaceholders":             ("gang_placeholders",        _gang_placeholders,    "always"),
    "service.gangRetries":                  ("gang_retries",             _number(0, _INT32_MAX), "3"),
    "service.gangMaxMembers":               ("gang_max_members",         _number(1, TUNING.largest_gang), "10000"),
    "service.gangMaxTaskGroups":            ("gang_max_groups",          _number(1, TUNING.largest_gang), "64"),
    "service.gangMaxDefinitionBytes":       ("gang_max_definition",      _number(1, TUNING.largest_text), "65536"),
    "service.gangMaxPlaceholderBytes":      ("gang_max_placeholders",    _number(1, _INT32_MAX), "33554432"),
    "service.gangCacheBytes":               ("gang_cache",               _number(0, _INT32_MAX), "4194304"),
    "service.gangScaleUp":                  ("gang_scale_up",            boolean,               "false"),
    "service.applicationIdsPerNamespace":   ("ids_per_namespace",        boolean,               "false"),
    "service.bounds":                       ("bounds",                   bounds.numbers,        ""),
    "service.leaderElection":               ("leader_election",          boolean,               "true"),
    "service.placeholderImage":             ("placeholder_image",        _text,                 _PAUSE),
    "service.placeholderRunAsUser":         ("placeholder_run_as_user",  _id,                   ""),
    "service.placeholderRunAsGroup":        ("placeholder_run_as_group", _id,                   ""),
    "service.placeholderFsGroup":           ("placeholder_fs_group",     _id,                   ""),
    "service.nodeInstanceTypeNodeLabelKey": ("instance_type_label",      _text,                 _INSTANCE_TYPE),
    "kubernetes.qps":                       ("qps",                      _number(1, _INT32_MAX), "1000"),
    "kubernetes.burst":                     ("burst",                    _number(1, _INT32_MAX), "1000"),
    "kubernetes.inflight":                  ("inflight",                 _number(1, 10_000),    "32"),
    "kubernetes.eventsPerSecond":           ("events_per_second",        _number(1, 10_000),    "100"),
    "kubernetes.conditionsPerSecond":       ("conditions_per_second",    _number(1, 10_000),    "50"),
    "service.conditionInterval":            ("condition_interval",       _duration,             "1m"),
    "service.auditInterval":                ("audit_interval",           _duration,             "1m"),
    _FILTER + "generateUniqueAppId":         ("generate_unique_app_id",   boolean,               "false"),
}

#: settings that take effect at once
_LIVE: Final[dict[str, _Row]] = {
    "service.enableConfigHotRefresh":  ("hot_refresh",               boolean,        "true"),
    _HOOK + "amServiceName":           ("admission_service_name",    _text,          _ADMISSION_NAME),
    _HOOK + "schedulerServiceAddress": ("scheduler_service_address", _text,          "yunikorn-service:9080"),
    _HOOK + "failClosed":              ("admission_fails_closed",    boolean,        "false"),
    _FILTER + "processNamespaces":     ("process_namespaces",        patterns.split, ""),
    _FILTER + "bypassNamespaces":      ("bypass_namespaces",         patterns.split, "^kube-system$"),
    _FILTER + "labelNamespaces":       ("label_namespaces",          patterns.split, ""),
    _FILTER + "noLabelNamespaces":     ("no_label_namespaces",       patterns.split, ""),
    _ACCESS + "bypassAuth":            ("bypass_auth",               boolean,        "false"),
    _ACCESS + "trustControllers":      ("trust_controllers",         boolean,        "true"),
    _ACCESS + "systemUsers":           ("system_users",              patterns.split, _KUBE_SYSTEM),
    _ACCESS + "externalUsers":         ("external_users",            patterns.split, ""),
    _ACCESS + "externalGroups":        ("external_groups",           patterns.split, ""),
}

#: settings that are known and have no effect here: reader, reason
_IGNORED: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "service.schedulingInterval":   (_duration,              _SCHEDULING),
    "service.eventChannelCapacity": (_number(1, _INT64_MAX), _QUEUE),
    "service.dispatchTimeout":      (_duration,              _QUEUE),
    "service.operatorPlugins":      (_anything,              _PLUGINS),
    "service.instanceTypeNodeLabelKey": (_anything,          _RENAMED),
    _FILTER + "defaultQueue":        (_anything,              _PLACEMENT),
}
# fmt: on

KEYS: Final[MappingProxyType[str, Key]] = MappingProxyType(
    {
        **{name: Key(*row, restart=True) for name, row in _RESTART.items()},
        **{name: Key(*row, restart=False) for name, row in _LIVE.items()},
        **{
            name: Key("", parse, "", restart=False, ignored=reason)
            for name, (parse, reason) in _IGNORED.items()
        },
    }
)

#: default of each attribute of `Settings`
DEFAULTS: Final[MappingProxyType[str, Any]] = MappingProxyType(
    {key.attribute: key.parse(key.default) for key in KEYS.values() if not key.ignored}
)
