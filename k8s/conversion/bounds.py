"""Bounds on the size of API objects (Q16).

Anyone who may create a pod in one namespace can write up to 1.5 MB into it, and the API server accepts
thousands of tolerations, terms or resource types. Each row of a table names one thing that is counted, its
limit, and how it is counted. The tables are complete: everything else has a bound of the API server that is
small enough (values of labels and names have 63 or 253 characters, most numbers 32 bits), or is not read.

`Bounds.pod` and its siblings are called for each object as it is decoded. An object within its bounds is
returned unchanged. From any other one the parts beyond the bounds are dropped, and its ``refusal`` names them:
the shim decides what that means. The setting ``service.bounds`` replaces numbers. See D265.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.problems import shown
from quadriga.k8s.conversion.resources import of_pod
from quadriga.k8s.objects import (
    Container,
    Namespace,
    Node,
    NodeSelector,
    Pod,
    PodAffinityTerm,
    PodGroup,
    Quantities,
    ResourceRequirements,
)

T = TypeVar("T", Pod, Node, Namespace)

_MOST_INT: Final = 2**31 - 1
#: labels that the shim reads; they are kept when others are dropped
_READ_LABELS: Final = (
    keys.APP_ID,
    keys.OLD_APP_ID,
    keys.SPARK_APP_ID,
    keys.QUEUE,
    keys.OLD_QUEUE,
    keys.OLD_USER_NAME,
    keys.OLD_PLACEHOLDER_LABEL,
    keys.SCHEDULER_LABEL[0],
)
#: types that are kept when others are dropped
_COMMON_TYPES: Final = ("cpu", "memory", "ephemeral-storage", "pods", "vcore")


@dataclass(frozen=True)
class OneBound(Generic[T]):
    """One bounded thing of a kind of object: its name in the setting, its default limit, how it is counted, and
    how it is dropped from an object that is not shared yet."""

    name: str
    most: int
    #: follows the number: ``300 labels``
    what: str
    size: Callable[[T], int]
    drop: Callable[[T], None]


# -- what is counted -------------------------------------------------------------------------------


def _labels(found: Pod | Node | Namespace) -> int:
    return len(found.metadata.labels)


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.containers, *pod.spec.init_containers)


def _types(pod: Pod) -> int:
    found = [each.resources.requests for each in _containers(pod) if each.resources is not None]
    found.append(pod.spec.overhead)
    if len(found) == 2 and not found[1]:
        return len(found[0])  # this is the case for nearly all pods
    return len({name for each in found for name in each})


def _host_ports(pod: Pod) -> int:
    network = pod.spec.host_network
    return sum(
        len(each.ports) if network else sum(port.host_port != 0 for port in each.ports)
        for each in _containers(pod)
        if each.ports
    )


def _node_selector(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def _node_requirements(pod: Pod) -> int:
    count, required = len(pod.spec.node_selector), _node_selector(pod)
    if required is not None:
        for term in required.node_selector_terms:
            count += len(term.match_expressions) + len(term.match_fields) or 1
    return count


def _node_values(pod: Pod) -> int:
    required = _node_selector(pod)
    if required is None:
        return 0
    return sum(
        len(each.values)
        for term in required.node_selector_terms
        for each in (*term.match_expressions, *term.match_fields)
    )


def _terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    both = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return tuple(
        term
        for each in both
        if each is not None
        for term in each.required_during_scheduling_ignored_during_execution
    )


def _term_namespaces(pod: Pod) -> int:
    return sum(len(each.namespaces) for each in _terms(pod))


def _foreign_terms(pod: Pod) -> int:
    own = pod.metadata.namespace
    return sum(
        term.namespace_selector is not None or any(each != own for each in term.namespaces)
        for term in _terms(pod)
    )


def _constraints(pod: Pod) -> int:
    return len(pod.spec.topology_spread_constraints)


def _spread_requirements(pod: Pod) -> int:
    """Return the number of requirements that spread constraints evaluate: each checks every node with all node
    requirements of the pod."""
    constraints = _constraints(pod)
    return constraints and constraints * (_node_requirements(pod) + constraints)


def _selectors(pod: Pod) -> Iterator[Any]:
    for term in _terms(pod):
        yield term.label_selector
        yield term.namespace_selector
    for constraint in pod.spec.topology_spread_constraints:
        yield constraint.label_selector


def _selector_requirements(pod: Pod) -> int:
    return sum(
        len(each.match_labels) + len(each.match_expressions)
        for each in _selectors(pod)
        if each is not None
    ) + sum(len(each.match_label_keys) for each in pod.spec.topology_spread_constraints)


def _selector_values(pod: Pod) -> int:
    return sum(
        len(requirement.values)
        for each in _selectors(pod)
        if each is not None
        for requirement in each.match_expressions
    )


def _length(*names: str) -> Callable[[Any], int]:
    """Return a function that measures the longest of these annotations."""
    if len(names) == 1:
        (name,) = names
        return lambda found: len(found.metadata.annotations.get(name, ""))
    return lambda found: max(len(found.metadata.annotations.get(name, "")) for name in names)


def _levels(name: str) -> Callable[[Any], int]:
    """Return a function that counts the levels of a queue path in an annotation; a label is too short for many."""
    return lambda found: found.metadata.annotations.get(name, "").count(".") + 1


def _references(found: Pod) -> int:
    spec = found.spec
    return max(
        len(found.metadata.owner_references),
        len(spec.scheduling_gates),
        len(spec.resource_claims),
        len(spec.image_pull_secrets),
    )


# -- how it is dropped -----------------------------------------------------------------------------


def _drop_labels(found: Any) -> None:
    labels = found.metadata.labels
    found.metadata.labels = {key: labels[key] for key in _READ_LABELS if key in labels}


def _drop_texts(*names: str) -> Callable[[Any], None]:
    def drop(found: Any) -> None:
        """Drop the part from the object."""
        meta = found.metadata
        meta.annotations = {key: text for key, text in meta.annotations.items() if key not in names}
        meta.labels = {key: text for key, text in meta.labels.items() if key not in names}

    return drop


def _drop(*names: str) -> Callable[[Pod], None]:
    """Return a function that resets fields of the pod's spec to their defaults."""

    def drop(pod: Pod) -> None:
        """Drop the fields from the pod."""
        empty = pod.spec.__class__()
        for name in names:
            setattr(pod.spec, name, getattr(empty, name))

    return drop


