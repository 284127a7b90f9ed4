"""Limits of users and groups: which accounts an application counts for, and which asks wait (2.5).

An application belongs to the account of its user and to that of one of the user's groups. It counts as
running there from its first allocation until it has nothing left to do. Its allocations are charged to
the ledgers even without a check: a recovered allocation may exceed a limit (2.11), and a lowered limit
stops no allocation.

Only the functions here and in ``model.accounting`` change accounts. See D39.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from quadriga.core.model.account import WILDCARD, Account, Holding, Ledger
from quadriga.core.model.gang import LIMIT
from quadriga.core.ordering.lanes import LimitLane, full
from quadriga.core.resources.demand import EVERY_BIT
from quadriga.core.resources.vectors import add
from quadriga.core.runtime.stepwise import STEP, Steps, at_once, chunks, sorted_in_steps

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.demand import Level
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals

    _Subtotal = tuple[Totals, list[str]]

__all__ = [
    "bind",
    "forget",
    "full",
    "group_of",
    "groups_in_steps",
    "held_back",
    "held_out",
    "holding",
    "holding_in_steps",
    "limited_in_steps",
    "names",
    "names_in_steps",
    "rebind",
    "release",
    "short",
]


# -- accounts of an application --------------------------------------------------------------------


def group_of(app: Application) -> str:
    """Return the group that the application counts for, or an empty text.

    From its queue upwards, each queue with group limits is searched for the first group, in the order
    of the configuration, that the user is in, and then for the wildcard.
    """
    own = frozenset(app.groups_of_user)
    for queue in app.queue.lineage:
        named = next((name for name in queue.group_limits if name in own), "")
        if named or WILDCARD in queue.group_limits:
            return named or WILDCARD
    return ""


def bind(app: Application) -> None:
    """Bind a new application to the accounts of its user and of one group."""
    partition = app.partition
    app.user_account = _account(partition.users, app.user, is_group=False)
    group = group_of(app)
    app.group_account = _account(partition.groups, group, is_group=True) if group else None
    _open_ledgers(app)


def release(app: Application) -> None:
    """Unbind an ended application. Accounts and ledgers that are no longer used are removed."""
    if isinstance(app.above, LimitLane):
        app.above.leave()
    partition = app.partition
    for ledger in app.ledgers:
        ledger.bound -= 1
        if not ledger.bound:
            del ledger.account.ledgers[ledger.queue.path]
    app.ledgers = app.limiting = app.user_limits = app.group_limits = ()
    for account, accounts in (
        (app.user_account, partition.users),
        (app.group_account, partition.groups),
    ):
        if account is not None:
            del account.applications[app]
            if not account.applications:
                del accounts[account.name]
                if not account.is_group:
                    _keep(partition, account.name)


def _keep(partition: Partition, name: str) -> None:
    """Remember a user without applications, among the latest of them."""
    kept = partition.former_users
    kept.pop(name, None)
    kept[name] = None
    if len(kept) > partition.keep_users:
        del kept[next(iter(kept))]


def rebind(partition: Partition) -> None:
    """Rebuild all accounts and ledgers after a change of limits, from what applications hold.

    An application that has never had an allocation may get another group; all others keep theirs.
    """
    apps = list(partition.applications.values())
    grants = any(queue.user_limits or queue.group_limits for queue in partition.queues())
    if not grants and not any(app.limiting or app.group_account for app in apps):
        return
    for app in apps:
        app.block(EVERY_BIT)
        app.above = None
    for leaf in partition.leaves():
        leaf.limited = ()
    for account in (*partition.users.values(), *partition.groups.values()):
        account.ledgers.clear()
        account.applications.clear()
    waiting = partition.waiting
    waiting.short_ledgers.clear()
    for ledger in [each for each in waiting.short_quotas if isinstance(each, Ledger)]:
        del waiting.short_quotas[ledger]
        waiting.quota_plans.pop(ledger, None)
    waiting.quota_look = None
    partition.waiting.exhausted_at = 0  # no round has tried an ask under the new limits
    used = {app: app.group_account for app in apps if any(app.max_allocated)}
    partition.groups = {group.name: group for group in used.values() if group is not None}
    for app in apps:
        if app in used:
            _open_ledgers(app)
        else:
            bind(app)
        for ledger in app.ledgers:
            add(ledger.usage, app.allocated)
            add(ledger.usage, app.allocated_placeholder)
            if app.counted:
                ledger.running[app] = None
    for app in apps:
        if app.gang.lacks == LIMIT:
            app.gang.lacks = ""
        partition.waiting.refresh(app)


def _account(accounts: dict[str, Account], name: str, *, is_group: bool) -> Account:
    found = accounts.get(name)
    if found is None:
        found = accounts[name] = Account(name, is_group=is_group)
    return found


def _open_ledgers(app: Application) -> None:
    user, group = app.user_account, app.group_account
    assert user is not None
    user.applications[app] = None
    of_user = user.write_to(app.queue)
    of_group: tuple[Ledger, ...] = ()
    if group is not None:
        group.applications[app] = None
        of_group = group.write_to(app.queue)
    app.ledgers = of_user + of_group
    for ledger in app.ledgers:
        ledger.bound += 1
    app.user_usage, *more = (ledger.usage for ledger in app.ledgers)
    app.other_usages = tuple(more)
    app.user_limits = tuple(ledger for ledger in of_user if ledger.limit is not None)
    app.group_limits = tuple(ledger for ledger in of_group if ledger.limit is not None)
    app.limiting = app.user_limits + app.group_limits


# -- running applications --------------------------------------------------------------------------


def forget(app: Application) -> None:
    """Stop counting an application that has nothing left to do."""
    app.counted = False
    app.partition.rm.observer.application_uncounted(app)
    app.partition.waiting.demand_epoch += 1
    for ledger in app.ledgers:
        del ledger.running[app]
    for ledger in app.limiting:
        ledger.left()


# -- checks ----------------------------------------------------------------------------------------


def short(app: Application, shape: Shape) -> Ledger | None:
    """Return the first ledger without room for one more allocation of this shape (5.6 step 3)."""
    return next((ledger for ledger in app.limiting if not ledger.has_room(shape)), None)


def held_out(app: Application) -> bool:
    """Whether a limit admits no further application.

    All applications that share the limit then wait until it does (5.6).
    """
    ledger = full(app)
    if ledger is None:
        return False
    ledger.run_full(_level_of(app, ledger))
    return True


def held_back(app: Application, shape: Shape) -> bool:
    """Whether a limit stops the application or the shape.

    All applications that share the limit then wait until it has room (5.6).
    """
    if held_out(app):
        return True
    ledger = short(app, shape)
    if ledger is None:
        return False
    ledger.run_short(shape, _level_of(app, ledger))
    return True


def _level_of(app: Application, ledger: Ledger) -> Level:
    """The level of the applications that share the limit."""
    lane = app.above
    assert isinstance(lane, LimitLane)
    return lane.lanes if ledger.account.is_group else lane


# -- reading ---------------------------------------------------------------------------------------


def limited_in_steps(
    partition: Partition, *, groups: bool = False, only: str = ""
) -> Steps[dict[str, list[Queue]]]:
    """Return the queues with a limit for each user (or group), by name, or ``only`` for one of them."""
    found: defaultdict[str, list[Queue]] = defaultdict(list)
    for at, queue in enumerate(partition.root.each()):
        names: Iterable[str] = queue.group_limits if groups else queue.user_limits
        if only:
            names = [only] if only in names else ()
        for name in names:
            found[name].append(queue)
        if names or not at % STEP:
            yield
    return found


def names_in_steps(
    partition: Partition, limited: Iterable[str], *, groups: bool = False
) -> Steps[list[str]]:
    """Return the users (or groups) with an application or a limit of their own, and the users whose last
    application has ended, sorted by name. ``limited`` are those with a limit."""
    found = {*limited, *(partition.groups if groups else partition.users)}
    if not groups:
        found.update(partition.former_users)
        found.discard(WILDCARD)  # it is not a user, but it is the account of all other groups
    return (yield from sorted_in_steps(list(found)))


@at_once
def names(partition: Partition, *, groups: bool = False) -> Steps[list[str]]:
    """Return the same at once."""
    limited = yield from limited_in_steps(partition, groups=groups)
    return (yield from names_in_steps(partition, limited, groups=groups))


def holding_in_steps(
    partition: Partition,
    name: str,
    *,
    group: bool = False,
    limited: Mapping[str, Iterable[Queue]] | None = None,
) -> Steps[Holding]:
    """Return the usage and limits of a user (or group), from root down, without queues that have neither an
    application of theirs nor a limit of their name. Raises ``KeyError``. ``limited`` are queues with a limit by
    name, if they are known."""
    if limited is None:
        limited = yield from limited_in_steps(partition, groups=group, only=name)
    account = (partition.groups if group else partition.users).get(name)
    if account is None:
        has_limit = name in limited and (group or name != WILDCARD)
        if not has_limit and (group or name not in partition.former_users):
            raise KeyError(name)
        account = Account(name, is_group=group)
    types = len(partition.registry)
    known: defaultdict[Queue, _Subtotal] = defaultdict(lambda: ([0] * types, []))
    for queue in limited.get(name, ()):
        known.update({above: known[above] for above in queue.lineage})
    yield
    for ledger in [each for each in account.ledgers.values() if each.queue.leaf]:
        for queue in ledger.queue.lineage:
            add(known[queue][0], ledger.usage)
        for apps in chunks(ledger.running):
            known[ledger.queue][1].extend([app.app_id for app in apps])
            yield
    below: defaultdict[Queue | None, list[Queue]] = defaultdict(list)
    for queue in known:
        below[queue.parent].append(queue)
    return (yield from _holding(account, partition.root, known, below))


holding = at_once(holding_in_steps)


def _holding(
    account: Account,
    queue: Queue,
    known: defaultdict[Queue, _Subtotal],
    below: defaultdict[Queue | None, list[Queue]],
) -> Steps[Holding]:
    (usage, running), children = known[queue], []
    for child in sorted(below[queue], key=attrgetter("name")):
        if queue.children.get(child.name) is child:  # it has not gone meanwhile
            children.append((yield from _holding(account, child, known, below)))
            running += children[-1].running
    in_order = tuple((yield from sorted_in_steps(running)))
    yield
    return Holding(queue.path, tuple(usage), in_order, *account.granted(queue), tuple(children))


def groups_in_steps(account: Account) -> Steps[dict[str, str]]:
    """Return the groups that the user's running applications count for, by the ID of the application (2.14)."""
    found = {}
    for apps in chunks(account.applications):
        for app in apps:
            if app.counted and app.group_account is not None:
                found[app.app_id] = app.group_account.name
        yield
    in_order = {}
    for names in chunks((yield from sorted_in_steps(list(found)))):
        in_order.update({name: found[name] for name in names})
        yield
    return in_order
