"""Certificates of routers: registration, revocation, enrolment with a one-time token, and renewal.

The agent's key never leaves its router. A renewal is for the same key, over a connection with the old
certificate.
"""

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import Certificate
from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from portal.accounts.models import ApiToken, User
from portal.accounts.tokens import secret_digest
from portal.core.db.statements import delete_locked
from portal.events.announcements import announce
from portal.inventory import pki
from portal.inventory.errors import (
    BadCertificateRequest,
    EnrolmentExpired,
    EnrolmentOfAnother,
    EnrolmentRefused,
    EnrolmentUsed,
    NoAuthorityHere,
)
from portal.inventory.kinds import check_not_retired
from portal.inventory.models import ObservedRouter, Router, RouterCertificate, RouterEnrolment
from portal.inventory.pki import identity_of, router_uri


class NotThisRouters(ValueError):
    """The certificate names another identity than the router's."""


class AlreadyRevoked(ValueError):
    """The certificate was revoked, which is permanent: its key may be compromised."""


@transaction.atomic
def certificate_register(*, router: Router, certificate: Certificate, now: datetime) -> RouterCertificate:
    """Accept this certificate from now on. Accepting it again has no effect.

    Raises NotThisRouters, AlreadyRevoked.
    """
    identity = identity_of(certificate.public_bytes(Encoding.DER))
    if identity.router != router.name:
        raise NotThisRouters(f"{identity.uri} is not {router.name}")
    row, new = RouterCertificate.objects.get_or_create(
        serial=identity.serial,
        fingerprint=identity.fingerprint,
        router=router,
        defaults={
            "issued_at": certificate.not_valid_before_utc,
            "expires_at": certificate.not_valid_after_utc,
            "der": certificate.public_bytes(Encoding.DER),
        },
    )
    if row.revoked_at is not None:
        raise AlreadyRevoked(identity.serial)
    if new:
        data = {"serial": identity.serial}
        announce("router.certificate_registered", now=now, router_id=router.pk, data=data)
    return row


@transaction.atomic
def certificate_make(
    *, router: Router, key: EllipticCurvePublicKey, authority: pki.Authority, now: datetime
) -> tuple[RouterCertificate, Certificate]:
    """Sign and register a certificate of the router for ``key``."""
    certificate = pki.certificate_sign(
        key,
        authority=authority,
        common_name=f"router-{router.name}",
        uri=router_uri(router.name),
        now=now,
    )
    return certificate_register(router=router, certificate=certificate, now=now), certificate


@transaction.atomic
def certificates_revoke(*, router: Router, serial: str | None, now: datetime) -> list[str]:
    """Revoke all certificates of the router, or only those with the key of the certificate ``serial``.

    Return the serial numbers (hex) of the revoked certificates. The revocation applies from the next report
    and the next connection on.
    """
    Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    rows = list(RouterCertificate.objects.filter(router=router, revoked_at__isnull=True).select_for_update())
    if serial is not None:
        named = [row for row in rows if row.serial == serial.lower()]
        keys = {_key_of(row) for row in named} - {None}
        rows = [row for row in rows if row in named or _key_of(row) in keys]
    serials = [row.serial for row in rows]
    RouterCertificate.objects.filter(router=router, serial__in=serials).update(revoked_at=now)
    for each in serials:
        announce("router.certificate_revoked", now=now, router_id=router.pk, data={"serial": each})
    return serials


def _key_of(row: RouterCertificate) -> bytes | None:
    """Return the public key (SubjectPublicKeyInfo) of a certificate.

    Return None if it was registered before certificates were stored.
    """
    certificate = row.parsed()
    if certificate is None:
        return None
    return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


LIFETIME = timedelta(hours=24)
_SCHEME = "lle_"
_CURVES = (ec.SECP256R1, ec.SECP384R1)


