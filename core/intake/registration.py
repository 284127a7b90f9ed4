"""Registrations of resource managers and updates of their configuration (I7, I10, I39)."""

# Not compiled: it does not run for every ask.

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.core.config import (
    DEFAULT_CONFIGURATION,
    ConfigError,
    Configuration,
    PartitionConfig,
    load,
    parse_duration,
)
from quadriga.core.events import problems as event_problems
from quadriga.core.gangs import admission as gang_admission
from quadriga.core.intake.fires import RegistrationFires, UpdateFires
from quadriga.core.model.partition import Partition
from quadriga.core.ordering.node_index import NodeIndex
from quadriga.core.placement import rules_of
from quadriga.core.preemption import preemption_queue, quota
from quadriga.core.resources.shapes import Shapes
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import queue_tree, reservation
from quadriga.core.steps.waiting import WaitingAsks
from quadriga.si import RegisterResourceManagerRequest, RequestError, UpdateConfigurationRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quadriga.core.intake.routes import Answers
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.runtime.kernel import Options

#: at most this many partitions, also former ones, have their run times remembered
_MAX_RUN_TIMES: Final = 1_000
#: ``v1.5.2`` is version 1.5
_VERSION: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})")
#: the first version whose resource managers receive all scheduling states by default (X43)
_ALL_STATES: Final = (1, 5)


def read_configuration(request: str, text: str, options: Options) -> Configuration:
    """Read the configuration of a request. Raises ``RequestError`` with every problem and its path.

    The last four are cached, because a large configuration takes seconds to read: resource managers
    often share one, and a driver may read one in another thread before the owner thread needs it.
    """
    found = _read(text if text.strip() else DEFAULT_CONFIGURATION, options.node_sort_policy)
    if isinstance(found, str):
        raise RequestError(request, "config", found)
    return found


@lru_cache(maxsize=4)
def _read(text: str, node_sort_policy: str) -> Configuration | str:
    """Return the configuration, which must not be changed, or the text of its problems."""
    try:
        return load(text, node_sort_policy=node_sort_policy)
    except ConfigError as error:
        return str(error)


def read_registration(
    request: RegisterResourceManagerRequest, known: Iterable[ResourceManager], options: Options
) -> Configuration:
    """Check a registration and return its queue configuration. Raises ``RequestError``.

    Resource managers of one policy group must have the same configuration (I44).
    """
    name = type(request).__name__
    if not request.rmID:
        raise RequestError(name, "rmID", "is required")
    configuration = read_configuration(name, request.config, options)
    check_extra(name, request.extraConfig)
    if request.policyGroup:
        for other in known:
            same = other.configuration in ("", configuration.checksum)
            shared = other.policy_group == request.policyGroup
            if shared and not same and other.rm_id != request.rmID:
                raise RequestError(
                    name,
                    "policyGroup",
                    f"{request.policyGroup!r} is shared with resource manager "
                    f"{other.rm_id!r}, whose configuration differs",
                )
    return configuration


def read_update(request: UpdateConfigurationRequest, options: Options) -> Configuration | None:
    """Check an update and return its queue configuration, ``None`` if it has none. Raises
    ``RequestError``."""
    name = type(request).__name__
    check_extra(name, request.extraConfig)
    return read_configuration(name, request.config, options) if request.config.strip() else None


class Configured(NamedTuple):
    """A request with its queue configuration, which has been read; ``None`` if it has none."""

    request: RegisterResourceManagerRequest | UpdateConfigurationRequest
    configuration: Configuration | None


# -- registration ----------------------------------------------------------------------------------


def register(
    kernel: Kernel,
    rm: ResourceManager,
    configured: Configured,
    fires: RegistrationFires,
    answers: Answers,
) -> None:
    """Register a new or known resource manager. A known one loses its previous state (I7)."""
    request, configuration = configured
    assert isinstance(request, RegisterResourceManagerRequest)
    assert configuration is not None
    kernel.fire(fires.resource_manager, rm, fires.register)
    rm.version = request.version
    rm.policy_group = request.policyGroup
    rm.build_info = dict(request.buildInfo)
    rm.speaks_allocation_id = _si_version(request.version) == (1, 5)
    rm.configuration = configuration.checksum
    rm.extra = {}
    _apply_settings(rm, request.extraConfig)
    rm.observer.settings_changed(rm)
    for config in configuration.partitions:
        partition = _add_partition(kernel, rm, config)
        queue_tree.apply_configuration(kernel, partition, config, new=True)
        reservation.configure(kernel, partition)
        _note_unmatchable_rules(kernel, partition)


def _add_partition(kernel: Kernel, rm: ResourceManager, config: PartitionConfig) -> Partition:
    for name in [name for name in rm.serials if name not in rm.partitions]:
        if rm.serials[name].is_empty(kernel.now):
            del rm.serials[name]
    partition = rm.partitions[config.name] = Partition(rm, config, NodeIndex(Shapes()), WaitingAsks)
    known = kernel.run_times
    if partition.key not in known and len(known) >= _MAX_RUN_TIMES:
        del known[next(iter(known))]
    partition.run_times = known.setdefault(partition.key, partition.run_times)
    partition.keep_users = kernel.options.keep_users
    partition.registry.bounds = kernel.options.bounds
    partition.gang_admission = kernel.options.gang_admission
    partition.changed = kernel.now
    rm.observer.partition_added(partition)
    rm.observer.queue_added(partition.root)
    return partition