def _drop_containers(pod: Pod) -> None:
    """Replace the containers by one that needs what they need together, without rare resource types."""
    for each in _containers(pod):
        if each.resources is not None:
            each.resources.requests = _common(each.resources.requests)
    pod.spec.overhead = _common(pod.spec.overhead)
    amounts = of_pod(pod)
    requests: Quantities = {
        name: f"{value}m" if name == "vcore" else value
        for name, value in _common(amounts).items()
        if name != "pods"
    }
    if "vcore" in requests:
        requests["cpu"] = requests.pop("vcore")
    pod.spec.containers = (Container(resources=ResourceRequirements(requests)),)
    pod.spec.init_containers, pod.spec.overhead, pod.spec.resources = (), {}, None
    pod.status.container_statuses = pod.status.init_container_statuses = ()


def _common(quantities: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in quantities.items()
        if name in _COMMON_TYPES or name.startswith("hugepages-")
    }


def _drop_ports(pod: Pod) -> None:
    pod.spec.host_network = False
    for each in _containers(pod):
        each.ports = ()


def _drop_priority(pod: Pod) -> None:
    pod.spec.priority = None


def _drop_references(pod: Pod) -> None:
    pod.metadata.owner_references = pod.metadata.owner_references[:1]
    _drop("scheduling_gates", "resource_claims", "image_pull_secrets")(pod)


def _drop_types(node: Node) -> None:
    node.status.allocatable = _common(node.status.allocatable)


def _drop_taints(node: Node) -> None:
    node.spec.taints = ()


def _drop_conditions(node: Node) -> None:
    node.status.conditions = tuple(each for each in node.status.conditions if each.type == "Ready")


def _drop_features(node: Node) -> None:
    node.status.declared_features = ()


# -- the tables ------------------------------------------------------------------------------------

