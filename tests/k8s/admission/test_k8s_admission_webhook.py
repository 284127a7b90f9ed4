"""The webhook over TLS on loopback (K158, K165), and what it knows of the cluster."""

import asyncio
import base64
import gzip
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from quadriga.base.tls import bare_server_context
from quadriga.k8s.admission import validators
from quadriga.k8s.admission.keeper import Keeper, OwnCertificate
from quadriga.k8s.admission.known import Known
from quadriga.k8s.admission.validators import Validator, ask_core
from quadriga.k8s.admission.webhook import Webhook, serve
from quadriga.k8s.objects import ConfigMap, Metadata, Namespace, PriorityClass
from tests.k8s.admission.test_k8s_admission_rules import applied
from tests.k8s.admission_cases import (
    ALICE,
    CASES,
    ENABLE,
    KINDS,
    PREEMPTION,
    USER_INFO,
    Case,
    difference,
)
from tests.k8s.admission_server import MemoryServer

QUEUES = "partitions:\n  - name: default\n    queues:\n      - name: root\n"
BAD_QUEUES = QUEUES + "        resources: 3\n"


@dataclass
class Running:
    """A webhook with a client that trusts it."""

    known: Known
    server: MemoryServer
    port: int
    trust: ssl.SSLContext
    session: aiohttp.ClientSession

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        url = f"https://127.0.0.1:{self.port}{path}"
        async with self.session.post(url, data=body, ssl=self.trust) as response:
            return response.status, await response.read()

    async def review(self, path: str, **request: Any) -> dict[str, Any]:
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        filled = {"uid": "u-1", "userInfo": {"username": "alice"}, "operation": "CREATE", **request}
        status, answer = await self.post(path, json.dumps({**body, "request": filled}).encode())
        assert status == 200, answer
        found: dict[str, Any] = json.loads(answer)
        assert {name: found[name] for name in body} == body
        assert found["response"]["uid"] == "u-1"
        return dict(found["response"])

    async def config_map(self, **found: Any) -> dict[str, Any]:
        names = {"name": "yunikorn-configs", "namespace": "quadriga"}
        request = {n: found.pop(n) for n in ("name", "namespace", "operation") if n in found}
        return await self.review(
            "/validate-conf",
            resource={"group": "", "version": "v1", "resource": "configmaps"},
            object={"metadata": names, **found},
            **{**names, **request},
        )


@asynccontextmanager
async def running(validate: Validator = ask_core) -> AsyncGenerator[Running]:
    server = MemoryServer()
    known = Known(server, "quadriga")
    context = bare_server_context()
    bundles: list[bytes] = []

    async def register(bundle: bytes | None) -> str:
        bundles.append(bundle or b"")
        return ""

    source = OwnCertificate(server, "quadriga", lambda: ["127.0.0.1"], lambda: datetime.now(UTC))
    keeper = Keeper(source, context, register)
    await keeper.start()
    await keeper.refresh()
    async with serve(Webhook(known, validate), context, host="127.0.0.1", port=0) as port:
        trust = ssl.create_default_context(cadata=bundles[0].decode())
        async with aiohttp.ClientSession() as session:
            yield Running(known, server, port, trust, session)


@pytest.fixture
async def webhook() -> AsyncGenerator[Running]:
    async with running() as made:
        yield made


def fields(case: Case) -> dict[str, Any]:
    group, kind = KINDS[case.resource]
    return {
        "operation": case.operation,
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": case.resource},
        "namespace": case.namespace,
        "userInfo": {"username": case.user, "uid": "1", "groups": list(case.groups)},
        "object": case.object(),
        "oldObject": case.old(),
    }


async def test_k158_every_row_of_the_table_over_tls(webhook: Running) -> None:
    for case in CASES:
        around = case.around()
        webhook.known.settings = around.settings
        webhook.known.announce("ADDED", around.namespace)
        request = fields(case)
        if around.priority_class is not None:
            webhook.known.announce(
                "ADDED",
                PriorityClass(Metadata(name="high", annotations=dict(case.priority_class or {}))),
            )
            request["object"]["spec"]["priorityClassName"] = "high"
        response = await webhook.review("/mutate", **request)
        assert response["allowed"] is not bool(case.denied), case.name
        if case.denied:
            assert case.denied in response["status"]["message"]
            assert response["status"]["code"] == 403
            assert "patch" not in response
            continue
        patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
        assert response.get("patchType") == ("JSONPatch" if patch else None)
        changed = applied(request["object"], patch)
        assert difference(request["object"], changed, case.resource) == case.changed, case.name


