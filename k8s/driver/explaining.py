"""Explanations of why a pod waits, in a sentence or two for its condition (K156).

The core knows quotas, gangs and the free resources of nodes; the cache knows which nodes the pod's constraints
refuse. Both are asked, and the text gives the first check that fails, how many nodes refuse for which reason,
and the smallest change that would help.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.scheduler import Scheduler
from quadriga.k8s.tuning import TUNING
from quadriga.si import RequestError

#: checks of the core that are about nodes
_SIZES, _PREDICATES = "node sizes", "predicates"
#: the check of the core that names the changes which are needed together
_TOGETHER: Final = "together"
_ABOUT_NODES: Final = frozenset({"nodes", _SIZES, _PREDICATES})

#: a change of a named node, in a remedy or among the changes that are needed together
_ON_A_NODE: Final = re.compile(r"(^|[:;] )[^:;]+ more free on node ([^\s;]+)")
_ANOTHER_NODE: Final = "another node with room for the pod that its constraints allow"
#: the condition on a new node, in the core's words and in those of Kubernetes users
_CONDITIONS: Final = ("that the predicates accept", "that the pod's constraints allow")

_ROOT: Final = "queue root"

_COUNTED: Final = re.compile(r"(\d+) nodes?: (?:not enough free (.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CoreSays:
    """What the core says about a waiting ask."""

    #: what has to happen first, as a sentence; "" if nothing blocks the ask
    verdict: str
    #: texts of failed checks about nodes; empty if something else comes first
    nodes: tuple[str, ...] = ()
    #: the change that is sufficient alone, if there is one
    remedy: str = ""
    #: the changes that are needed together, as a sentence, if no single one is sufficient
    together: str = ""
    #: quotas, limits or a gang block it: it does not wait for nodes
    held: bool = False


class Failing(Protocol):
    """A failing check of the core: `quadriga.si.explained.FailedCheck`, or its message."""

    @property
    def about(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def verdict(self) -> str: ...


class Core(Protocol):
    """A core that explains asks."""

    async def explain(
        self, rm_id: str, application_id: str, allocation_key: str
    ) -> CoreSays | None:
        """Return the explanation, ``None`` if the core has no such ask: it is allocated, or not requested."""


class LocalCore:
    """The core in this process. It is read between two rounds of its own thread."""

    def __init__(self, service: SchedulerService, partition: str = "default") -> None:
        self._service = service
        self._partition = partition

    async def explain(
        self, rm_id: str, application_id: str, allocation_key: str
    ) -> CoreSays | None:
        """Return the explanation of an ask."""

        def read(scheduler: Scheduler) -> Steps[CoreSays | None]:
            """Read the explanation on the core's thread."""
            try:
                found = yield from scheduler.explain_in_steps(
                    application_id, allocation_key, self._partition, rm_id, predicates=False
                )
            except (KeyError, RequestError):
                return None
            return _says(found.verdict, found.failing)

        return await asyncio.wrap_future(read_in_slices(self._service, Slices(read)))


def _says(verdict: str, failing: Sequence[Failing]) -> CoreSays:
    """Summarize the failing checks."""
    if not failing:
        return CoreSays("")
    # the root queue has as much as all nodes together: the nodes say more about that
    beyond_root = [each for each in failing if each.subject != _ROOT] or failing
    first = beyond_root[0]
    together = next((each.text for each in failing if each.about == _TOGETHER), "")
    hopeless = any(each.about == _SIZES for each in failing)
    if first.about not in _ABOUT_NODES and not hopeless:
        return CoreSays(first.verdict or verdict, (), _remedy(failing), together, True)
    told = [each for each in failing if each.about in _ABOUT_NODES]
    nodes = tuple(each.text for each in told if each.about != _PREDICATES)
    return CoreSays(verdict, nodes, _remedy(failing), together)


def _remedy(checks: Sequence[Failing]) -> str:
    return next((each.remedy for each in checks if each.remedy), "")


class RemoteCore:
    """A core that is reached by a client: ``ask`` blocks and returns the verdict and the failing checks."""

    def __init__(self, ask: Callable[[str, str], tuple[str, Sequence[Failing]]]) -> None:
        self._ask = ask

    async def explain(
        self, rm_id: str, application_id: str, allocation_key: str
    ) -> CoreSays | None:
        """Return the explanation of an ask."""
        try:
            verdict, failing = await asyncio.to_thread(self._ask, application_id, allocation_key)
        except (RequestError, ConnectionError, TimeoutError):
            return None
        return _says(verdict, failing)


