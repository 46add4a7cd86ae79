"""A TLS context for one router: the handshake itself fails unless the peer is exactly that router.

Agents are named by URI, not by host, so OpenSSL verifies the chain and we verify the name (RFC 6125
leaves URI names to the application). The check sits in ``wrap_socket``: no connection that a client
or its pool makes with this context can carry a byte before the peer has been found to be the right one.
"""

import socket
import ssl
from pathlib import Path
from typing import Any

from portal.inventory.certificate_identity import Identity, NotAnIdentity, identity_of, router_uri


class WrongPeer(ssl.SSLError):
    """The chain is good, but whoever answers is not the router that was meant."""


class RouterContext(ssl.SSLContext):
    """``pinned``: the SHA-256 fingerprints that the router may show, or None where none is registered."""

    router: str
    pinned: frozenset[str] | None

    def wrap_socket(self, sock: socket.socket, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        wrapped = super().wrap_socket(sock, *args, **kwargs)
        try:
            self._require_router(wrapped.getpeercert(binary_form=True))
        except BaseException:
            wrapped.close()
            raise
        return wrapped

    def _require_router(self, der: bytes | None) -> None:
        try:
            identity: Identity = identity_of(der or b"")
        except NotAnIdentity as error:
            raise WrongPeer(f"the certificate names nobody: {error}") from error
        if identity.uri != router_uri(self.router):
            raise WrongPeer(f"{identity.uri} answered in place of {self.router}")
        if self.pinned is not None and identity.fingerprint not in self.pinned:
            raise WrongPeer(f"{self.router} shows a certificate that is revoked or was never registered")


def router_context(*, pki: Path, router: str, pinned: frozenset[str] | None) -> RouterContext:
    """TLS 1.3, our CA alone, the portal's own certificate. Raises OSError when ``pki`` lacks a file."""
    context = RouterContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki / "ca.pem")
    context.load_cert_chain(pki / "portal.pem", pki / "portal.key")
    context.router, context.pinned = router, pinned
    return context
