"""The certificate authority of one installation, its two kinds of certificates, and the identities in them.

All keys are ECDSA P-256. The authority signs only end entities (path length 0). Files: ca.pem, ca.key,
portal.pem, portal.key, router-<name>.pem, router-<name>.key. Only their owner can read them. Files are
overwritten only during a rollover to another authority. During the rollover ca.pem contains both authorities,
and ca.key is the key of the signing one. ca-next.key is the key of the next authority, and ca-old.key the key
of the old one.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PORTAL_URI = "spiffe://longline/portal"
_ROUTER_PREFIX = "spiffe://longline/router/"
_ROUTER_NAME = re.compile(r"[a-z0-9-]{1,63}\Z")


class NotAnIdentity(ValueError):
    """The certificate cannot be read, or does not contain exactly one URI name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity.

    ``uri``: as in the certificate. ``serial`` and ``fingerprint`` (SHA-256 of the DER) are hex.
    """

    uri: str
    serial: str
    fingerprint: str

    @property
    def router(self) -> str | None:
        """Return the router's name, or None if the certificate belongs to no router."""
        name = self.uri.removeprefix(_ROUTER_PREFIX)
        return name if name != self.uri and is_router_name(name) else None


def is_router_name(name: str) -> bool:
    """Return whether a router can have this name. The name must fit into a URI without escapes."""
    return _ROUTER_NAME.match(name) is not None


def router_uri(name: str) -> str:
    """Return the URI name of a router's agent."""
    return _ROUTER_PREFIX + name