class Explainer:
    """Explains waiting pods.

    ``ask_of(uid)`` returns application and key of the ask that a pod waits for, or ``None`` if it does not wait
    any more; ``nodes()`` the names of all nodes; ``refusals(uid, node)`` all reasons of the predicates;
    ``unoffered(uid)`` the resources that no node offers; ``device_class(resource)`` the DeviceClass that serves
    it.
    """

    def __init__(
        self,
        core: Core,
        *,
        rm_id: str,
        ask_of: Callable[[str], tuple[str, str] | None],
        nodes: Callable[[], Iterable[str]],
        refusals: Callable[[str, str], Sequence[str]],
        unoffered: Callable[[str], Sequence[str]],
        device_class: Callable[[str], Awaitable[str]],
    ) -> None:
        self._core = core
        self._rm_id = rm_id
        self._ask_of = ask_of
        self._nodes = nodes
        self._refusals = refusals
        self._unoffered = unoffered
        self._device_class = device_class

    async def explain(self, uid: str) -> str | None:
        """Return the text, or ``None`` if there is nothing to explain."""
        ask = self._ask_of(uid)
        if ask is None:
            return None
        application_id, key = ask
        says = await self._core.explain(self._rm_id, application_id, key)
        elsewhere = await self._elsewhere(uid)
        if says is None:  # a gang that the nodes cannot hold has no ask
            return f"Smallest change: {elsewhere}." if elsewhere else None
        names = sorted(self._nodes())
        refused = Counter[str]()
        if not says.held:
            for start in range(0, len(names), TUNING.explained_slice):
                for name in names[start : start + TUNING.explained_slice]:
                    reasons = self._refusals(key, name)
                    if reasons:
                        refused[reasons[0]] += 1
                await asyncio.sleep(0)
        remedy, together = (self._heeding(key, each) for each in (says.remedy, says.together))
        says = replace(says, remedy=elsewhere or remedy, together=together)
        return text_of(says, len(names), refused)

    async def _elsewhere(self, uid: str) -> str:
        """Return the remedy for a pod whose devices only the default scheduler can allocate (K207)."""
        for resource in self._unoffered(uid):
            if name := await self._device_class(resource):
                return (
                    f"leave the pod to the default scheduler, which must run it: no node offers {resource}, "
                    f"DeviceClass {name} serves it"
                )
        return ""

    def _heeding(self, key: str, text: str) -> str:
        """Return the change as the pod's constraints allow it: more free resources on a node that they refuse
        are of no use."""

        def instead(match: re.Match[str]) -> str:
            """Return the replacement of one change."""
            return f"{match[1]}{_ANOTHER_NODE}" if self._refusals(key, match[2]) else match[0]

        return _ON_A_NODE.sub(instead, text).replace(*_CONDITIONS)


def text_of(says: CoreSays, nodes: int, refused: Counter[str]) -> str:
    """Return the text for a core's answer and the nodes that the predicates refuse, by reason."""
    groups = [_group(each) for each in says.nodes]
    groups += [f"{count} {reason}" for reason, count in _largest_first(refused)]
    if says.held or not groups:
        parts = [says.verdict] if says.verdict else []
    else:
        told, others = (
            "; ".join(groups[: TUNING.explained_groups]),
            len(groups) - TUNING.explained_groups,
        )
        more = f"; and {others} other {_s(others, 'reason')}" if others > 0 else ""
        parts = [f"0 of {nodes} {_s(nodes, 'node')}: {told}{more}."]
    if says.remedy:
        parts.append(f"Smallest change: {says.remedy}.")
    elif says.together:
        parts.append(f"{says.together[:1].upper()}{says.together[1:]}.")
    return " ".join(parts) or "It is next in its queue."


def _s(number: int, noun: str) -> str:
    """Return the noun in the form that the number needs."""
    return noun if number == 1 else f"{noun}s"


def _largest_first(refused: Counter[str]) -> list[tuple[str, int]]:
    return sorted(refused.items(), key=lambda item: (-item[1], item[0]))


def _group(text: str) -> str:
    """Shorten ``3 nodes: not enough free memory; node a ...`` to ``3 lack memory (node a ...)``."""
    first, semicolon, rest = text.partition("; ")
    counted = _COUNTED.match(first)
    if counted is not None:
        lacking, verb = counted[2], "lacks" if counted[1] == "1" else "lack"
        first = f"{counted[1]} " + (f"{verb} {lacking}" if lacking else first[counted.end() :])
    return f"{first} ({rest})" if semicolon else first
