"""What a row of the dispatcher's table is made of: ``Route``, and the ``Answers`` that it declares.

A handler knows no trigger and no lifecycle of its own. It fires what the ``fires`` column of its row has,
and it answers only through ``Answers``, which refuses a response that the row does not name. So the table
cannot disagree with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quadriga.core.model.resource_manager import ResourceManager
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import ending
from quadriga.fsm import DefinitionError, Lifecycle
from quadriga.si import ApplicationResponse, NodeResponse

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import ForeignAllocation
    from quadriga.si import RejectedAllocation, RejectedAllocationAsk, TerminationType

Fires = TypeVar("Fires")

#: the reader of a field by its path, made once for each path
_reader: Final = cache(attrgetter)


@dataclass(frozen=True, slots=True)
class Route:
    """One part of a message: the items of ``field``, which ``handle`` applies together.

    ``fires`` is a named tuple of the module ``fires``: lifecycles, each followed by the triggers that the
    handler fires at entities of it. What follows from these is in the tables of the lifecycles. ``answers``
    names the fields of the response that the handler fills. Without a ``field`` the part is the whole
    message. ``of`` selects the items of this part if several parts share the field; with ``whole`` the
    handler gets the whole message. ``check`` refuses the whole request before anything is applied.

    Raises ``DefinitionError`` for a lifecycle in the place of another, and for a trigger that its lifecycle
    does not have.
    """

    message: type[Any]
    field: str
    #: what follows from this part, for the journal
    cause: str
    fires: Any
    answers: Answers
    handle: Callable[[Kernel, ResourceManager, Any, Any, Answers], None]
    check: Callable[[ResourceManager, Any], None] | None = None
    whole: bool = False
    of: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        concerns(self.cause, self.fires)

    @property
    def concerns(self) -> dict[str, tuple[str, ...]]:
        """The triggers that the handler fires, by lifecycle."""
        return concerns(self.cause, self.fires)

    @property
    def entity(self) -> str:
        """The lifecycle of the items."""
        return next(iter(self.concerns))

    @property
    def triggers(self) -> tuple[str, ...]:
        """What the handler fires at the items."""
        return self.concerns[self.entity]

    @property
    def response(self) -> tuple[str, ...]:
        """The fields of the response that the handler fills."""
        return self.answers.fields

    def whole_field(self, message: Any) -> Any:
        """Return the repeated field, which may be nested (``releases.x``)."""
        return _reader(self.field)(message)

    def items(self, message: Any) -> Any:
        """Return the items of the field that belong to this part."""
        part = self.whole_field(message)
        return [item for item in part if self.of(item)] if self.of is not None and part else part


def part(
    message: type[Any],
    field: str,
    fires: Fires,
    answers: Answers,
    handle: Callable[[Kernel, ResourceManager, Any, Fires, Answers], None],
    check: Callable[[ResourceManager, Any], None] | None = None,
    *,
    whole: bool = False,
    of: Callable[[Any], bool] | None = None,
) -> Route:
    """A row; its handler takes what the row fires, which mypy checks."""
    cause = f"{message.__name__}.{field}" if field else message.__name__
    return Route(message, field, cause, fires, answers, handle, check, whole, of)


# -- triggers --------------------------------------------------------------------------------------


def concerns(cause: str, fires: Any) -> dict[str, tuple[str, ...]]:
    """The triggers in a ``fires`` column, by lifecycle, each once. Raises ``DefinitionError``."""
    found: dict[str, dict[str, None]] = {}
    lifecycle: Lifecycle | None = None
    for name, value in _fields(fires):
        if isinstance(value, Lifecycle):
            lifecycle = value
            if value.name != name:
                raise DefinitionError(f"{cause}: {name} is the lifecycle {value.name}")
            found.setdefault(value.name, {})
            continue
        if lifecycle is None:
            raise DefinitionError(f"{cause}: {name} comes before its lifecycle")
        for trigger in _strings(value):
            if trigger not in lifecycle.triggers():
                raise DefinitionError(
                    f"{cause}: {name} is {trigger!r}, which is no trigger of {lifecycle.name}"
                )
            found[lifecycle.name][trigger] = None
    return {name: tuple(triggers) for name, triggers in found.items()}


def _fields(fires: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of a named tuple, and of those in it."""
    for name, value in zip(fires._fields, fires, strict=True):
        if hasattr(value, "_fields"):
            yield from _fields(value)
        else:
            yield name, value


def _strings(value: Any) -> Iterator[str]:
    """The triggers in a value: itself, those of a sequence, or those that a table has for each key."""
    if isinstance(value, str):
        yield value
    else:
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)


# -- answers ---------------------------------------------------------------------------------------


class Answers:
    """The way in which a handler answers its message. ``fields`` are the only ones that it may fill.

    Every method raises ``RuntimeError`` for a field that is not declared: that is a bug of the handler
    or of the table, and nothing is sent.
    """

    __slots__ = ("fields",)

    def __init__(self, *fields: str) -> None:
        self.fields = fields

    def require(self, field: str) -> None:
        if field not in self.fields:
            declared = ", ".join(self.fields) or "none"
            raise RuntimeError(
                f"the handler answers with {field!r}, and its route declares {declared}"
            )

    def send(
        self, kernel: Kernel, rm: ResourceManager, response: ApplicationResponse | NodeResponse
    ) -> None:
        """Send one response about all items of a request (M5, M7)."""
        for field, _ in response.ListFields():
            self.require(field.name)
        kernel.outbox.add(rm, response)

    def rejected(
        self, kernel: Kernel, rm: ResourceManager, rejected: list[RejectedAllocationAsk]
    ) -> None:
        self.require("rejected")
        kernel.outbox.rejected_asks(rm, rejected)

    def rejected_allocations(
        self, kernel: Kernel, rm: ResourceManager, rejected: list[RejectedAllocation]
    ) -> None:
        self.require("rejectedAllocations")
        kernel.outbox.rejected_allocations(rm, rejected)

    def new(self, kernel: Kernel, allocation: Allocation) -> None:
        self.require("new")
        kernel.outbox.allocated((allocation,))

    def released_asks(
        self, kernel: Kernel, asks: Iterable[Ask], kind: TerminationType, text: str
    ) -> None:
        self.require("releasedAsks")
        kernel.outbox.released_asks(asks, kind, text)

    def released(
        self, kernel: Kernel, allocations: Iterable[Allocation], kind: TerminationType, text: str
    ) -> None:
        self.require("released")
        for allocation in allocations:
            kernel.outbox.released(allocation, kind, text)

    def released_foreign(
        self, kernel: Kernel, gone: ForeignAllocation, kind: TerminationType, text: str
    ) -> None:
        self.require("released")
        kernel.outbox.released_foreign(gone, kind, text)

    def report_released(
        self,
        kernel: Kernel,
        rm: ResourceManager,
        allocations: list[Allocation],
        text: str,
        removed: ending.Removals,
        asks: Iterable[Ask],
    ) -> None:
        self.require("released")
        ending.report_released(kernel, rm, allocations, text, removed, asks)
