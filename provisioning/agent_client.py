"""Talking to one router's agent: HTTPS with mutual TLS (docs/agent-api.md)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from provisioning.agent_reply_decoder import (
    BadReply,
    Held,
    Reply,
    held_decode,
    json_decode,
    plan_decode,
    reply_decode,
)
from provisioning.agent_tls import router_context
from provisioning.intent_document import RouterIntent

CONNECT_S = 3.0
READ_S = 30.0
# Of the whole exchange: less than a claim on the router lasts (provisioning.router_lock).
TOTAL_S = 38.0
MAX_REPLY = 64 * 1024 * 1024
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answered:
    """The agent accepted the intent and says what became of each end."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Refused:
    """The agent refused the intent whole: an RFC 9457 problem document."""

    status: int
    problem: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.problem.get("type", ""))


@dataclass(frozen=True, slots=True)
class Unreachable:
    """There is no usable answer: no connection, the wrong peer, a timeout, or words outside the contract."""

    error: str


class AgentClient:
    """One conversation with one agent; use it as a context manager."""

    def __init__(self, *, url: str, router: str, pki: Path, pinned: frozenset[str] | None) -> None:
        self._router = router
        self._http = httpx.Client(
            base_url=url,
            verify=router_context(pki=pki, router=router, pinned=pinned),
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            # A proxy from the environment would stand between the portal and its routers.
            trust_env=False,
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    def held(self) -> Held | Unreachable:
        """Which intent the agent holds."""
        answer = self._exchange("GET", "/v1/state")
        if isinstance(answer, Unreachable):
            return answer
        status, body = answer
        try:
            if status != httpx.codes.OK:
                raise BadReply(f"HTTP {status}")
            return held_decode(body, router=self._router)
        except BadReply as error:
            return Unreachable(f"GET /v1/state: {error}")

    def put_intent(
        self, intent: RouterIntent, document: bytes, *, request_ids: Sequence[str] = ()
    ) -> Answered | Refused | Unreachable:
        """Send ``document``, the rendering of ``intent``, and wait until the agent has converged.

        ``request_ids``: those of the orders that it speaks of, for the agent's log.
        """
        answer = self._exchange("PUT", "/v1/intent", document, request_ids)
        if isinstance(answer, Unreachable):
            return answer
        status, body = answer
        try:
            if status == httpx.codes.OK:
                return Answered(reply_decode(body, sent=intent))
            return Refused(status, _problem(status, body))
        except BadReply as error:
            return Unreachable(f"PUT /v1/intent: {error}")

    def plan(
        self, document: bytes, *, request_ids: Sequence[str] = ()
    ) -> dict[str, Any] | Refused | Unreachable:
        """What the agent would do to make ``document`` true: ``operations``, ``ends``; it does nothing."""
        answer = self._exchange("POST", "/v1/plan", document, request_ids)
        if isinstance(answer, Unreachable):
            return answer
        status, body = answer
        try:
            if status == httpx.codes.OK:
                return plan_decode(body, router=self._router)
            return Refused(status, _problem(status, body))
        except BadReply as error:
            return Unreachable(f"POST /v1/plan: {error}")

    def _exchange(
        self, method: str, path: str, body: bytes | None = None, request_ids: Sequence[str] = ()
    ) -> tuple[int, bytes] | Unreachable:
        deadline = time.monotonic() + TOTAL_S
        headers = dict(_JSON) if body else {}
        if request_ids:
            headers["X-Request-Id"] = ", ".join(request_ids)
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


def _problem(status: int, body: bytes) -> dict[str, Any]:
    problem = json_decode(body)
    if not isinstance(problem, dict) or not isinstance(problem.get("type"), str):
        raise BadReply(f"HTTP {status} without a problem document")
    return problem