@lru_cache(maxsize=4096)
def identity_of(der: bytes) -> Identity:
    """Read a certificate whose chain has been verified already. Raises ``NotAnIdentity``."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise NotAnIdentity(str(error)) from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise NotAnIdentity(f"{len(uris)} URI names")
    return Identity(
        uri=uris[0],
        serial=format(certificate.serial_number, "x"),
        fingerprint=hashlib.sha256(der).hexdigest(),
    )


CA_LIFETIME = timedelta(days=3652)
LIFETIME = timedelta(days=365)
# A certificate is valid from this long before its creation, because clocks of routers may be wrong.
BACKDATING = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class NotAnAuthority(ValueError):
    """ca.key is not the ECDSA key of a certificate in ca.pem."""


class NoRollover(ValueError):
    """The requested step of a rollover does not follow the step that was done last."""


def authority_create(folder: Path, *, now: datetime) -> Authority:
    """Create ca.pem and ca.key in ``folder``. Raises FileExistsError if one of them exists."""
    authority = _new_authority("Longline CA", now)
    _write(folder, "ca", authority.certificate, authority.key)
    return authority


def _new_authority(called: str, now: datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(called)
    certificate = (
        _builder(subject=name, issuer=name, key=key.public_key(), now=now, lifetime=CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def authority_load(folder: Path) -> Authority:
    """Return the signing authority: ca.key and its certificate in ca.pem.

    Raises FileNotFoundError, NotAnAuthority.
    """
    return _authority_of(folder / "ca.key")


def _authority_of(key_file: Path) -> Authority:
    trusted = authorities_load(key_file.parent)
    key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    for certificate in trusted:
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == certificate.public_key():
            return Authority(certificate, key)
    raise NotAnAuthority(str(key_file.parent))


def authorities_load(folder: Path) -> list[x509.Certificate]:
    """Return all trusted authorities, from ca.pem. Raises FileNotFoundError, NotAnAuthority."""
    try:
        return x509.load_pem_x509_certificates((folder / "ca.pem").read_bytes())
    except ValueError as error:
        raise NotAnAuthority(str(folder)) from error


def trusted_pem(folder: Path) -> bytes:
    """Return all trusted authorities as agents store them. Raises FileNotFoundError, NotAnAuthority."""
    return _pem(authorities_load(folder))


def rollover_begin(folder: Path, *, now: datetime) -> x509.Certificate:
    """Create the next authority, which is trusted from now on and does not sign yet. Raises NoRollover."""
    trusted = authorities_load(folder)
    if len(trusted) > 1:
        raise NoRollover("one has begun already")
    following = _new_authority(f"Longline CA {now:%Y-%m-%d}", now)
    # An existing file comes from an interrupted run, and nobody trusts its certificate.
    _replace(folder / "ca-next.key", _private(following.key))
    _replace(folder / "ca.pem", _pem([*trusted, following.certificate]))
    return following.certificate


def rollover_switch(
    folder: Path,
    *,
    uri: str,
    dns: Sequence[str] = (),
    addresses: Sequence[IPv4Address | IPv6Address] = (),
    now: datetime,
) -> None:
    """Sign the portal's own certificate with the next authority, and make this authority the signing one.

    An interrupted run can be repeated. The key of the old authority is kept until the last step. Raises
    NoRollover, NotAnAuthority.
    """
    waiting = folder / "ca-next.key"
    if not waiting.exists():
        raise NoRollover("none has begun, or the next authority signs already")
    authority = _authority_of(waiting)
    names = {"common_name": "portal", "uri": uri, "dns": dns, "addresses": addresses}
    key, certificate = _key_and_certificate(authority=authority, now=now, **names)
    _replace(folder / "portal.key", _private(key))
    _replace(folder / "portal.pem", _pem([certificate]))
    _replace(folder / "ca-old.key", (folder / "ca.key").read_bytes())
    waiting.replace(folder / "ca.key")


def rollover_finish(folder: Path) -> None:
    """Trust only the signing authority from now on. Raises NoRollover."""
    if (folder / "ca-next.key").exists() or len(authorities_load(folder)) == 1:
        raise NoRollover("the next authority does not sign yet, or there is no other")
    _replace(folder / "ca.pem", _pem([authority_load(folder).certificate]))
    (folder / "ca-old.key").unlink(missing_ok=True)


def certificate_issue(
    folder: Path,
    *,
    authority: Authority,
    file_name: str,
    uri: str,
    dns: Sequence[str] = (),
    addresses: Sequence[IPv4Address | IPv6Address] = (),
    now: datetime,
) -> x509.Certificate:
    """Create ``file_name``.pem and .key for one identity, valid for client and server (RFC 5280 4.2.1.12).

    Raises FileExistsError if the files exist, because they may be in use.
    """
    names = {"common_name": file_name, "uri": uri, "dns": dns, "addresses": addresses}
    key, certificate = _key_and_certificate(authority=authority, now=now, **names)
    _write(folder, file_name, certificate, key)
    return certificate


def _key_and_certificate(**facts: Any) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, certificate_sign(key.public_key(), **facts)


def certificate_sign(
    key: ec.EllipticCurvePublicKey,
    *,
    authority: Authority,
    common_name: str,
    uri: str,
    dns: Sequence[str] = (),
    addresses: Sequence[IPv4Address | IPv6Address] = (),
    now: datetime,
) -> x509.Certificate:
    """Return a certificate for the owner of ``key``. The caller decides on the names in the certificate."""
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)]
    names += [x509.DNSName(name) for name in dns] + [x509.IPAddress(address) for address in addresses]
    issuer_key_id = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return (
        _builder(
            subject=_name(common_name),
            issuer=authority.certificate.subject,
            key=key,
            now=now,
            lifetime=LIFETIME,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id.value),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def _builder(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATING)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    # RFC 5280 limits a common name to 64 characters. No check uses the common name.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in (folder / f"{name}.pem", folder / f"{name}.key"):
        if path.exists():
            raise FileExistsError(path)
    _write_new(folder / f"{name}.key", _private(key))
    _write_new(folder / f"{name}.pem", _pem([certificate]))


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically: readers get the old content or the new."""
    temporary = path.with_suffix(f"{path.suffix}.new")
    temporary.unlink(missing_ok=True)
    _write_new(temporary, content)
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_new(path: Path, content: bytes) -> None:
    # With O_EXCL, a concurrent process cannot replace a key. The mode is set before the content is written.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
