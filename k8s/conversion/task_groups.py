"""Task groups: the gang that an application declares, and how long it waits (K61 to K68).

They are read from the pod that creates the application. With any error the application has no gang, and an
event says why. A definition that exceeds a bound of the settings is not an error but a refusal: the gang may
really be that large, so its pods are not scheduled one by one (Q16). See D260.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import msgspec

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.bounds import GANG_TIMEOUT
from quadriga.k8s.conversion.go_json import Fields, Items, TextMap, decode, int32, int64, text
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.quantities import CPU, INT64_MAX, VCORE, QuantityError, exact
from quadriga.k8s.conversion.resources import PODS, Amounts, of_pod
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.weighted_cache import WeightedCache
from quadriga.k8s.objects import Pod, Toleration
from quadriga.k8s.tuning import TUNING

HARD: Final = "Hard"
_SOFT: Final = "Soft"
_TIMEOUT_KEY: Final = "placeholderTimeoutInSeconds"
_STYLE_KEY: Final = "gangSchedulingStyle"


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One group of a gang: the number of pods, and the size of each."""

    name: str
    min_member: int
    #: in the scheduler's units, without ``pods``
    resources: Mapping[str, int]
    #: as quantities, for the placeholder's container
    min_resource: Mapping[str, str]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    node_selector: Mapping[str, str]
    #: as the API spells them, for the placeholder
    tolerations: Sequence[Mapping[str, Any]]
    #: the same in the form that `_tolerated` returns, for comparison
    tolerated: frozenset[tuple[str, str, str, str]]
    affinity: Mapping[str, Any] | None
    topology_spread_constraints: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Policy:
    """When a gang gives up, and what happens then (K67)."""

    #: ``Hard`` or ``Soft``
    style: str = _SOFT
    #: 0 for the core's default, below 0 for never
    timeout_seconds: int = 0


@dataclass(frozen=True, slots=True)
class TaskGroups:
    """The gang of a pod; without groups there is none."""

    groups: tuple[TaskGroup, ...] = ()
    policy: Policy = Policy()
    problems: tuple[Problem, ...] = ()
    #: the exceeded bound; "" for none. A refused gang has no groups, and its pods wait (Q16)
    refusal: str = ""

    def group(self, name: str) -> TaskGroup | None:
        """Return the group of this name."""
        return next((each for each in self.groups if each.name == name), None)


class _BeyondBound(Exception):
    """A definition exceeds a setting. The text names what, how much, and the setting."""


_NO_GANG: Final = TaskGroups()
#: by definition, policy and the bounds under which they were read
_parsed: Final[WeightedCache[tuple[str, str, int, int, int, int], TaskGroups]] = WeightedCache()


def read(pod: Pod, settings: Settings) -> TaskGroups:
    """Return groups and policy of the pod's annotations, and their problems."""
    if settings.disable_gang_scheduling:
        return _NO_GANG
    annotations = pod.metadata.annotations
    definition = annotations.get(keys.TASK_GROUPS, "")
    parameters = annotations.get(keys.POLICY_PARAMETERS, "")
    if not definition and not parameters:
        return _NO_GANG
    most = settings.gang_max_definition
    for key, text_of_key in (
        (keys.TASK_GROUPS, definition),
        (keys.POLICY_PARAMETERS, parameters),
    ):
        if size := _size_beyond(text_of_key, most):
            bound = f"the bound is {most} bytes (service.gangMaxDefinitionBytes)"
            return TaskGroups(refusal=f"annotation {key} has {size} bytes, {bound}")
    bounds = (
        settings.gang_max_members,
        settings.gang_max_groups,
        settings.gang_max_placeholders,
        settings.bounds[GANG_TIMEOUT],
    )
    weight = len(definition) + len(parameters) + TUNING.cache_entry_bytes
    return _parsed.get(
        (definition, parameters, *bounds),
        weight,
        settings.gang_cache,
        lambda: _read(definition, parameters, *bounds),
    )


def definition_of(pod: Pod, settings: Settings) -> str:
    """Return the definition in the pod's annotations; "" if there is none or it is too long to be read."""
    return _bounded(pod, keys.TASK_GROUPS, settings)


def parameters_of(pod: Pod, settings: Settings) -> str:
    """Return the policy in the pod's annotations; "" if there is none or it is too long to be read."""
    return _bounded(pod, keys.POLICY_PARAMETERS, settings)


