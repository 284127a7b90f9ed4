"""Resources that a pod needs and a node offers, in the scheduler's units (K82 to K85, K94).

Amounts map resources to integers: ``vcore`` in thousandths, ``memory`` in bytes, all others by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from quadriga.k8s.conversion.problems import Problem
from quadriga.k8s.conversion.quantities import CPU, INT64_MAX, VCORE, QuantityError, amount
from quadriga.k8s.objects import Container, ContainerStatus, Node, Pod, Quantities

Amounts = dict[str, int]

#: a pod needs one; a node says how many it takes
PODS: Final = "pods"
#: prefix of a request for a DeviceClass by name: DRA serves it, no node offers it
DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"

_SIDECAR: Final = "Always"
#: the resources that a pod as a whole can request (K84)
_POD_LEVEL: Final = frozenset((CPU, "memory"))
_HUGE_PAGES: Final = "hugepages-"


def of_pod(pod: Pod) -> Amounts:
    """Return what the pod needs while it starts or runs, whichever is more (K82 to K85)."""
    spec, status = pod.spec, pod.status
    if not spec.init_containers and len(spec.containers) == 1 and not status.container_statuses:
        requested = spec.containers[0].resources
        total = converted(requested.requests) if requested is not None else {}
    else:
        total = _of_containers(pod)
    if spec.resources is not None:
        total.update(_of_pod_level(pod, spec.resources.requests))
    if spec.overhead:
        _add(total, converted(spec.overhead))
    total[PODS] = 1
    return total


def may_differ(old: Pod, new: Pod) -> bool:
    """Return whether the two versions may need different amounts: a resize is requested, in force, or
    infeasible (K85)."""
    was, now, before, after = old.spec, new.spec, old.status, new.status
    return (
        after.container_statuses != before.container_statuses
        or now.containers != was.containers
        or after.init_container_statuses != before.init_container_statuses
        or now.init_containers != was.init_containers
        or now.resources != was.resources
        or after.allocated_resources != before.allocated_resources
        or after.resources != before.resources
        or _resize_is_infeasible(old) != _resize_is_infeasible(new)
    )


def of_node(node: Node) -> Amounts:
    """Return what the node offers to pods, including the number of pods (K94)."""
    return converted(node.status.allocatable)


def converted(quantities: Mapping[str, str | int | float]) -> Amounts:
    """Return the amounts of quantities. An unreadable one is left out: `problem_of` names it."""
    found = {}
    for name, quantity in quantities.items():
        try:
            found[VCORE if name == CPU else name] = amount(name, quantity)
        except QuantityError:
            continue
    return found


def problem_of(pod: Pod) -> Problem | None:
    """Return why the resources of the pod cannot be read. An API server accepts no such pod."""
    for where, quantities in _named(pod):
        for name, quantity in quantities.items():
            try:
                amount(name, quantity)
            except QuantityError as error:
                note = f"the request of {where} for {name} cannot be read: {error}"
                return Problem("FailedScheduling", "Scheduling", note)
    return None


def _named(pod: Pod) -> Iterable[tuple[str, Quantities]]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.resources is not None:
            yield f"container {container.name}", container.resources.requests
    if pod.spec.resources is not None:
        yield "the pod", pod.spec.resources.requests
    yield "the pod's overhead", pod.spec.overhead


def _of_containers(pod: Pod) -> Amounts:
    """Return the larger need for each resource: of everything that runs together, or of an init container with
    the sidecars declared before it (K83)."""
    infeasible = _resize_is_infeasible(pod)
    statuses = {each.name: each for each in pod.status.container_statuses}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _of_container(container, statuses.get(container.name), infeasible))
    if not pod.spec.init_containers:
        return total
    statuses = {each.name: each for each in pod.status.init_container_statuses}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.spec.init_containers:
        needs = _of_container(container, statuses.get(container.name), infeasible)
        if container.restart_policy == _SIDECAR:
            _add(sidecars, needs)
        else:
            _add(needs, sidecars)
            _raise(starting, needs)
    _add(total, sidecars)
    _raise(total, starting)
    return total


def _of_container(
    container: Container, status: ContainerStatus | None, infeasible: bool
) -> Amounts:
    """Return the need of a container. During a resize it is the larger of the desired and the actual resources;
    the actual ones alone if the resize is infeasible on the node (K85)."""
    wanted = converted(container.resources.requests) if container.resources is not None else {}
    if status is None or (not status.allocated_resources and status.resources is None):
        return wanted
    needs = {} if infeasible else wanted
    _raise(needs, converted(status.allocated_resources))
    if status.resources is not None:
        _raise(needs, converted(status.resources.requests))
    return needs


def _of_pod_level(pod: Pod, requests: Quantities) -> Amounts:
    """Return what the pod requests as a whole (K84). The status has these resources for pods without such
    requests too: there it is the sum of the containers and does not count."""
    names = [each for each in requests if each in _POD_LEVEL or each.startswith(_HUGE_PAGES)]
    wanted = converted({name: requests[name] for name in names})
    status = pod.status
    in_force: Amounts = {}
    for quantities in (
        status.allocated_resources,
        status.resources.requests if status.resources is not None else {},
    ):
        _raise(
            in_force, converted({name: quantities[name] for name in names if name in quantities})
        )
    if in_force and _resize_is_infeasible(pod):
        return {**wanted, **in_force}
    _raise(wanted, in_force)
    return wanted


def _resize_is_infeasible(pod: Pod) -> bool:
    return pod.status.resize == "Infeasible" or any(
        each.type == "PodResizePending" and each.reason == "Infeasible" and each.status == "True"
        for each in pod.status.conditions
    )


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = min(total.get(name, 0) + value, INT64_MAX)


def _raise(total: Amounts, other: Amounts) -> None:
    for name, value in other.items():
        if value > total.get(name, -INT64_MAX):
            total[name] = value
