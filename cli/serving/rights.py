"""``quadriga kubernetes --check``: what the account may not do (K18)."""

from __future__ import annotations

import asyncio
import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from quadriga.cli.errors import FOUND, CommandError
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.discovery import has_device_classes, pod_group_version
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Login, LoginError, log_in
from quadriga.k8s.transport.requester import NoAnswer
from quadriga.k8s.transport.rights import (
    DEVICE_CLASS_RIGHTS,
    POD_GROUP_RIGHTS,
    RIGHTS,
    Missing,
    RightsUnknown,
    missing,
)


def logged_in(kubeconfig: Path | None, context: str | None) -> Login:
    """The login that the options name. Raises `CommandError`."""
    try:
        return log_in(
            str(kubeconfig) if kubeconfig is not None else None,
            context,
            clock=time.monotonic_ns,
            wall=time.time_ns,
        )
    except LoginError as error:
        raise CommandError(f"kubernetes: {error}") from None


def check(arguments: Namespace, namespace: str) -> int:
    """Print what is missing. Exit code 1 if anything is. Raises `CommandError`."""
    login = logged_in(arguments.kubeconfig, arguments.context)
    try:
        number, found = asyncio.run(_missing(login, namespace))
    except (NoAnswer, RightsUnknown) as error:
        raise CommandError(f"kubernetes: {login.server}: {error}", FOUND) from None
    if arguments.json:
        lacking = [{**asdict(each.right), "verbs": each.verbs} for each in found]
        print(json.dumps({"server": login.server, "rights": number, "missing": lacking}, indent=2))
        return FOUND if found else 0
    if not found:
        print(f"{login.server}: the account has all {number} rights that it needs")
        return 0
    print(f"{login.server}: the account lacks rights")
    print()
    print(table(found, namespace))
    print()
    print("deploy/kubernetes/roles.yaml grants all of them")
    return FOUND


async def _missing(login: Login, namespace: str) -> tuple[int, list[Missing]]:
    """The number of rights that it needs, and those that are missing."""
    async with Client(login, Limits(100, 100, 16, clock=time.monotonic_ns)) as client:
        found = await missing(client, namespace)
        more = POD_GROUP_RIGHTS if await pod_group_version(client) else ()
        more += DEVICE_CLASS_RIGHTS if await has_device_classes(client) else ()
        return len(RIGHTS + more), found + await missing(client, namespace, more)


def table(found: Sequence[Missing], namespace: str) -> str:
    """What is missing, a line for each right, and what does not work without it."""
    rows = [("RESOURCE", "VERBS", "WHERE", "WITHOUT IT")]
    for each in found:
        right = each.right
        resource = f"{right.resource}.{right.group}" if right.group else right.resource
        where = namespace if right.own_namespace else "all namespaces"
        rows.append((resource, ",".join(each.verbs), where, right.without))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[3]]))
    return "\n".join(lines)
