"""The identity of a certificate, from its URI subject alternative name.

The format is described in docs/reference/agent-api.md.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from cryptography import x509

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
