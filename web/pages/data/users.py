"""Users and groups: their usage and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.model.account import Account, Holding
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import Queue
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.core.steps import limits
from quadriga.core.views.quantities import amounts, sorted_amounts
from quadriga.web.pages.data.lookup import partition_of
from quadriga.web.pages.data.sorting import both_ways, page_in_order, share

KINDS: Final = ("users", "groups")
#: The columns that the list can be sorted by; equal ones are sorted by name.
SORTS: Final = ("name", *both_ways(("running", "holds")), "-name")

#: The most limits, and the most applications, of one user or group in one answer.
_LIMITS: Final = 50
_APPLICATIONS: Final = 20


def user_rows(
    scheduler: Scheduler,
    *,
    partition: str,
    kind: str,
    text: str,
    sort: str,
    offset: int,
    limit: int,
) -> Steps[dict[str, Any]]:
    """Every user or group with an application here or a limit of its own, one page at a time.

    ``limits`` has every queue with a limit for the user, and its usage. ``groups`` of a user are the
    groups that its running applications count for.
    """
    found = partition_of(scheduler, partition)
    groups = kind == "groups"
    piece = text.casefold()
    limited = yield from limits.limited_in_steps(found, groups=groups)
    names: list[str] = []
    for some in chunks((yield from limits.names_in_steps(found, limited, groups=groups))):
        names += [name for name in some if not piece or piece in name.casefold()]
        yield
    accounts = found.groups if groups else found.users
    whole = {index: size for index, size in enumerate(found.capacity) if size}
    page, rows = slice(offset, offset + limit), []
    if sort in ("name", "-name"):
        shown = names[:: -1 if sort == "-name" else 1][page]
    else:
        shown = yield from page_in_order(
            names, sort, lambda key, name: _key(accounts.get(name), key, whole), page
        )
    for name in shown:
        with suppress(KeyError):  # it has gone meanwhile
            rows.append((yield from _row(found, name, groups, limited)))
        yield
    return {
        "partition": found.key,
        "kind": kind,
        "total": len(names),
        "offset": offset,
        "limit": limit,
        "rows": rows,
    }


def _key(account: Account | None, key: str, whole: Mapping[int, int]) -> float:
    """The number of running applications, or the share of the cluster held."""
    if account is None:
        return 0
    held = [ledger for ledger in account.ledgers.values() if ledger.queue.leaf]
    if key == "running":
        return sum(len(ledger.running) for ledger in held)
    return share(map(sum, zip(*(ledger.usage for ledger in held), strict=True)), whole)


def _row(
    partition: Partition, name: str, group: bool, limited: Mapping[str, list[Queue]]
) -> Steps[dict[str, Any]]:
    holding = yield from limits.holding_in_steps(partition, name, group=group, limited=limited)
    account = (partition.groups if group else partition.users).get(name)
    bound = {}
    if account is not None and not group:
        bound = yield from limits.groups_in_steps(account)
    return {
        "name": name,
        "used": amounts(partition, holding.usage),
        "running": len(holding.running),
        "applications": list(holding.running[:_APPLICATIONS]),
        "living": len(account.applications) if account is not None else 0,
        "groups": sorted(set(bound.values())),
        "limits": list(_limits(partition, holding))[:_LIMITS],
    }


def _limits(partition: Partition, holding: Holding) -> Iterator[dict[str, Any]]:
    if holding.limit is not None:
        most = sorted_amounts(holding.limit.max)
        used = amounts(partition, holding.usage, most)
        yield {
            "queue": holding.path,
            "shared": holding.wildcard,
            "used": {name: used.get(name, 0) for name in most},
            "max": most,
            "running": len(holding.running),
            "maxRunning": holding.limit.applications,
        }
    for child in holding.children:
        yield from _limits(partition, child)