def check_extra(request: str, extra: Mapping[str, str]) -> None:
    """Raise ``RequestError`` for a setting of the scheduler with an invalid value."""
    for key, value in sorted(extra.items()):
        field = f"extraConfig[{key}]"
        if key == "si.stateNames" and value not in {d.value for d in Dialect}:
            raise RequestError(request, field, f"{value!r} is neither quadriga nor yunikorn")
        if key == "si.messageOrder" and value not in {"design", "k8shim"}:
            raise RequestError(request, field, f"{value!r} is neither design nor k8shim")
        if key == "si.schedulingStates" and value not in {"all", "failed"}:
            raise RequestError(request, field, f"{value!r} is neither all nor failed")
        if key in {"rm.pauseTimeout", "release.resend"}:
            try:
                positive = parse_duration(value) > 0
            except ValueError as error:
                raise RequestError(request, field, str(error)) from None
            if not positive:
                raise RequestError(request, field, f"{value!r} is not a positive duration")
    for key, problem in sorted(event_problems(extra).items()):
        raise RequestError(request, f"extraConfig[{key}]", f"{problem}")


def _si_version(version: str) -> tuple[int, int]:
    """Return the version of the interface that a resource manager reports, (0, 0) if it is unknown."""
    said = _VERSION.match(version)
    return (int(said[1]), int(said[2])) if said is not None else (0, 0)


def _apply_settings(rm: ResourceManager, changes: Mapping[str, str]) -> None:
    """Apply settings. Settings that an update does not name stay unchanged."""
    extra = rm.extra = {**rm.extra, **changes}
    rm.dialect = Dialect(extra.get("si.stateNames", "quadriga")).value
    rm.design_order = extra.get("si.messageOrder", "design") == "design"
    newer = "all" if _si_version(rm.version) >= _ALL_STATES else "failed"
    rm.all_states = extra.get("si.schedulingStates", newer) == "all"
    pause, resend = extra.get("rm.pauseTimeout"), extra.get("release.resend")
    rm.pause_timeout = parse_duration(pause) if pause else None
    rm.resend = parse_duration(resend) if resend else None
    rm.reservations = extra.get("scheduler.disableReservation", "false").lower() != "true"


# -- configuration ---------------------------------------------------------------------------------


def check_update(name: str, rm: ResourceManager, configuration: Configuration | None) -> None:
    """Raise ``RequestError`` if a queue in use would have to change between leaf and parent, or a type of a
    partition in use between shared devices and others."""
    for config in configuration.partitions if configuration is not None else ():
        partition = rm.partitions.get(config.name)
        if partition is not None:
            queue_tree.check_kinds(name, partition.root, config.root)
            used = partition.nodes or partition.applications
            if used and partition.config.shared_devices != config.shared_devices:
                text = f"partition {config.name} is in use, and its shared devices cannot change"
                raise RequestError(name, "config", text)


def update_configuration(
    kernel: Kernel,
    rm: ResourceManager,
    configured: Configured,
    fires: UpdateFires,
    answers: Answers,
) -> None:
    """Apply a configuration to the running queues (2.2, I39); ``None`` leaves them unchanged.

    Raises ``RequestError``, before anything has changed, if a queue in use would have to change between
    leaf and parent.
    """
    request, configuration = configured
    check_update(type(request).__name__, rm, configuration)
    rm.policy_group = request.policyGroup or rm.policy_group
    if request.extraConfig:
        reserved = rm.reservations
        _apply_settings(rm, request.extraConfig)
        rm.observer.settings_changed(rm)
        if rm.reservations != reserved:
            _switch_reservations(kernel, rm)
    if configuration is None or configuration.checksum == rm.configuration:
        return
    rm.configuration = configuration.checksum
    for config in configuration.partitions:
        known = partition = rm.partitions.get(config.name)
        if partition is None:
            partition = _add_partition(kernel, rm, config)
        elif fires.queue.allows(partition.state, fires.restore):
            kernel.fire(fires.queue, partition, fires.restore)
        levels = partition.levels.labels
        queue_tree.apply_configuration(kernel, partition, config, new=known is None)
        if partition.levels.labels != levels:
            gang_admission.retry_local(partition)
        reservation.configure(kernel, partition)
        preemption_queue.rebuild(kernel, partition)
        quota.watch_quotas(kernel, partition)
        _note_unmatchable_rules(kernel, partition)
    names = {config.name for config in configuration.partitions}
    for partition in [p for n, p in rm.partitions.items() if n not in names]:
        if fires.queue.allows(partition.state, fires.remove):
            kernel.fire(fires.queue, partition, fires.remove)
        queue_tree.remove_partition_if_drained(kernel, partition)


def _note_unmatchable_rules(kernel: Kernel, partition: Partition) -> None:
    """Log placement rules that can never match. YuniKorn's validation accepts them."""
    for text in rules_of(partition.config).flaws():
        kernel.note(f"partition {partition.name}: placement {text}")


def _switch_reservations(kernel: Kernel, rm: ResourceManager) -> None:
    """Cancel all reservations if they were switched off; start the timers of groups if on."""
    for partition in rm.partitions.values():
        if not rm.reservations:
            for kept in list(partition.reservations):
                reservation.cancel(partition, kept)
        for app in partition.applications.values():
            for group in list(app.groups.values()):
                reservation.start_reserve_timer(kernel, group)
