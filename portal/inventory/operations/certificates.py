"""The certificates that count for a router: registered ones, until they are revoked."""

from datetime import datetime

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate
from django.db import transaction

from portal.events.outbox import announce
from portal.inventory.certificate_identity import identity_of
from portal.inventory.models import Router, RouterCertificate


class NotThisRouters(ValueError):
    """The certificate names somebody else."""


class AlreadyRevoked(ValueError):
    """The certificate was revoked, which is for ever: its key may be in other hands."""


@transaction.atomic
def certificate_register(*, router: Router, certificate: Certificate, now: datetime) -> RouterCertificate:
    """Accept this certificate from now on; doing so twice is once. Raises NotThisRouters, AlreadyRevoked."""
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
        },
    )
    if row.revoked_at is not None:
        raise AlreadyRevoked(identity.serial)
    if new:
        data = {"serial": identity.serial}
        announce("router.certificate_registered", now=now, router_id=router.pk, data=data)
    return row


@transaction.atomic
def certificates_revoke(*, router: Router, serial: str | None, now: datetime) -> list[str]:
    """Revoke one certificate of the router, or all; returns their serial numbers (hex).

    It counts from the next report and the next connection on.
    """
    rows = RouterCertificate.objects.filter(router=router, revoked_at__isnull=True)
    if serial is not None:
        rows = rows.filter(serial=serial.lower())
    serials = list(rows.select_for_update().values_list("serial", flat=True))
    RouterCertificate.objects.filter(router=router, serial__in=serials).update(revoked_at=now)
    for each in serials:
        announce("router.certificate_revoked", now=now, router_id=router.pk, data={"serial": each})
    return serials