@transaction.atomic
def enrolment_offer(*, router: Router, user: User, now: datetime, made_with: ApiToken | None = None) -> str:
    """Return a new token for this router, shown once and valid for LIFETIME; an older one becomes void.

    ``made_with``: the API token that ``user`` acts through, if any. Raises Retired.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    check_not_retired(locked)
    delete_locked(RouterEnrolment.objects.filter(router=locked, used_at__isnull=True))
    token = _SCHEME + secrets.token_urlsafe(32)
    RouterEnrolment.objects.create(
        router=locked,
        digest=secret_digest(token),
        offered_by=user.username,
        made_with=made_with,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    announce("router.enrolment_offered", now=now, router_id=locked.pk, actor=user.username)
    return token


@transaction.atomic
def router_enrol(
    *, token: str, csr_pem: str, now: datetime, router: str | None = None
) -> tuple[RouterCertificate, str, str]:
    """Sign the request's key for the token's router; return (row, certificate PEM, CA PEM).

    Only the key of the request counts: the portal sets every name in the certificate. ``router`` is the name
    that the caller uses for itself, if it sends one. A repeated request with the same key gets the same
    response, because the first may have been lost. A refusal leaves the token valid. Raises EnrolmentRefused
    and its subclasses, BadCertificateRequest, NoAuthorityHere.
    """
    enrolment = RouterEnrolment.objects.filter(digest=secret_digest(token)).select_related("router").first()
    if enrolment is None:
        raise EnrolmentRefused
    name = enrolment.router.name
    if router is not None and router != name:
        raise EnrolmentOfAnother(router=name, asking=router)
    if enrolment.expires_at <= now or enrolment.router.retired_at is not None or _is_withdrawn(enrolment):
        raise EnrolmentExpired(router=name)
    key, authority = key_of_request(csr_pem), authority_here()
    # Compare-and-swap: only one of two callers with the same token gets a certificate.
    if RouterEnrolment.objects.filter(pk=enrolment.pk, used_at__isnull=True).update(used_at=now):
        row, certificate = _certify(enrolment, key, authority, now)
    else:
        row, certificate = _certified(enrolment, key)
    ca_pem = pki.trusted_pem(settings.LONGLINE_PKI_DIR).decode()
    return row, certificate.public_bytes(Encoding.PEM).decode(), ca_pem


@transaction.atomic
def enrolment_end(*, enrolment: RouterEnrolment, now: datetime) -> None:
    """Void an unused enrolment, or revoke the certificate that a used enrolment issued."""
    if delete_locked(RouterEnrolment.objects.filter(pk=enrolment.pk, used_at__isnull=True)):
        return
    for made in RouterCertificate.objects.filter(enrolment=enrolment.pk, revoked_at__isnull=True):
        certificates_revoke(router=made.router, serial=made.serial, now=now)


def _certify(
    enrolment: RouterEnrolment, key: ec.EllipticCurvePublicKey, authority: pki.Authority, now: datetime
) -> tuple[RouterCertificate, x509.Certificate]:
    router = enrolment.router
    row, certificate = certificate_make(router=router, key=key, authority=authority, now=now)
    RouterCertificate.objects.filter(pk=row.pk).update(enrolment=enrolment)
    announce("router.enrolled", now=now, router_id=router.pk, data={"serial": row.serial})
    return row, certificate


def _is_withdrawn(enrolment: RouterEnrolment) -> bool:
    """Return whether the enrolment is unused and the user who offered it is no longer NOC staff."""
    offered_by = User.objects.filter(username=enrolment.offered_by).first()
    return enrolment.used_at is None and (offered_by is None or not offered_by.is_noc)


def _certified(
    enrolment: RouterEnrolment, key: ec.EllipticCurvePublicKey
) -> tuple[RouterCertificate, x509.Certificate]:
    """Return the certificate that this enrolment has already issued for the same key."""
    made = RouterCertificate.objects.filter(enrolment=enrolment, revoked_at__isnull=True)
    row = made.select_related("router").first()
    certificate = None if row is None else row.parsed()
    if row is not None and certificate is not None and certificate.public_key() == key:
        return row, certificate
    raise EnrolmentUsed(router=enrolment.router.name)


def authority_here() -> pki.Authority:
    """Return the signing authority. Raises NoAuthorityHere."""
    try:
        return pki.authority_load(settings.LONGLINE_PKI_DIR)
    except (OSError, pki.NotAnAuthority) as error:
        raise NoAuthorityHere from error


def key_of_request(csr_pem: str) -> ec.EllipticCurvePublicKey:
    """Return the key of a PKCS #10 request, if it has signed the request. Raises BadCertificateRequest."""
    try:
        request = x509.load_pem_x509_csr(csr_pem.encode())
        key = request.public_key()
        good = request.is_signature_valid
    except Exception as error:
        # cryptography raises many kinds of errors for bad DER.
        raise BadCertificateRequest from error
    if not good or not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, _CURVES):
        raise BadCertificateRequest
    return key


