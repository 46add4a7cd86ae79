"""One certificate authority for all tests of a run, and the certificates that they need."""

import ssl
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from django.conf import settings

from portal.core import clock
from portal.inventory import pki
from portal.inventory.models import Router, RouterCertificate
from portal.inventory.pki import PORTAL_URI, Identity, identity_of, router_uri


@cache
def certificates() -> Path:
    """Return the folder that the settings name; it contains ca, portal, router-rhino and router-hippo."""
    folder = settings.LONGLINE_PKI_DIR
    authority = pki.authority_create(folder, now=clock.now())
    issue(folder, "portal", PORTAL_URI, authority)
    for name in ("rhino", "hippo"):
        issue(folder, f"router-{name}", router_uri(name), authority)
    return Path(folder)


def issue(folder: Path, file_name: str, uri: str, authority: pki.Authority) -> None:
    pki.certificate_issue(
        folder,
        authority=authority,
        file_name=file_name,
        uri=uri,
        dns=["localhost"],
        addresses=[ip_address("127.0.0.1")],
        now=clock.now(),
    )


def identity_in(path: Path) -> Identity:
    """Return the identity in a PEM file."""
    return identity_of(ssl.PEM_cert_to_DER_cert(path.read_text()))


def register(router: Router, *, revoked: bool = False) -> RouterCertificate:
    """Register the router's certificate of this run."""
    identity = identity_in(certificates() / f"router-{router.name}.pem")
    now = clock.now()
    return RouterCertificate.objects.create(
        router=router,
        serial=identity.serial,
        fingerprint=identity.fingerprint,
        issued_at=now,
        expires_at=now + pki.LIFETIME,
        revoked_at=now if revoked else None,
    )
