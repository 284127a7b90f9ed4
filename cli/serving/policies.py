"""``quadriga kubernetes admission --policy``: the policies that the API server evaluates itself."""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import Namespace
from pathlib import Path

import msgspec
import yaml

from quadriga.cli.errors import FOUND, CommandError, about
from quadriga.cli.serving.rights import logged_in
from quadriga.k8s.admission.policy import render
from quadriga.k8s.conversion import settings as conversion
from quadriga.k8s.objects import ConfigMap
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Login
from quadriga.k8s.transport.requester import NoAnswer, refusal_of


def print_policy(arguments: Namespace, namespace: str) -> int:
    """Print the policies. Raises `CommandError`."""
    if arguments.settings is not None:
        reading = _from_file(arguments.settings)
    else:
        login = logged_in(arguments.kubeconfig, arguments.context)
        try:
            reading = asyncio.run(_from_cluster(login, namespace))
        except NoAnswer as error:
            raise CommandError(f"kubernetes: {login.server}: {error}", FOUND) from None
    for line in (*reading.errors, *reading.warnings):
        print(line, file=sys.stderr)
    if reading.settings is None:
        raise CommandError("kubernetes: the settings cannot be used", FOUND)
    print(render(reading.settings, namespace, arguments.policy_version), end="")
    return 0


def _from_file(path: Path) -> conversion.Reading:
    """The settings of a file with one of the ConfigMaps, or both."""
    with about(f"kubernetes: --settings {path}"):
        text = path.read_text(encoding="utf-8")
    try:
        found = [
            msgspec.convert(each, ConfigMap, strict=False)
            for each in yaml.safe_load_all(text)
            if isinstance(each, dict) and each.get("kind") == "ConfigMap"
        ]
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise CommandError(f"kubernetes: --settings {path}: {error}") from None
    by_name = {each.metadata.name: each for each in found}
    names = (conversion.DEFAULTS_NAME, conversion.CONFIGS_NAME)
    if not any(name in by_name for name in names):
        raise CommandError(f"kubernetes: --settings {path}: no ConfigMap {' or '.join(names)}")
    return conversion.from_maps(*map(by_name.get, names))


async def _from_cluster(login: Login, namespace: str) -> conversion.Reading:
    found: list[ConfigMap | None] = []
    limits = Limits(100, 100, 16, clock=time.monotonic_ns)
    async with Client(login, limits) as client:
        for name in (conversion.DEFAULTS_NAME, conversion.CONFIGS_NAME):
            path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
            status, body = await client.request("GET", path)
            if status not in (200, 404):
                refusal = refusal_of(status, body)
                raise CommandError(f"kubernetes: ConfigMap {namespace}/{name}: {refusal}", FOUND)
            found.append(msgspec.json.decode(body, type=ConfigMap) if status == 200 else None)
    return conversion.from_maps(*found)
