"""What annotations of a pod tell the core, as tags of asks and applications: expected run times (Q11), and what
its gang wants of the domains that it runs in (Q13), which a PodGroup may say as well."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from quadriga.base.times import SECOND
from quadriga.core.config import ConfigError, DurationError, load, parse_duration
from quadriga.core.config.partitions import MAX_LEVEL
from quadriga.core.resources.locality import MEMBERS, PREFERRED, REQUIRED, LocalityError, read_rule
from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Pod, PodGroup

#: the annotations that may say it, the first one that is there counts
_ANNOTATIONS: Final = {
    REQUIRED: (keys.TOPOLOGY_REQUIRED, keys.KUEUE_REQUIRED),
    PREFERRED: (keys.TOPOLOGY_PREFERRED, keys.KUEUE_PREFERRED),
    MEMBERS: (keys.TOPOLOGY_MEMBERS,),
}


# -- run times ------------------------------------------------------------------------------------


def run_time_tags(pod: Pod) -> dict[str, str]:
    """Return what the tags of the pod's ask say of its expected run time (Q11): what its annotation tells, and what
    its ``activeDeadlineSeconds`` bounds. A text that is no time is passed on, and the core notes that it is ignored.
    """
    tags = {}
    if told := pod.metadata.annotations.get(keys.EXPECTED_RUNTIME, ""):
        tags[keys.EXPECTED_RUNTIME_TAG] = _seconds(told)
    if (bound := pod.spec.active_deadline_seconds) is not None and bound > 0:
        tags[keys.RUNTIME_BOUND_TAG] = str(bound)
    return tags


def _seconds(text: str) -> str:
    if text.isascii() and text.isdecimal():
        return text
    try:
        return str(-(-parse_duration(text) // SECOND))
    except DurationError:
        return text


# -- topology -------------------------------------------------------------------------------------


def rule_tags(pod: Pod) -> dict[str, str]:
    """Return what the annotations of the pod say. Texts that cannot be read are left out (`problem_of`)."""
    return {tag: text for tag, (_, text) in _said(pod).items() if not _why_unreadable(tag, text)}


def group_tags(group: PodGroup) -> dict[str, str]:
    """Return what the PodGroup says: one domain for all its pods."""
    constraints = group.spec.scheduling_constraints
    found = constraints.topology if constraints is not None else ()
    return {REQUIRED: found[0].key} if found else {}


def refusal(group: PodGroup) -> str:
    """Return why the topology of the PodGroup is not supported; "" if it is."""
    constraints = group.spec.scheduling_constraints
    found = constraints.topology if constraints is not None else ()
    if len(found) > 1:
        return f"schedulingConstraints.topology has {len(found)} items, at most one is supported"
    if found and not 0 < len(found[0].key) <= MAX_LEVEL:
        return f"the key of schedulingConstraints.topology has not 1 to {MAX_LEVEL} characters"
    return ""


def levels_of(settings: Settings) -> tuple[str, ...]:
    """Return the labels that the queue configuration declares as levels, from wide to narrow."""
    return _levels(settings.queues)


@lru_cache(maxsize=4)
def _levels(queues: str) -> tuple[str, ...]:
    if "topology" not in queues:
        return ()
    try:
        partitions = load(queues).partitions
    except ConfigError:
        return ()  # the core refuses it, and says so
    return next((each.topology for each in partitions if each.name == keys.PARTITION), ())


def problem_of(
    pod: Pod, settings: Settings, group: PodGroup | None, *, in_gang: bool
) -> Problem | None:
    """Return a problem if something that the pod or its PodGroup wants of domains cannot be honoured."""
    said = _said(pod)
    found = []
    for tag, (name, text) in said.items():
        if why := _why_unreadable(tag, text):
            found.append(f"annotation {name} is ignored: {why}")
        elif not in_gang:
            found.append(f"annotation {name} has no effect: the pod belongs to no gang")
        else:
            level = text.rpartition("=")[0] if tag == MEMBERS else text
            found += _unknown(settings, f"annotation {name}", level)
    for level in group_tags(group).values() if group is not None else ():
        found += _unknown(settings, "schedulingConstraints of its PodGroup", level)
    return Problem("GangScheduling", "TopologyNotHonoured", "; ".join(found)) if found else None


def _unknown(settings: Settings, where: str, level: str) -> list[str]:
    levels = levels_of(settings)
    if level in levels:
        return []
    known = ", ".join(levels) or "none"
    return [
        f"{where}: {shown(level)} is no level of the queue configuration, whose levels are: {known}"
    ]


def _said(pod: Pod) -> dict[str, tuple[str, str]]:
    """By tag, the annotation and its text."""
    annotations, found = pod.metadata.annotations, {}
    for tag, names in _ANNOTATIONS.items():
        for name in names:
            if text := annotations.get(name, ""):
                found[tag] = name, text
                break
    return found


def _why_unreadable(tag: str, text: str) -> str:
    try:
        read_rule({tag: text})
    except LocalityError as error:
        return str(error)
    return ""