def _bounded(pod: Pod, key: str, settings: Settings) -> str:
    text_of_key = pod.metadata.annotations.get(key, "")
    return "" if _size_beyond(text_of_key, settings.gang_max_definition) else text_of_key


def hash_of(definition: str) -> str:
    """Return the hash that identifies a definition on the placeholders of its gang."""
    return hashlib.sha256(definition.encode("utf-8", "replace")).hexdigest()[:32]


def _size_beyond(source: str, most: int) -> int:
    """Return the size of the text in bytes if it exceeds ``most``, else 0."""
    if len(source) * 4 <= most:
        return 0
    size = len(source.encode("utf-8", "replace"))
    return size if size > most else 0


def _read(
    definition: str, parameters: str, members: int, most_groups: int, copies: int, longest: int
) -> TaskGroups:
    policy, skipped = _read_policy(parameters, longest)
    problems = [
        _problem(f"annotation {keys.POLICY_PARAMETERS}: {each}")
        for each in skipped[: TUNING.problems_named]
    ]
    if len(skipped) > TUNING.problems_named:
        more = f"{len(skipped) - TUNING.problems_named} more items are skipped"
        problems.append(_problem(f"annotation {keys.POLICY_PARAMETERS}: {more}"))
    groups: tuple[TaskGroup, ...] = ()
    if definition:
        unknown: list[str] = []
        try:
            groups = _read_groups(definition, unknown, members, most_groups, copies)
        except _BeyondBound as beyond:
            refusal = f"annotation {keys.TASK_GROUPS}: {beyond}"
            return TaskGroups((), policy, tuple(problems), refusal)
        except ValueError as error:
            where = f"annotation {keys.TASK_GROUPS}: {error}: {shown(definition)}"
            problems.append(_problem(f"the pods run without gang scheduling: {where}"))
        else:
            if unknown:
                fields = ", ".join(unknown[: TUNING.problems_named])
                if len(unknown) > TUNING.problems_named:
                    fields += f" and {len(unknown) - TUNING.problems_named} more"
                problems.append(_problem(f"annotation {keys.TASK_GROUPS}: ignored: {fields}"))
    return TaskGroups(groups, policy, tuple(problems))


def _problem(note: str) -> Problem:
    return Problem("GangScheduling", "TaskGroupsError", note)


def refusal_of(gang: TaskGroups) -> Problem | None:
    """Return the problem that is reported to each pod of a refused gang."""
    return _problem(f"the pod is not scheduled: {gang.refusal}") if gang.refusal else None


# -- the definition --------------------------------------------------------------------------------


