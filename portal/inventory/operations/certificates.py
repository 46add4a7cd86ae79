"""The accepted certificates of a router: registered and not revoked."""

from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import Certificate
from django.db import transaction

from portal.events.outbox import announce
from portal.inventory import pki
from portal.inventory.certificate_identity import identity_of, router_uri
from portal.inventory.models import Router, RouterCertificate


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