_places: Final = _drop("affinity", "node_selector")
_looks: Final = _drop("affinity", "topology_spread_constraints")
_OTHER_PODS: Final = "requirements on labels of other pods"
_EACH: Final = "requirements on nodes, counted once for each topology spread constraint"
_HELD: Final = "owners, scheduling gates, resource claims or pull secrets"
_quotas: Final = (
    keys.NAMESPACE_QUOTA,
    keys.NAMESPACE_GUARANTEED,
    keys.NAMESPACE_MAX_APPS,
    keys.NAMESPACE_MAX_CPU,
    keys.NAMESPACE_MAX_MEMORY,
)
_drop_app_id: Final = _drop_texts(keys.APP_ID)
_drop_queue: Final = _drop_texts(keys.QUEUE)
_drop_user: Final = _drop_texts(keys.USER_INFO)
_drop_group: Final = _drop_texts(keys.TASK_GROUP_NAME)
_drop_policy: Final = _drop_texts(keys.POLICY_PARAMETERS)
_drop_quotas: Final = _drop_texts(*_quotas)
_drop_parent: Final = _drop_texts(keys.PARENT_QUEUE)
_drop_tolerations: Final = _drop("tolerations")
_drop_volumes: Final = _drop("volumes")

_Pod = OneBound[Pod]
_Node = OneBound[Node]
_Namespace = OneBound[Namespace]

# fmt: off
_ANY: Final = (
    #     name                      most    of what
    #                                       size, drop
    _Pod("podLabels",               256,    "labels",
                                            _labels, _drop_labels),
    _Pod("podContainers",           500,    "containers",
                                            lambda pod: len(_containers(pod)), _drop_containers),
    _Pod("podResourceTypes",        64,     "resource types",
                                            _types, _drop_containers),
    _Pod("podHostPorts",            256,    "host ports",
                                            _host_ports, _drop_ports),
    _Pod("podTolerations",          64,    "tolerations",
                                            lambda pod: len(pod.spec.tolerations), _drop_tolerations),
    _Pod("podVolumes",              256,    "volumes",
                                            lambda pod: len(pod.spec.volumes), _drop_volumes),
    _Pod("podReferences",           64,     _HELD,
                                            _references, _drop_references),
    _Pod("podPriority",       _MOST_INT,    "as its priority",
                                            lambda pod: abs(pod.spec.priority or 0), _drop_priority),
)
#: bounds of pods with annotations
_TEXTS: Final = (
    _Pod("podApplicationId",        253,    "characters of the application ID",
                                            _length(keys.APP_ID), _drop_app_id),
    _Pod("podQueue",                1_024,  "characters of the queue's path",
                                            _length(keys.QUEUE), _drop_queue),
    _Pod("podQueueLevels",          32,     "levels of the queue's path",
                                            _levels(keys.QUEUE), _drop_queue),
    _Pod("podUser",                 16_384, "characters of the user and groups",
                                            _length(keys.USER_INFO), _drop_user),
    _Pod("podTaskGroupName",        253,    "characters of the name of the task group",
                                            _length(keys.TASK_GROUP_NAME), _drop_group),
    _Pod("podPolicy",               1_024,  "characters of the scheduling policy parameters",
                                            _length(keys.POLICY_PARAMETERS), _drop_policy),
)
#: bounds of pods with constraints on nodes or other pods
_PLACING: Final = (
    _Pod("podNodeRequirements",     48,     "requirements on nodes",
                                            _node_requirements, _places),
    _Pod("podNodeValues",           4_096,  "values of requirements on nodes",
                                            _node_values, _places),
    _Pod("podAffinityTerms",        8,     "terms of pod affinity and anti-affinity",
                                            lambda pod: len(_terms(pod)), _looks),
    _Pod("podAffinityNamespaces",   64,     "namespaces of terms of pod affinity",
                                            _term_namespaces, _looks),
    _Pod("podForeignTerms",         2,      "terms of pod affinity about pods of other namespaces",
                                            _foreign_terms, _looks),
    _Pod("podSpreadConstraints",    8,      "topology spread constraints",
                                            _constraints, _looks),
    _Pod("podSpreadRequirements",   96,    _EACH,
                                            _spread_requirements, _looks),
    _Pod("podSelectorRequirements", 64,     _OTHER_PODS,
                                            _selector_requirements, _looks),
    _Pod("podSelectorValues",       256,    f"values of {_OTHER_PODS}",
                                            _selector_values, _looks),
)
POD: Final = (*_ANY, *_TEXTS, *_PLACING)
NODE: Final = (
    _Node("nodeLabels",             1_024,  "labels",
                                            _labels, _drop_labels),
    _Node("nodeTaints",             64,     "taints",
                                            lambda node: len(node.spec.taints), _drop_taints),
    _Node("nodeResourceTypes",      256,    "resource types",
                                            lambda node: len(node.status.allocatable), _drop_types),
    _Node("nodeConditions",         256,    "conditions",
                                            lambda node: len(node.status.conditions), _drop_conditions),
    _Node("nodeDeclaredFeatures",   256,    "declared features",
                                            lambda node: len(node.status.declared_features), _drop_features),
)
NAMESPACE: Final = (
    _Namespace("namespaceLabels",   1_024,  "labels",
                                            _labels, _drop_labels),
    _Namespace("namespaceQuota",    4_096,  "characters of an annotation with a quota",
                                            _length(*_quotas), _drop_quotas),
    _Namespace("namespaceQueue",    1_024,  "characters of the parent queue's path",
                                            _length(keys.PARENT_QUEUE), _drop_parent),
    _Namespace("namespaceQueueLevels", 32,  "levels of the parent queue's path",
                                            _levels(keys.PARENT_QUEUE), _drop_parent),
)
# fmt: on