def _quantity(value: Any, path: str, unknown: list[str]) -> str:
    """Return a quantity as text; JSON numbers are quantities too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{path} is not a quantity")
    return value.strip() if isinstance(value, str) else repr(value)


_TEXTS: Final = TextMap(text)
_REQUIREMENT: Final = Fields(key=text, operator=text, values=Items(text))
_SELECTOR: Final = Fields(matchLabels=_TEXTS, matchExpressions=Items(_REQUIREMENT))
_NODE_TERM: Final = Fields(matchExpressions=Items(_REQUIREMENT), matchFields=Items(_REQUIREMENT))
_POD_TERM: Final = Fields(
    labelSelector=_SELECTOR,
    namespaces=Items(text),
    topologyKey=text,
    namespaceSelector=_SELECTOR,
    matchLabelKeys=Items(text),
    mismatchLabelKeys=Items(text),
)
_POD_AFFINITY: Final = Fields(
    requiredDuringSchedulingIgnoredDuringExecution=Items(_POD_TERM),
    preferredDuringSchedulingIgnoredDuringExecution=Items(
        Fields(weight=int32, podAffinityTerm=_POD_TERM)
    ),
)
_NODE_AFFINITY: Final = Fields(
    requiredDuringSchedulingIgnoredDuringExecution=Fields(nodeSelectorTerms=Items(_NODE_TERM)),
    preferredDuringSchedulingIgnoredDuringExecution=Items(
        Fields(weight=int32, preference=_NODE_TERM)
    ),
)
_GROUP: Final = Fields(
    name=text,
    minMember=int32,
    minResource=TextMap(_quantity, zero="0"),
    labels=_TEXTS,
    annotations=_TEXTS,
    nodeSelector=_TEXTS,
    tolerations=Items(
        Fields(key=text, operator=text, value=text, effect=text, tolerationSeconds=int64)
    ),
    affinity=Fields(
        nodeAffinity=_NODE_AFFINITY, podAffinity=_POD_AFFINITY, podAntiAffinity=_POD_AFFINITY
    ),
    topologySpreadConstraints=Items(
        Fields(
            maxSkew=int32,
            topologyKey=text,
            whenUnsatisfiable=text,
            labelSelector=_SELECTOR,
            minDomains=int32,
            nodeAffinityPolicy=text,
            nodeTaintsPolicy=text,
            matchLabelKeys=Items(text),
        )
    ),
)


def _read_groups(
    definition: str, unknown: list[str], members: int, most_groups: int, copies: int
) -> tuple[TaskGroup, ...]:
    """Return the groups in their order. Raises ValueError with the first error (K62), and `_BeyondBound`."""
    items = decode(definition)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise ValueError("it is not a list of task groups")
    if len(items) > most_groups:
        bound = f"the bound is {most_groups} (service.gangMaxTaskGroups)"
        raise _BeyondBound(f"it has {len(items)} task groups, {bound}")
    total = copied = 0
    groups: dict[str, TaskGroup] = {}
    for index, item in enumerate(items):
        group = _read_group(_GROUP(item, f"item {index}", unknown), f"item {index}")
        if group.name in groups:
            raise ValueError(f"two groups have the name {shown(group.name)}")
        groups[group.name] = group
        total += group.min_member
        if total > members:
            what = f"minMember of group {shown(group.name)} is {group.min_member}"
            if total > group.min_member:
                what += f", and all groups up to it have {total} members"
            raise _BeyondBound(f"{what}; the bound is {members} (service.gangMaxMembers)")
        copied += group.min_member * len(msgspec.json.encode(item))
        if copied > copies:
            what = f"the placeholders of the groups up to {shown(group.name)} would copy {copied} bytes"
            bound = f"the bound is {copies} (service.gangMaxPlaceholderBytes)"
            raise _BeyondBound(f"{what} of it; {bound}")
    found = tuple(groups.values())
    for kind, amount in placeholder_ask(found).items():
        if amount > INT64_MAX:
            raise ValueError(f"all members together need more {kind} than a 64 bit number holds")
    return found


def _read_group(item: Mapping[str, Any], path: str) -> TaskGroup:
    name = item.get("name", "")
    if not name:
        raise ValueError(f"{path} has no name")
    members = item.get("minMember", 0)
    if members <= 0:
        what = "negative" if members < 0 else "0 or missing"
        raise ValueError(f"minMember of group {shown(name)} is {what}")
    if "minResource" not in item:
        raise ValueError(f"group {shown(name)} has no minResource")
    tolerations = tuple(item.get("tolerations", ()))
    return TaskGroup(
        name=name,
        min_member=members,
        resources=MappingProxyType(_amounts(name, item["minResource"])),
        min_resource=MappingProxyType(item["minResource"]),
        labels=MappingProxyType(item.get("labels", {})),
        annotations=MappingProxyType(item.get("annotations", {})),
        node_selector=MappingProxyType(item.get("nodeSelector", {})),
        tolerations=tolerations,
        tolerated=_tolerated(msgspec.convert(tolerations, tuple[Toleration, ...])),
        affinity=item.get("affinity"),
        topology_spread_constraints=tuple(item.get("topologySpreadConstraints", ())),
    )


def _amounts(name: str, quantities: Mapping[str, str]) -> Amounts:
    amounts: Amounts = {}
    for resource, quantity in quantities.items():
        where = f"minResource of group {shown(name)}"
        try:
            value = exact(resource, quantity)
        except QuantityError as error:
            raise ValueError(f"{where}: {shown(resource)}: {error}") from None
        kind = VCORE if resource == CPU else resource
        if value < 0:
            raise ValueError(f"{where}: {shown(resource)} is negative")
        if kind in amounts:
            raise ValueError(f"{where}: {CPU} and {VCORE} are the same")
        if kind == PODS:
            raise ValueError(f"{where}: {PODS} is counted already, one for each member")
        if value > INT64_MAX:
            raise ValueError(f"{where}: {shown(resource)} is more than a 64 bit number holds")
        amounts[kind] = value
    return amounts


def placeholder_ask(groups: Sequence[TaskGroup]) -> Amounts:
    """Return what all placeholders of all groups need, including ``pods`` (K64)."""
    total: Amounts = {}
    for group in groups:
        for kind, value in group.resources.items():
            total[kind] = total.get(kind, 0) + value * group.min_member
        total[PODS] = total.get(PODS, 0) + group.min_member
    return total


# -- the policy ------------------------------------------------------------------------------------


def _read_policy(parameters: str, longest: int) -> tuple[Policy, list[str]]:
    """Return the policy, and the parameters that are skipped (K67)."""
    style, timeout = _SOFT, 0
    skipped: list[str] = []
    for item in parameters.split(" ") if parameters else ():
        key, separator, value = item.partition("=")
        if not separator or "=" in value:
            skipped.append(f"{shown(item)} is not key=value and is skipped")
        elif key == _TIMEOUT_KEY:
            # Nineteen digits are enough for an int64, and keep int() away from long texts.
            if re.fullmatch(r"[+-]?[0-9]{1,19}", value) and abs(int(value)) <= INT64_MAX:
                timeout = int(value)
                if timeout > longest:
                    timeout = 0
                    skipped.append(
                        f"{key}: {shown(value)} is more than {longest}, the default is used"
                    )
            else:
                timeout = 0
                skipped.append(f"{key}: {shown(value)} is not a whole number, the default is used")
        elif key == _STYLE_KEY:
            style = HARD if value == HARD else _SOFT
            if value not in (HARD, _SOFT):
                skipped.append(f"{key}: {shown(value)} is neither Hard nor Soft, Soft is used")
    return Policy(style, timeout), skipped


def policy_text(policy: Policy) -> str:
    """Return the policy in the form of the annotation; "" if it is the default."""
    timeout, style = policy.timeout_seconds, policy.style
    items = [f"{_TIMEOUT_KEY}={timeout}"] if timeout else []
    if style != _SOFT or items:
        items.append(f"{_STYLE_KEY}={style}")
    return " ".join(items)


# -- real pods -------------------------------------------------------------------------------------


def unknown_group(pod: Pod, name: str, groups: TaskGroups) -> Problem | None:
    """Return a problem if the pod names a group that the application does not have (K65)."""
    if not name or groups.group(name) is not None:
        return None
    known = ", ".join(each.name for each in groups.groups) or "none"
    note = f"the application has no task group {shown(name)}; its groups: {known}"
    return Problem("GangScheduling", "TaskGroupsError", note)


#: tolerations that the API server adds to every pod
_DEFAULT_TOLERATIONS: Final = frozenset(
    (
        ("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
        ("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
    )
)


def _tolerated(tolerations: Sequence[Toleration]) -> frozenset[tuple[str, str, str, str]]:
    """Return what is tolerated, without what every pod tolerates."""
    found = {(each.key, each.operator or "Equal", each.value, each.effect) for each in tolerations}
    return frozenset(found - _DEFAULT_TOLERATIONS)


def differences(pod: Pod, group: TaskGroup, placeholder: Pod) -> Problem | None:
    """Return a problem if a real pod needs something else than a placeholder of its group, which it then may be
    unable to replace (K70).

    The amounts are those of the placeholder that the API server stored: it may have added the defaults of a
    LimitRange, as it did to the pod (K203).
    """
    found: list[str] = []
    own, made = of_pod(pod), of_pod(placeholder)
    for kind in sorted({*own, *made}):
        has, says = own.get(kind, 0), made.get(kind, 0)
        if has != says:
            found.append(f"{kind} is {has}, that of the placeholder {says}")
    if pod.spec.node_selector != group.node_selector:
        found.append(
            f"the nodeSelector is {_json(pod.spec.node_selector)}, "
            f"the group has {_json(group.node_selector)}"
        )
    if _tolerated(pod.spec.tolerations) != group.tolerated:
        found.append("the tolerations differ from those of the group")
    if not found:
        return None
    note = (
        f"the pod is not like its task group {shown(group.name)}, "
        f"a placeholder may not fit it: {'; '.join(found)}"
    )
    return Problem("GangScheduling", "TaskGroupsError", note)


def _json(value: Mapping[str, str]) -> str:
    return msgspec.json.encode(dict(value), order="sorted").decode()