async def test_a_namespace_that_nobody_announced_is_asked_for(webhook: Running) -> None:
    path = "/api/v1/namespaces/team"
    webhook.server.objects[path] = {"metadata": {"name": "team", "annotations": {ENABLE: "false"}}}
    response = await webhook.review("/mutate", **fields(CASES[0]))
    assert "patch" not in response
    webhook.known.announce("ADDED", Namespace(Metadata(name="team")))
    assert "patch" in await webhook.review("/mutate", **fields(CASES[0]))
    webhook.known.announce("DELETED", Namespace(Metadata(name="team")))
    assert "patch" not in await webhook.review("/mutate", **fields(CASES[0]))


async def test_without_the_api_server_a_namespace_has_no_annotations(webhook: Running) -> None:
    webhook.server.down = True
    request = fields(CASES[0])
    request["object"]["spec"]["priorityClassName"] = "high"
    response = await webhook.review("/mutate", **request)
    changed = applied(request["object"], json.loads(base64.b64decode(response["patch"])))
    assert changed["spec"]["schedulerName"] == "yunikorn"
    assert changed["metadata"]["annotations"] == {USER_INFO: ALICE, PREEMPTION: "true"}


async def test_subresources_are_left_alone(webhook: Running) -> None:
    response = await webhook.review("/mutate", **fields(CASES[0]), subResource="status")
    assert response == {"uid": "u-1", "allowed": True}


NO_REVIEWS = (
    b"",
    b"{",
    b"[]",
    b"\xff",
    b"[" * 100_000,
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":1}}',
    b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":null}',
    b'{"apiVersion":"v1","kind":"Pod"}',
)


async def test_what_is_no_review_is_refused(webhook: Running) -> None:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    odd = {**review, "request": {**fields(CASES[0]), "uid": "u", "object": [1]}}
    assert (await webhook.post("/mutate", json.dumps(odd).encode()))[0] == 400
    for path in ("/mutate", "/validate-conf"):
        for body in NO_REVIEWS:
            status, text = await webhook.post(path, body)
            assert status == 400, (path, body[:80])
            assert text.endswith(b"\n")
    assert (await webhook.review("/mutate", **fields(CASES[0])))["allowed"]


