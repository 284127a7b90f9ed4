"""Keeps the webhook's certificate and its registration up to date while it serves (K166).

A source returns the current certificate: from authorities of our own, or from mounted files. When it changes,
the API server gets the authorities first, and then new connections get the new certificate. No connection
is broken, and nothing is restarted.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol
from urllib.parse import quote

import msgspec

from quadriga.k8s.admission.certificates import (
    Renewal,
    ServerCertificate,
    bundle_of,
    issue,
    needs_another,
    read_secret,
    renew,
    secret_data,
)
from quadriga.k8s.transport.requester import NoAnswer, Requester
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.admission")

SECRET_NAME: Final = "admission-controller-secrets"


class CertificateError(Exception):
    """There is no certificate to serve with, for this reason."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The certificate that the webhook serves (PEM), and the authorities that the API server has to trust;
    ``None`` if others register them."""

    chain: bytes
    key: bytes
    bundle: bytes | None


class Source(Protocol):
    """A source of the certificate."""

    async def read(self) -> Shown:
        """Return the current certificate. Raises `CertificateError`."""


class _Secret(msgspec.Struct, rename="camel"):
    metadata: dict[str, Any] = {}
    data: dict[str, bytes] = {}


class OwnCertificate:
    """A certificate from authorities in a Secret, which all replicas share. ``names()`` are the names that
    clients use."""

    def __init__(
        self,
        requester: Requester,
        namespace: str,
        names: Callable[[], Sequence[str]],
        now: Callable[[], datetime],
        secret: str = SECRET_NAME,
    ) -> None:
        self._requester = requester
        self._collection = f"/api/v1/namespaces/{quote(namespace)}/secrets"
        self._path = f"{self._collection}/{quote(secret)}"
        self._secret = secret
        self._names = names
        self._now = now
        self._current: ServerCertificate | None = None
        self._named: Sequence[str] = ()

    async def read(self) -> Shown:
        """Return the current certificate, renewed if needed. Raises `CertificateError`."""
        renewal = await self._authorities()
        now, names = self._now(), self._names()
        if names != self._named or needs_another(self._current, renewal, now):
            self._current, self._named = issue(renewal, names, now), names
            ends = self._current.certificate.not_valid_after_utc
            _log.info("the webhook has a new certificate until %s", ends.date())
        assert self._current is not None
        bundle = bundle_of(renewal.authorities)
        return Shown(self._current.chain_pem, self._current.key_pem, bundle)

    async def _authorities(self) -> Renewal:
        for _ in range(TUNING.secret_tries):
            status, body = await self._request("GET", self._path)
            if status == 404:
                found = _Secret()
            elif status == 200:
                found = msgspec.json.decode(body, type=_Secret)
            else:
                raise CertificateError(f"secret {self._secret} cannot be read: status {status}")
            renewal = renew(read_secret(found.data), self._now())
            if not renewal.changed:
                return renewal
            data = {**found.data, **secret_data(renewal.authorities)}
            written = await self._write(found.metadata, data, new=status == 404)
            if written in (200, 201):
                return renewal
            if written not in (404, 409):
                raise CertificateError(f"secret {self._secret} cannot be written: status {written}")
            # Another replica was faster: its authorities count.
        raise CertificateError(f"secret {self._secret} is changed all the time")

    async def _write(self, metadata: dict[str, Any], data: dict[str, bytes], *, new: bool) -> int:
        metadata = {
            name: metadata[name]
            for name in ("labels", "annotations", "resourceVersion")
            if name in metadata
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**metadata, "name": self._secret},
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }
        body = msgspec.json.encode(secret)
        if new:
            return (await self._request("POST", self._collection, body))[0]
        return (await self._request("PUT", self._path, body))[0]

    async def _request(
        self, method: str, path: str, body: bytes | None = None
    ) -> tuple[int, bytes]:
        try:
            return await self._requester.request(method, path, body)
        except NoAnswer as error:
            raise CertificateError(f"secret {self._secret}: {error}") from error


class MountedCertificate:
    """A certificate from files that another program renews, such as cert-manager: certificate and chain, key,
    and authorities. Without the authorities the registration keeps those that it has."""

    def __init__(self, chain: Path, key: Path, authorities: Path) -> None:
        self._chain = chain
        self._key = key
        self._authorities = authorities

    async def read(self) -> Shown:
        """Return the certificate in the files. Raises `CertificateError`."""
        try:
            return await asyncio.to_thread(self._read)
        except OSError as error:
            raise CertificateError(str(error)) from error

    def _read(self) -> Shown:
        there = self._authorities.exists()
        bundle = self._authorities.read_bytes() if there else b""
        return Shown(self._chain.read_bytes(), self._key.read_bytes(), bundle or None)


def _show(context: ssl.SSLContext, shown: Shown) -> None:
    """Serve new connections with this certificate from now on. Raises `CertificateError`."""
    # The library reads files only. The folder is accessible to its owner only.
    with TemporaryDirectory(prefix="quadriga-") as folder:
        path = Path(folder) / "tls.pem"
        path.write_bytes(shown.chain + b"\n" + shown.key)
        try:
            context.load_cert_chain(path)
        except (ssl.SSLError, OSError) as error:
            raise CertificateError(f"the certificate cannot be used: {error}") from error


class Keeper:
    """Keeps a certificate up to date. ``register(bundle)`` registers the webhook and returns why that failed,
    or ""."""

    def __init__(
        self,
        source: Source,
        context: ssl.SSLContext,
        register: Callable[[bytes | None], Awaitable[str]],
    ) -> None:
        self._source = source
        self._context = context
        self._register = register
        self._shown: Shown | None = None

    async def start(self) -> None:
        """Get the first certificate. Raises `CertificateError`."""
        shown = await self._source.read()
        _show(self._context, shown)
        self._shown = shown

    async def refresh(self) -> None:
        """Check the certificate once. The registration is written again in any case if it differs."""
        try:
            shown = await self._source.read()
        except CertificateError as error:
            _log.warning("the webhook keeps its certificate: %s", error)
            return
        if problem := await self._register(shown.bundle):
            _log.warning("the webhook is not registered: %s", problem)
            if self._shown is not None and shown.bundle != self._shown.bundle:
                return  # the API server does not know the new authorities yet
        if self._shown is None or (shown.chain, shown.key) != (self._shown.chain, self._shown.key):
            try:
                _show(self._context, shown)
            except CertificateError as error:
                _log.warning("the webhook keeps its certificate: %s", error)
                return
        self._shown = shown
