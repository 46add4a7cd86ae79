"""Renewal of a router's certificate for the same key, over a connection that uses the old certificate."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from portal.events.outbox import announce
from portal.inventory import pki
from portal.inventory.errors import BadCertificateRequest, NoAuthorityHere
from portal.inventory.models import ObservedRouter, Router, RouterCertificate
from portal.inventory.operations.certificates import certificate_make
from portal.inventory.operations.enrolment import authority_here, key_of_request

# Certificates are renewed from this time before their end.
RENEWAL = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Renewed:
    """The new certificate and authorities for the agent. A value is None if the agent's present one stays
    valid.
    """

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
    """Return the names of routers whose agents have not reported that they trust all authorities in
    ``folder``.
    """
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