# Certificates are renewed from this time before their end.
RENEWAL = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Renewed:
    """The new certificate and authorities for the agent. None: the agent's present value stays valid."""

    certificate_pem: str | None
    ca_pem: str | None


@transaction.atomic
def certificate_renew(
    *, router: Router, shown: x509.Certificate, csr_pem: str, ca_sha256: str, now: datetime
) -> Renewed:
    """Return a new certificate if the agent needs one, and the trusted authorities if the agent needs them.

    The agent needs a new certificate if the ``shown`` one expires soon, or was issued by another authority
    than the signing authority. The agent needs the authorities if its file of authorities has another
    SHA-256. Of the request, only the key counts. It must be the key of the shown certificate. A repeated
    request gets the same result. If the authority's key is not on this machine, nothing is signed, and the
    alarm ``certificate_ends`` reports the certificate later. Raises BadCertificateRequest.
    """
    key = key_of_request(csr_pem)
    if key != shown.public_key():
        raise BadCertificateRequest
    # Code that revokes certificates also locks the router.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    fingerprint = shown.fingerprint(hashes.SHA256()).hex()
    if not _good(locked).filter(fingerprint=fingerprint).exists():
        raise BadCertificateRequest
    ObservedRouter.objects.filter(router=locked).update(ca_sha256=ca_sha256, certificate_shown=fingerprint)
    trusted = pki.trusted_pem(settings.LONGLINE_PKI_DIR)
    others = hashlib.sha256(trusted).hexdigest() != ca_sha256
    new = None
    with suppress(NoAuthorityHere):
        authority = authority_here()
        new = _renewed(locked, key, authority, now) if _is_due(shown, authority, now) else None
    return Renewed(
        certificate_pem=None if new is None else new.public_bytes(Encoding.PEM).decode(),
        ca_pem=trusted.decode() if others else None,
    )


def _is_due(certificate: x509.Certificate, authority: pki.Authority, now: datetime) -> bool:
    return certificate.not_valid_after_utc - now < RENEWAL or not _is_of(certificate, authority)


def _is_of(certificate: x509.Certificate, authority: pki.Authority) -> bool:
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except Exception:
        # The library cryptography raises different errors for a wrong signature, a wrong issuer name and a
        # wrong type of key.
        return False
    return True


def _renewed(
    router: Router, key: EllipticCurvePublicKey, authority: pki.Authority, now: datetime
) -> x509.Certificate:
    """Return the newest valid certificate for this key that need not be renewed, or issue one."""
    for row in _good(router).order_by("-expires_at"):
        kept = row.parsed()
        if kept is not None and kept.public_key() == key and not _is_due(kept, authority, now):
            return kept
    row, made = certificate_make(router=router, key=key, authority=authority, now=now)
    announce("router.certificate_renewed", now=now, router_id=router.pk, data={"serial": row.serial})
    return made


def without_authorities(folder: Path) -> list[str]:
    """Return the names of routers that have not reported that they trust all authorities in ``folder``."""
    digest = hashlib.sha256(pki.trusted_pem(folder)).hexdigest()
    return list(_with_agent().exclude(observed__ca_sha256=digest).values_list("name", flat=True))


def without_certificate_of(authority: pki.Authority) -> list[str]:
    """Return the names of routers whose agents last presented no valid certificate of this authority."""
    shown = RouterCertificate.objects.filter(
        revoked_at__isnull=True, fingerprint=F("router__observed__certificate_shown")
    )
    parsed = ((row.router_id, row.parsed()) for row in shown)
    known = {router for router, certificate in parsed if certificate and _is_of(certificate, authority)}
    return list(_with_agent().exclude(pk__in=known).values_list("name", flat=True))


def _good(router: Router) -> QuerySet[RouterCertificate]:
    return RouterCertificate.objects.filter(router=router, revoked_at__isnull=True)


def _with_agent() -> QuerySet[Router]:
    return Router.objects.exclude(agent_url="").filter(retired_at__isnull=True).order_by("name")