_Rows = list[tuple[Callable[[T], int], int, OneBound[T]]]

#: limit of a gang's placeholder timeout, one year; a longer one counts as none (``task_groups``)
GANG_TIMEOUT: Final = "gangTimeoutSeconds"

#: default of each bound, by name
BOUNDS: Final[Mapping[str, int]] = MappingProxyType(
    {**{each.name: each.most for each in (*POD, *NODE, *NAMESPACE)}, GANG_TIMEOUT: 31_536_000}
)


def numbers(text: str) -> Mapping[str, int]:
    """Return the bounds with the replacements of the setting, for example ``podLabels=512 podVolumes=300``.
    Raises ValueError."""
    found = dict(BOUNDS)
    for item in text.replace(",", " ").split():
        name, separator, number = item.partition("=")
        if name not in BOUNDS:
            near = get_close_matches(name, BOUNDS, 1)
            raise ValueError(
                f"there is no bound {shown(name)}" + (f", perhaps {near[0]}" if near else "")
            )
        if not separator or not re.fullmatch("[0-9]{1,10}", number) or int(number) > _MOST_INT:
            raise ValueError(f"{shown(item)} is not name=number, from 0 to {_MOST_INT}")
        found[name] = int(number)
    return MappingProxyType(found)


class Bounds:
    """The bounds with these numbers. Each method takes an object that is not shared yet."""

    def __init__(self, most: Mapping[str, int] = BOUNDS) -> None:
        self._most = most
        self._any, self._texts, self._placing = map(self._rows, (_ANY, _TEXTS, _PLACING))
        self._node, self._namespace = self._rows(NODE), self._rows(NAMESPACE)

    def pod(self, pod: Pod) -> Pod:
        """Return the pod within the bounds."""
        beyond = _beyond(self._any, pod)
        if pod.metadata.annotations:
            beyond += _beyond(self._texts, pod)
        spec = pod.spec
        if spec.affinity is not None or spec.node_selector or spec.topology_spread_constraints:
            beyond += _beyond(self._placing, pod)
        return _without(beyond, pod)

    def node(self, node: Node) -> Node:
        """Return the node within the bounds. A node that exceeds them accepts no new pods."""
        found = _without(_beyond(self._node, node), node)
        if found.refusal:
            found.spec.unschedulable = True
        return found

    def namespace(self, namespace: Namespace) -> Namespace:
        """Return the namespace within the bounds."""
        return _without(_beyond(self._namespace, namespace), namespace)

    def pod_group(self, group: PodGroup) -> PodGroup:
        """Return the PodGroup within the bounds. It is never refused: its long parts are not read, or are
        bounded by the API server."""
        meta, status = group.metadata, group.status
        meta.labels, meta.annotations, meta.owner_references = {}, {}, ()
        own = (each for each in status.conditions if each.type.startswith("PodGroup"))
        status.conditions = tuple(own)
        return group

    def _rows(self, table: tuple[OneBound[T], ...]) -> _Rows[T]:
        return [(each.size, self._most[each.name], each) for each in table]


def _beyond(rows: _Rows[T], found: T) -> list[tuple[int, int, OneBound[T]]]:
    return [(number, most, row) for size, most, row in rows if (number := size(found)) > most]


def _without(beyond: list[tuple[int, int, OneBound[T]]], found: T) -> T:
    if beyond:
        for _, _, row in beyond:
            row.drop(found)
        found.refusal = "; ".join(
            f"{number} {row.what}, at most {most} are allowed ({row.name})"
            for number, most, row in beyond
        )
    return found
