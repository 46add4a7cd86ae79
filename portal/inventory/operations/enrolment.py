"""Enrolment of a router's agent: a one-time token for a certificate.

The agent's key never leaves its router.
"""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from django.db import transaction

from portal.accounts.models import ApiToken, User
from portal.events.outbox import announce
from portal.inventory import pki
from portal.inventory.errors import (
    BadCertificateRequest,
    EnrolmentExpired,
    EnrolmentOfAnother,
    EnrolmentRefused,
    EnrolmentUsed,
    NoAuthorityHere,
    Retired,
)
from portal.inventory.models import Router, RouterCertificate, RouterEnrolment
from portal.inventory.operations.certificates import certificate_make, certificates_revoke

LIFETIME = timedelta(hours=24)
_SCHEME = "lle_"
_CURVES = (ec.SECP256R1, ec.SECP384R1)


@transaction.atomic
def enrolment_offer(*, router: Router, user: User, now: datetime, made_with: ApiToken | None = None) -> str:
    """Return a new token for this router, shown once and valid for LIFETIME; an older one becomes void.

    ``made_with``: the API token that ``user`` acts through, if any. Raises Retired.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.retired_at is not None:
        raise Retired(what="router", name=locked.name)
    RouterEnrolment.objects.filter(router=locked, used_at__isnull=True).delete()
    token = _SCHEME + secrets.token_urlsafe(32)
    RouterEnrolment.objects.create(
        router=locked,
        digest=_digest(token),
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
    enrolment = RouterEnrolment.objects.filter(digest=_digest(token)).select_related("router").first()
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
    if RouterEnrolment.objects.filter(pk=enrolment.pk, used_at__isnull=True).delete()[0]:
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


def _digest(token: str) -> bytes:
    return hmac.new(settings.TOKEN_PEPPER.encode(), token.encode(), hashlib.sha256).digest()


def authority_here() -> pki.Authority:
    """Return the signing authority. Raises NoAuthorityHere."""
    try:
        return pki.authority_load(settings.LONGLINE_PKI_DIR)
    except (OSError, pki.NotAnAuthority) as error:
        raise NoAuthorityHere from error


def key_of_request(csr_pem: str) -> ec.EllipticCurvePublicKey:
    """Return the key of a PKCS #10 request, which must be signed with this key. Raises
    BadCertificateRequest.
    """
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
