"""Certificates of the webhook: two authorities in a Secret, and a server certificate from one of them (K166).

An authority lasts a year. The two end six months apart, so that one is always known to the API server while the
other one is replaced. A server certificate is never signed by an authority that the API server may not know
yet.

Everything here is a function of the existing certificates and the time; `keeper` reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR: Final = timedelta(days=365)
#: the first of two new authorities ends this much earlier than the second one
APART: Final = timedelta(days=182)
#: an authority with less remaining time is replaced
AUTHORITY_MARGIN: Final = timedelta(days=90)
#: the same for a server certificate
SERVER_MARGIN: Final = timedelta(days=30)
#: clocks differ: certificates begin a little earlier
_EARLIER: Final = timedelta(minutes=5)

_CERTIFICATES: Final = ("cacert1.pem", "cacert2.pem")
_KEYS: Final = ("cakey1.pem", "cakey2.pem")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority. The holder of its key can sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def ends(self) -> datetime:
        """When the certificate expires."""
        return self.certificate.not_valid_after_utc

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """The certificate that the webhook serves, with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: Authority

    @property
    def chain_pem(self) -> bytes:
        """The certificate as PEM. The chain has no other one."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as PEM."""
        return _key_pem(self.key)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Two authorities, and which of them existed before."""

    authorities: tuple[Authority, Authority]
    kept: tuple[Authority, ...]

    @property
    def changed(self) -> bool:
        """Whether an authority was replaced."""
        return len(self.kept) < len(self.authorities)


def renew(found: Iterable[Authority | None], now: datetime) -> Renewal:
    """Return the authorities of a Secret, with new ones for those that are missing or end soon."""
    first, second = (
        None if each is None or each.ends - now < AUTHORITY_MARGIN else each for each in found
    )
    if first is None and second is None:
        return Renewal((_authority(now, YEAR - APART), _authority(now, YEAR)), ())
    kept = tuple(each for each in (first, second) if each is not None)
    return Renewal((first or _authority(now, YEAR), second or _authority(now, YEAR)), kept)


def needs_another(current: ServerCertificate | None, renewal: Renewal, now: datetime) -> bool:
    """Return whether a new server certificate is due: it ends soon, or its authority is gone."""
    if current is None or current.certificate.not_valid_after_utc - now < SERVER_MARGIN:
        return True
    return all(each.pem != current.issuer.pem for each in renewal.authorities)


def issue(renewal: Renewal, names: Iterable[str], now: datetime) -> ServerCertificate:
    """Issue a server certificate for DNS names and IP addresses, for a year if its authority lasts that long.

    It is signed by the authority that ends last among those that were known before, if there are any.
    """
    issuer = max(renewal.kept or renewal.authorities, key=lambda each: each.ends)
    key = ec.generate_private_key(ec.SECP256R1())
    names = list(names)
    builder = _builder(_name(names[0]), key, now, min(now + YEAR, issuer.ends))
    certificate = (
        builder.issuer_name(issuer.certificate.subject)
        .add_extension(x509.SubjectAlternativeName(_alternative(each) for each in names), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(_usage(signs=False), True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), False
        )
        .sign(issuer.key, hashes.SHA256())
    )
    return ServerCertificate(certificate, key, issuer)


def bundle_of(authorities: Iterable[Authority]) -> bytes:
    """Return the authorities that the API server trusts, as PEM."""
    return b"".join(each.pem for each in authorities)


# -- the Secret ------------------------------------------------------------------------------------


def secret_data(authorities: Iterable[Authority]) -> dict[str, bytes]:
    """Return the data of a Secret with the authorities."""
    data: dict[str, bytes] = {}
    for certificate, key, each in zip(_CERTIFICATES, _KEYS, authorities, strict=True):
        data[certificate] = each.pem
        data[key] = _key_pem(each.key)
    return data


def read_secret(data: Mapping[str, bytes]) -> tuple[Authority | None, Authority | None]:
    """Return both authorities of a Secret; ``None`` for one that is missing or cannot be read."""
    first, second = (
        _read(data.get(certificate, b""), data.get(key, b""))
        for certificate, key in zip(_CERTIFICATES, _KEYS, strict=True)
    )
    return first, second


def _read(certificate_pem: bytes, key_pem: bytes) -> Authority | None:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError):
        return None
    # Keys of other kinds are YuniKorn's own, in a Secret with the same name.
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return Authority(certificate, key) if certificate.public_key() == key.public_key() else None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


# -- making certificates ---------------------------------------------------------------------------


def _authority(now: datetime, lasts: timedelta) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # The names differ: with two authorities of one name a client may try only the wrong one.
    name = _name(f"Quadriga admission {x509.random_serial_number():x}"[:60])
    certificate = (
        _builder(name, key, now, now + lasts)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .add_extension(_usage(signs=True), True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