async def test_k158_health_needs_no_review_and_there_is_no_plain_text(webhook: Running) -> None:
    address = f"127.0.0.1:{webhook.port}/health"
    async with webhook.session.get(f"https://{address}", ssl=webhook.trust) as response:
        assert (response.status, await response.text()) == (200, "OK\n")
    with pytest.raises(aiohttp.ClientError):
        await webhook.session.get(f"http://{address}")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(
    ("oldest", "newest", "allowed"),
    [
        (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_k158_no_tls_before_1_2(
    webhook: Running, oldest: ssl.TLSVersion, newest: ssl.TLSVersion, allowed: bool
) -> None:
    webhook.trust.set_ciphers("DEFAULT:@SECLEVEL=0")
    webhook.trust.minimum_version, webhook.trust.maximum_version = oldest, newest
    opening = asyncio.open_connection("127.0.0.1", webhook.port, ssl=webhook.trust)
    if allowed:
        _, writer = await opening
        writer.close()
        await writer.wait_closed()
    else:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await opening


async def test_k165_the_core_here_and_the_settings_name_what_is_wrong(webhook: Running) -> None:
    good = {"queues.yaml": QUEUES, "service.clusterId": "a"}
    assert await webhook.config_map(data=good) == {"uid": "u-1", "allowed": True}
    response = await webhook.config_map(data={"queues.yaml": BAD_QUEUES})
    assert not response["allowed"]
    assert response["status"]["message"].startswith("queues.yaml: ")
    assert "resources" in response["status"]["message"]
    wrong = {"service.volumeBindTimeout": "soon", "kubernetes.qps": "-1"}
    message = (await webhook.config_map(data=wrong))["status"]["message"]
    assert "service.volumeBindTimeout" in message and "kubernetes.qps" in message


async def test_k165_what_both_maps_and_their_archives_give_is_checked(webhook: Running) -> None:
    defaults = Metadata(name="yunikorn-defaults", namespace="quadriga")
    webhook.known.announce("ADDED", ConfigMap(defaults, {"queues.yaml": BAD_QUEUES}))
    other = {"service.clusterId": "a"}
    assert not (await webhook.config_map(data=other))["allowed"]
    assert (await webhook.config_map(data={"queues.yaml": QUEUES}))["allowed"]
    webhook.known.announce("DELETED", ConfigMap(defaults))
    assert (await webhook.config_map(data=other))["allowed"]
    both = {"queues.yaml": QUEUES, "other.yaml": BAD_QUEUES}
    assert (await webhook.config_map(data=both))["allowed"]
    response = await webhook.config_map(data={**both, "service.policyGroup": "other"})
    assert response["status"]["message"].startswith("other.yaml: ")
    packed = base64.b64encode(gzip.compress(BAD_QUEUES.encode())).decode()
    response = await webhook.config_map(binaryData={"queues.yaml.gz": packed})
    assert response["status"]["message"].startswith("queues.yaml: ")
    broken = base64.b64encode(b"no archive").decode()
    response = await webhook.config_map(binaryData={"queues.yaml.gz": broken})
    assert "queues.yaml.gz" in response["status"]["message"]


async def test_k165_others_are_allowed(webhook: Running) -> None:
    for name, namespace, operation in (
        ("others", "quadriga", "CREATE"),
        ("yunikorn-configs", "elsewhere", "CREATE"),
        ("yunikorn-configs", "quadriga", "DELETE"),
    ):
        more = {"name": name, "namespace": namespace, "operation": operation}
        response = await webhook.config_map(data={"queues.yaml": BAD_QUEUES}, **more)
        assert response == {"uid": "u-1", "allowed": True}


@asynccontextmanager
async def core_elsewhere(status: int, body: str) -> AsyncGenerator[str]:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.text())
        return web.Response(status=status, text=body)

    application = web.Application()
    application.router.add_post("/ws/v1/validate-conf", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
    assert asked == [QUEUES]


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, '{"allowed": true, "reason": ""}', ""),
        (200, '{"allowed": false, "reason": "no root"}', "no root"),
        (200, '{"allowed": false}', "it is not valid"),
        (200, '{"allowed": "no"}', ""),
        (200, "[]", ""),
        (200, "<html>", ""),
        (503, '{"allowed": false, "reason": "no root"}', ""),
    ],
)
async def test_k165_a_core_elsewhere_is_asked(status: int, body: str, reason: str) -> None:
    async with aiohttp.ClientSession() as session, core_elsewhere(status, body) as address:
        validate = validators.elsewhere(session, lambda: address)
        assert await validate(QUEUES) == reason


async def test_k165_without_a_core_that_answers_the_webhook_checks_itself() -> None:
    async with aiohttp.ClientSession() as session:
        validate = validators.elsewhere(session, lambda: "127.0.0.1:1")
        async with running(validate) as webhook:
            assert (await webhook.config_map(data={"queues.yaml": QUEUES}))["allowed"]
            assert not (await webhook.config_map(data={"queues.yaml": BAD_QUEUES}))["allowed"]


def test_k50_settings_of_admission_take_effect_at_once() -> None:
    known = Known(MemoryServer(), "quadriga")
    name = Metadata(name="yunikorn-configs", namespace="quadriga")
    key = "admissionController.filtering.bypassNamespaces"
    known.announce("ADDED", ConfigMap(name, {key: "^a$,^b$"}))
    assert known.settings.bypass_namespaces == ("^a$", "^b$")
    known.announce("MODIFIED", ConfigMap(name, {key: "("}))
    assert known.settings.bypass_namespaces == ("^a$", "^b$")
    known.announce("DELETED", ConfigMap(name))
    assert known.settings.bypass_namespaces == ("^kube-system$",)
    elsewhere = Metadata(name="yunikorn-configs", namespace="other")
    known.announce("ADDED", ConfigMap(elsewhere, {key: "x"}))
    assert known.settings.bypass_namespaces == ("^kube-system$",)
