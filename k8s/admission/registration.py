"""Registration of the webhook with the API server (K158).

A webhook that does not answer is skipped after two seconds. With the setting ``failClosed``, requests that
claim a user they may not claim are then refused, as by the policies; only those are (K169).

Requests that never need the webhook are not sent to it, as far as the version of the server allows: namespaces
have a label with their name since 1.21, and CEL conditions exist since 1.28. See D272.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from quadriga.k8s.admission import expressions as cel
from quadriga.k8s.admission.rules import WORKLOADS
from quadriga.k8s.admission.webhook import PORT
from quadriga.k8s.conversion.settings import CONFIGS_NAME, DEFAULTS_NAME, Settings
from quadriga.k8s.transport.requester import NoAnswer, Requester
from quadriga.k8s.tuning import TUNING

MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
_PATHS: Final = {
    MUTATING: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    VALIDATING: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
#: name of both objects
NAME: Final = "quadriga-admission"

#: label of each namespace with its name, and the first version that has it
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_WITH_NAME_LABEL: Final = (1, 21)
#: the first version with conditions beyond alpha
_WITH_CONDITIONS: Final = (1, 28)

Version = tuple[int, int]
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """The webhook's address in the cluster: a Service."""

    namespace: str
    name: str
    port: int = PORT

    def client(self, path: str) -> Document:
        """Return the client configuration."""
        service = {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}
        return {"service": service}


@dataclass(frozen=True, slots=True)
class Url:
    """The webhook's address outside of the cluster: ``https://host:port``."""

    base: str

    def client(self, path: str) -> Document:
        """Return the client configuration."""
        return {"url": self.base + path}


def configurations(
    settings: Settings,
    own_namespace: str,
    target: Service | Url,
    version: Version,
    bundle: bytes | None,
) -> list[Document]:
    """Return both objects for a server of this version. ``bundle`` has the authorities (PEM) if they are ours."""
    mutating: Document = {
        **_webhook("mutate", "/mutate", target, bundle),
        "rules": [
            _rule("", ["pods", *WORKLOADS[""]]),
            _rule("apps", [*WORKLOADS["apps"]]),
            # CronJobs are beta until 1.21
            _rule("batch", [*WORKLOADS["batch"]], ["v1", "v1beta1"]),
        ],
    }
    claims: list[Document] = []
    validating = {
        **_webhook("configuration", "/validate-conf", target, bundle),
        "rules": [_rule("", ["configmaps"])],
    }
    if version >= _WITH_NAME_LABEL:
        left_out = list(dict.fromkeys((own_namespace, "kube-system")))
        mutating["namespaceSelector"] = _namespaces("NotIn", left_out)
        validating["namespaceSelector"] = _namespaces("In", [own_namespace])
    if version >= _WITH_CONDITIONS:
        for_us = cel.for_us("object.spec", settings)
        mutating["matchConditions"] = [
            {
                "name": "scheduler",
                "expression": f'request.resource.resource != "pods" || {for_us}',
            }
        ]
        if settings.admission_fails_closed:
            claims.append(_claims(mutating, settings))
        names = ", ".join(cel.quoted(each) for each in (DEFAULTS_NAME, CONFIGS_NAME))
        validating["matchConditions"] = [
            {"name": "name", "expression": f"request.name in [{names}]"}
        ]
    # first, because a user that `mutate` has added would look like a claim
    return [_document(MUTATING, *claims, mutating), _document(VALIDATING, validating)]


def _claims(mutating: Document, settings: Settings) -> Document:
    """Return the same webhook for requests with a claim that it would deny: they are not skipped."""
    condition = {"name": "unfounded-claim", "expression": cel.unfounded_claim(settings)}
    return {
        **mutating,
        "name": "claims.admission.quadriga",
        "failurePolicy": "Fail",
        "matchConditions": [*mutating["matchConditions"], condition],
    }


def _webhook(name: str, path: str, target: Service | Url, bundle: bytes | None) -> Document:
    client = target.client(path)
    if bundle is not None:
        client["caBundle"] = base64.b64encode(bundle).decode()
    return {
        "name": f"{name}.admission.quadriga",
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": TUNING.review_timeout_s,
    }


def _rule(group: str, resources: list[str], versions: list[str] | None = None) -> Document:
    return {
        "apiGroups": [group],
        "apiVersions": versions or ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": "Namespaced",
    }


def _namespaces(operator: str, names: list[str]) -> Document:
    return {"matchExpressions": [{"key": _NAME_LABEL, "operator": operator, "values": names}]}


def _document(kind: str, *webhooks: Document) -> Document:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "quadriga"}},
        "webhooks": list(webhooks),
    }


# -- writing ---------------------------------------------------------------------------------------


async def server_version(requester: Requester) -> Version:
    """Return the version of the API server; the oldest one if it cannot be read. Raises `NoAnswer`."""
    status, body = await requester.request("GET", "/version")
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
        # Some vendors write 28+.
        major, minor = (re.match(r"\d+", str(found.get(each))) for each in ("major", "minor"))
    except msgspec.MsgspecError:
        return (1, 0)
    if status != 200 or major is None or minor is None:
        return (1, 0)
    return (int(major[0]), int(minor[0]))


async def register(requester: Requester, wanted: list[Document]) -> str:
    """Create or change the objects where they differ. Return why that failed, or ""."""
    try:
        for document in wanted:
            if problem := await _write(requester, document):
                return f"{document['kind']} {NAME}: {problem}"
    except NoAnswer as error:
        return str(error)
    return ""


async def unregister(requester: Requester) -> str:
    """Delete the objects. Return why that failed, or ""."""
    try:
        for path in _PATHS.values():
            status, _ = await requester.request("DELETE", f"{path}/{quote(NAME)}")
            if status not in (200, 202, 404):
                return f"status {status}"
    except NoAnswer as error:
        return str(error)
    return ""


async def _write(requester: Requester, document: Document) -> str:
    collection = _PATHS[document["kind"]]
    path = f"{collection}/{quote(document['metadata']['name'])}"
    status = 0
    for _ in range(TUNING.registration_tries):
        status, body = await requester.request("GET", path)
        if status == 404:
            status, _ = await requester.request("POST", collection, msgspec.json.encode(document))
        elif status == 200:
            found = msgspec.json.decode(body, type=dict[str, Any])
            changed = _changed(found, document)
            if changed is None:
                return ""
            status, _ = await requester.request("PUT", path, msgspec.json.encode(changed))
        if status in (200, 201):
            return ""
        if status != 409:
            break
    return f"status {status}"


def _changed(found: Document, wanted: Document) -> Document | None:
    """Return the object with our webhooks, or ``None`` if it has them already. A missing bundle stays as it is."""
    before = found.get("webhooks") or []
    bundles = {each["name"]: each["clientConfig"].get("caBundle") for each in before}
    after = []
    for webhook in wanted["webhooks"]:
        client = dict(webhook["clientConfig"])
        if "caBundle" not in client and bundles.get(webhook["name"]):
            client["caBundle"] = bundles[webhook["name"]]
        after.append({**webhook, "clientConfig": client})
    if len(before) == len(after) and all(map(_contains, before, after)):
        return None
    return {**found, "webhooks": after}


def _contains(found: Any, wanted: Any) -> bool:
    """Return whether everything wanted is present. The server adds defaults and keeps all of ours, but obsolete
    conditions and selectors would go unnoticed, so these are compared too."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        named = wanted.keys() | (found.keys() & {"matchConditions", "caBundle", "url", "service"})
        return all(_contains(found.get(name), wanted.get(name)) for name in named)
    return bool(found == wanted)
