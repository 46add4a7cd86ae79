"""A client for one router's agent: HTTPS with mutual TLS (docs/reference/agent-api.md).

The TLS handshake fails unless the peer is exactly this router. Agents are named by URI, not by host. So
OpenSSL verifies the chain, and this code verifies the name (RFC 6125 leaves URI names to the application).
The check is part of ``wrap_socket``. The client therefore sends no data before the peer is verified.
"""

import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx
from django.conf import settings

from portal.inventory.models import Router, RouterCertificate
from portal.inventory.pki import Identity, NotAnIdentity, identity_of, router_uri
from provisioning.agent_reply_decoder import (
    Answered,
    BadReply,
    FramesSent,
    RebuildAccepted,
    RoundTrips,
    State,
    StateHead,
    StoredIntent,
    decoded,
    plan_decode,
    problem_decode,
    reply_decode,
)
from provisioning.intent_document import RouterIntent


class WrongPeer(ssl.SSLError):
    """The chain is valid, but the peer is another router."""


class RouterContext(ssl.SSLContext):
    """A TLS context for connections to one router.

    ``pinned``: the SHA-256 fingerprints of permitted certificates; None if no certificate is registered.
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


Decoded = TypeVar("Decoded")

CONNECT_S = 3.0
READ_S = 30.0
# The limit for the whole exchange: shorter than a claim on the router (portal.vll.convergence.claims).
TOTAL_S = 38.0
MAX_REPLY = 64 * 1024 * 1024
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Refused:
    """The agent refused the whole intent: an RFC 9457 problem document."""

    status: int
    problem: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.problem.get("type", ""))


@dataclass(frozen=True, slots=True)
class Unreachable:
    """There is no usable response: no connection, the wrong peer, a timeout, or a breach of the contract."""

    error: str


class AgentClient:
    """One connection to one agent; use it as a context manager."""

    def __init__(self, *, url: str, router: str, pki: Path, pinned: frozenset[str] | None) -> None:
        self._router = router
        self._http = httpx.Client(
            base_url=url,
            verify=router_context(pki=pki, router=router, pinned=pinned),
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            # A proxy from the environment must not be used between the portal and its routers.
            trust_env=False,
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    def stored_intent(self) -> StoredIntent | Unreachable:
        """Return the intent that the agent has stored. Generation 0 means that there is none."""
        state = self._state(StateHead)
        if isinstance(state, Unreachable):
            return state
        return state.stored or StoredIntent(generation=0, sha256="")

    def state(self) -> State | Unreachable:
        """Return the intent that the agent has stored, and all objects that it owns."""
        return self._state(State)

    def _state(self, kind: type[Decoded]) -> Decoded | Unreachable:
        response = self._request("GET", "/v1/state", partial(decoded, kind, router=self._router))
        if isinstance(response, Refused):
            return Unreachable(f"GET /v1/state: HTTP {response.status}")
        return response

    def put_intent(
        self,
        intent: RouterIntent,
        document: bytes,
        *,
        request_ids: Sequence[str] = (),
        acknowledged_freeze: str = "",
    ) -> Answered | Refused | Unreachable:
        """Send ``document``, the rendering of ``intent``, and wait until the agent has converged.

        ``request_ids``: the ids of the HTTP requests that created the router's orders, for the agent's log.
        ``acknowledged_freeze``: the id of the last freeze whose differences a user has reviewed. After any
        other freeze, the agent refuses the intent.
        """
        decode = partial(reply_decode, sent=intent)
        return self._request("PUT", "/v1/intent", decode, document, request_ids, acknowledged_freeze)

    def plan(
        self, document: bytes, *, request_ids: Sequence[str] = ()
    ) -> dict[str, Any] | Refused | Unreachable:
        """Return the agent's plan for ``document``: ``operations`` and ``ends``. Nothing is changed."""
        return self._request(
            "POST", "/v1/plan", partial(plan_decode, router=self._router), document, request_ids
        )

    def send_test_frames(
        self, *, vll: UUID, side: str, revision: int, frame: int, count: int, rate_pps: int
    ) -> FramesSent | Refused | Unreachable:
        """Send ``count`` frames of ``frame`` bytes into a tested end's tunnel, and read the tunnel's
        counters.

        ``count`` 0 only reads the counters. The agent at the other end counts the frames that arrive.
        """
        return self._about_end(
            "/v1/test-frames",
            FramesSent,
            {"schema": 1, "frame": frame, "count": count, "rate_pps": rate_pps},
            vll=vll,
            end=side,
            revision=revision,
        )

    def measure_round_trips(
        self, *, vll: UUID, side: str, revision: int
    ) -> RoundTrips | Refused | Unreachable:
        """Measure the round trips of a few small packets to the far end of an end's tunnel."""
        return self._about_end(
            "/v1/round-trips", RoundTrips, {"schema": 1}, vll=vll, end=side, revision=revision
        )

    def rebuild(self, *, vll: UUID, side: str) -> RebuildAccepted | Refused | Unreachable:
        """Request that an end's sub-interface is deleted and created again."""
        return self._about_end("/v1/rebuild", RebuildAccepted, {}, vll=vll, end=side)

    def _about_end(
        self, path: str, kind: type[Decoded], request: dict[str, Any], *, vll: UUID, **end: str | int
    ) -> Decoded | Refused | Unreachable:
        """Send a request about an end. The response must name the same end."""
        document = json.dumps({**request, "vll": str(vll), **end}).encode()
        return self._request(
            "POST", path, partial(decoded, kind, router=self._router, vll=vll, **end), document
        )

    def _request(
        self,
        method: str,
        path: str,
        decode: Callable[[bytes], Decoded],
        document: bytes | None = None,
        request_ids: Sequence[str] = (),
        acknowledged_freeze: str = "",
    ) -> Decoded | Refused | Unreachable:
        headers = dict(_JSON) if document else {}
        if request_ids:
            headers["X-Request-Id"] = ", ".join(request_ids)
        if acknowledged_freeze:
            headers["Longline-Freeze-Looked"] = acknowledged_freeze
        response = self._exchange(method, path, document, headers)
        if isinstance(response, Unreachable):
            return response
        status, body = response
        try:
            return decode(body) if status == httpx.codes.OK else Refused(status, problem_decode(body))
        except BadReply as error:
            return Unreachable(f"{method} {path}: HTTP {status}: {error}")

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes] | Unreachable:
        deadline = time.monotonic() + TOTAL_S
        try:
            with self._http.stream(method, path, content=body, headers=headers) as response:
                received = bytearray()
                for piece in response.iter_bytes():
                    received += piece
                    if len(received) > MAX_REPLY:
                        return Unreachable(f"the reply is longer than {MAX_REPLY} bytes")
                    if time.monotonic() > deadline:
                        return Unreachable(f"the reply took longer than {TOTAL_S:g} s")
                return response.status_code, bytes(received)
        except httpx.HTTPError as error:
            return Unreachable(f"{type(error).__name__}: {error}")


def agent_of(router: Router) -> AgentClient:
    """Return a client for this router's agent.

    If certificates are registered for the router, the client accepts only those that are not revoked.
    """
    certificates = dict(
        RouterCertificate.objects.filter(router=router).values_list("fingerprint", "revoked_at")
    )
    pinned = frozenset(fingerprint for fingerprint, revoked_at in certificates.items() if revoked_at is None)
    return AgentClient(
        url=router.agent_url,
        router=router.name,
        pki=settings.LONGLINE_PKI_DIR,
        pinned=pinned if certificates else None,
    )
