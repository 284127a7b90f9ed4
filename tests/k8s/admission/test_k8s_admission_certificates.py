"""The webhook's certificates (K166): made, renewed without a restart, or mounted."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from quadriga.base.tls import bare_server_context
from quadriga.k8s.admission.certificates import (
    Authority,
    Renewal,
    bundle_of,
    issue,
    needs_another,
    read_secret,
    renew,
    secret_data,
)
from quadriga.k8s.admission.keeper import (
    CertificateError,
    Keeper,
    MountedCertificate,
    OwnCertificate,
)
from tests.k8s.admission_server import MemoryServer

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
NAMES = ("service.own.svc", "127.0.0.1")
SECRET = "/api/v1/namespaces/own/secrets/admission-controller-secrets"


@pytest.fixture(scope="module")
def renewal() -> Renewal:
    return renew((None, None), NOW)


def ends(authorities: Sequence[Authority]) -> list[int]:
    """Days from now."""
    return [(each.ends - NOW).days for each in authorities]


def test_k166_over_years_what_was_known_signs_the_server_certificate(renewal: Renewal) -> None:
    """A day at a time: whoever trusts the authorities of the day before can connect."""
    current = issue(renewal, NAMES, NOW)
    trusted = [each.pem for each in renewal.authorities]
    issued = 1
    for day in range(1, 3 * 365):
        now = NOW + day * DAY
        renewal = renew(renewal.authorities, now)
        if needs_another(current, renewal, now):
            current = issue(renewal, NAMES, now)
            issued += 1
        assert current.issuer.pem in trusted
        assert current.certificate.not_valid_after_utc - now >= 30 * DAY
        assert current.certificate.not_valid_after_utc <= current.issuer.ends
        assert all(each.ends - now >= 90 * DAY for each in renewal.authorities)
        trusted = [each.pem for each in renewal.authorities]
        assert current.issuer.pem in trusted
    assert 4 <= issued <= 8


def test_k166_the_later_authority_signs_a_year_and_30_days_before_its_end(renewal: Renewal) -> None:
    long = "s" * 60 + "." + "n" * 60 + ".svc"
    found = issue(renewal, [*NAMES, long], NOW)
    assert found.issuer is renewal.authorities[1]
    assert (found.certificate.not_valid_after_utc - NOW).days == 365
    names = found.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["service.own.svc", long]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert needs_another(None, renewal, NOW)
    current = issue(renewal, NAMES, NOW)
    same = Renewal(renewal.authorities, renewal.authorities)
    assert not needs_another(current, same, NOW + 335 * DAY)
    assert needs_another(current, same, NOW + 336 * DAY)
    assert needs_another(current, renew((None, None), NOW), NOW)


def test_the_secret_holds_both_authorities(renewal: Renewal) -> None:
    data = secret_data(renewal.authorities)
    assert sorted(data) == ["cacert1.pem", "cacert2.pem", "cakey1.pem", "cakey2.pem"]
    found = read_secret(data)
    assert [each.pem for each in found if each] == [each.pem for each in renewal.authorities]
    assert not renew(found, NOW).changed
    assert read_secret({**data, "cakey1.pem": data["cakey2.pem"]})[0] is None, "not its key"


@pytest.mark.parametrize("broken", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA"])
@pytest.mark.parametrize("key", ["cacert1.pem", "cakey1.pem"])
def test_what_cannot_be_read_is_made_again(renewal: Renewal, key: str, broken: bytes) -> None:
    found = read_secret({**secret_data(renewal.authorities), key: broken})
    assert found[0] is None
    assert [each.pem for each in renew(found, NOW).kept] == [renewal.authorities[1].pem]


def own(server: MemoryServer, now: datetime = NOW) -> OwnCertificate:
    return OwnCertificate(server, "own", lambda: NAMES, lambda: now)


async def test_k166_replicas_share_the_authorities_of_the_faster_one() -> None:
    server = MemoryServer()
    names = list(NAMES)
    first = OwnCertificate(server, "own", lambda: list(names), lambda: NOW)
    one, other = await asyncio.gather(first.read(), own(server).read())
    assert (one.bundle, server.writes) == (other.bundle, 1)
    assert one.chain != other.chain
    assert await first.read() == one
    names[0] = "b.own.svc"  # another name of the service needs another certificate
    renamed = await first.read()
    assert (renamed.chain != one.chain, renamed.bundle) == (True, one.bundle)
    # The same with a conflict that the server reports.
    server.objects[SECRET]["data"] = {}
    server.refusals = [("PUT", 409)]
    renewed = await own(server).read()
    stored = server.objects[SECRET]["data"]
    assert renewed.bundle == b"".join(
        base64.b64decode(stored[name]) for name in ("cacert1.pem", "cacert2.pem")
    )


async def test_other_keys_of_the_secret_are_kept() -> None:
    server = MemoryServer()
    metadata = {"name": "admission-controller-secrets", "resourceVersion": "7"}
    server.objects[SECRET] = {"metadata": metadata, "data": {"mine": "eA=="}}
    await own(server).read()
    assert len(server.objects[SECRET]["data"]) == 5
    assert server.objects[SECRET]["data"]["mine"] == "eA=="


@pytest.mark.parametrize(
    ("refusals", "problem"),
    [
        ([("GET", 403)], "cannot be read: status 403"),
        ([("POST", 403)], "cannot be written: status 403"),
        ([("POST", 409)] * 9, "changed all the time"),
    ],
)
async def test_a_secret_that_is_refused(refusals: list[tuple[str, int]], problem: str) -> None:
    server = MemoryServer()
    server.refusals = refusals
    with pytest.raises(CertificateError, match=problem):
        await own(server).read()


async def test_without_the_api_server_there_is_no_certificate_and_nothing_is_registered() -> None:
    server = MemoryServer()
    _, keeper, told = await kept(own(server))
    server.down = True
    with pytest.raises(CertificateError, match="nobody listens"):
        await own(server).read()
    await keeper.refresh()
    assert told == []


class Listener:
    """A TLS server with the context; `serial` is what a new connection is shown."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    async def __aenter__(self) -> Listener:
        self._server = await asyncio.start_server(
            lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=self._context
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def serial(self, bundle: bytes) -> int:
        client = ssl.create_default_context(cadata=bundle.decode())
        port = self._server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client, server_hostname=NAMES[0]
        )
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        with suppress(ssl.SSLError, ConnectionError):  # the server was faster
            await writer.wait_closed()
        return x509.load_der_x509_certificate(shown).serial_number


