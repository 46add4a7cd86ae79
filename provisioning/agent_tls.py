"""A TLS context for one router: the handshake fails unless the peer is exactly that router.

Agents are named by URI, not by host. So OpenSSL verifies the chain, and this code verifies the name (RFC 6125
leaves URI names to the application). The check is part of ``wrap_socket``. A client with this context
therefore sends no data on any connection before the peer is verified.
"""

import socket
import ssl
from pathlib import Path
from typing import Any

from portal.inventory.pki import Identity, NotAnIdentity, identity_of, router_uri


class WrongPeer(ssl.SSLError):
    """The chain is valid, but the peer is another router."""


class RouterContext(ssl.SSLContext):
    """A TLS context for connections to one router.

    ``pinned``: the SHA-256 fingerprints of certificates that the router may use; None if no certificate is
    registered.
    """

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
            raise WrongPeer(f"{identity.uri} responded instead of {self.router}")
        if self.pinned is not None and identity.fingerprint not in self.pinned:
            raise WrongPeer(f"{self.router} shows a certificate that is revoked or was never registered")


def router_context(*, pki: Path, router: str, pinned: frozenset[str] | None) -> RouterContext:
    """Return a context with TLS 1.3, only the portal's CA, and the portal's certificate.

    Raises OSError if a file is missing in ``pki``.
    """
    context = RouterContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki / "ca.pem")
    context.load_cert_chain(pki / "portal.pem", pki / "portal.key")
    context.router, context.pinned = router, pinned
    return context