async def kept(
    source: OwnCertificate | MountedCertificate, *answers: str
) -> tuple[ssl.SSLContext, Keeper, list[bytes | None]]:
    """A context with a keeper that has started, and the bundles that it registers."""
    left, told = list(answers), []

    async def register(bundle: bytes | None) -> str:
        told.append(bundle)
        return left.pop(0) if left else ""

    context = bare_server_context()
    keeper = Keeper(source, context, register)
    await keeper.start()
    return context, keeper, told


async def test_k166_new_connections_get_the_new_certificate_without_a_restart() -> None:
    server, now = MemoryServer(), [NOW - 300 * DAY]
    context, keeper, told = await kept(OwnCertificate(server, "own", lambda: NAMES, lambda: now[0]))
    await keeper.refresh()
    async with Listener(context) as listener:
        first = await listener.serial(told[0])
        await keeper.refresh()
        assert await listener.serial(told[0]) == first
        # Ten months after the start: both authorities were replaced meanwhile, one after the other.
        for days in (200, 0):
            before = told[-1]
            now[0] = NOW - days * DAY
            await keeper.refresh()
            assert told[-1] != before
            assert await listener.serial(before) == await listener.serial(told[-1])
        assert await listener.serial(told[-1]) != first


async def test_k166_the_old_certificate_stays_until_the_new_authorities_are_known() -> None:
    now = [NOW - 400 * DAY]
    source = OwnCertificate(MemoryServer(), "own", lambda: NAMES, lambda: now[0])
    context, keeper, _ = await kept(source, "", "refused", "")
    await keeper.refresh()
    now[0] = NOW
    await keeper.refresh()
    bundle = (await source.read()).bundle or b""
    async with Listener(context) as listener:
        with pytest.raises(ssl.SSLCertVerificationError):
            await listener.serial(bundle)
        await keeper.refresh()
        assert await listener.serial(bundle)


def mount(folder: Path, renewal: Renewal) -> None:
    found = issue(renewal, NAMES, NOW)
    (folder / "tls.crt").write_bytes(found.chain_pem)
    (folder / "tls.key").write_bytes(found.key_pem)
    (folder / "ca.crt").write_bytes(bundle_of(renewal.authorities))


def mounted(folder: Path) -> MountedCertificate:
    return MountedCertificate(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")


async def test_k166_a_mounted_certificate_is_read_again(tmp_path: Path, renewal: Renewal) -> None:
    with pytest.raises(CertificateError, match=r"tls\.crt"):
        await mounted(tmp_path).read()
    mount(tmp_path, renewal)
    context, keeper, told = await kept(mounted(tmp_path))
    bundle = bundle_of(renewal.authorities)
    async with Listener(context) as listener:
        first = await listener.serial(bundle)
        mount(tmp_path, renewal)
        await keeper.refresh()
        second = await listener.serial(bundle)
        assert second != first
        # Half written: the key is of another certificate.
        (tmp_path / "tls.key").write_bytes(issue(renewal, NAMES, NOW).key_pem)
        await keeper.refresh()
        assert await listener.serial(bundle) == second
    assert set(told) == {bundle}
    mount(tmp_path, renewal)
    (tmp_path / "ca.crt").unlink()
    assert (await mounted(tmp_path).read()).bundle is None, "others may tell the API server"
