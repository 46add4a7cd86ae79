"""Strict decoding of agents' responses: anything outside the contract is an error."""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar
from uuid import UUID

from msgspec import Struct, field, to_builtins

from portal.core.strict_json import (
    Integer31,
    Invalid,
    Malformed,
    Natural31,
    Natural53,
    Natural63,
    Positive31,
    reader,
)
from portal.vll.operations.tombstones import EndAnswer
from provisioning.intent_document import RouterIntent

# Refusals that a retry cannot fix. The numbers and names are VPP's (src/vnet/api_errno.h, in later releases
# src/vnet/error.h). The agent reads VPP's state before it acts, so a stale index (-2, -6) or a busy system
# (-11 to -20) is temporary. A code that is not listed counts as temporary. If that is wrong, the order raises
# an alarm after two minutes. A wrong permanent code would fail a customer's order.
PERMANENT = {
    -7: "INVALID_VALUE",
    -8: "INVALID_VALUE_2",
    -9: "UNIMPLEMENTED",
    -30: "FEATURE_DISABLED",
    -55: "INVALID_VLAN",
    -56: "VLAN_ALREADY_EXISTS",
    -57: "INVALID_SRC_ADDRESS",
    -58: "INVALID_DST_ADDRESS",
    -59: "ADDRESS_LENGTH_MISMATCH",
    -68: "SUBIF_ALREADY_EXISTS",
    -72: "INVALID_VLAN_TAG_COUNT",
    -73: "INVALID_ARGUMENT",
    -75: "TUNNEL_EXIST",
    -79: "IF_ALREADY_EXISTS",
    -82: "SAME_SRC_DST",
    -97: "INVALID_ADDRESS_FAMILY",
    -126: "UNSUPPORTED",
}


def is_permanent(status: str, reason: Mapping[str, Any]) -> bool:
    """Return whether a retry cannot improve the result ``status`` with ``reason``
    (docs/reference/agent-api.md).

    A conflict is permanent: its cause is a foreign object. ``pending`` can always improve.
    """
    if status == "conflict":
        return True
    return status == "failed" and (reason["code"] == "unsupported" or reason["retval"] in PERMANENT)


Document = TypeVar("Document")

REASON_CODES = {
    "verified": frozenset[str](),
    "testing": frozenset[str](),
    "removed": frozenset[str](),
    "pending": frozenset(
        {
            "unknown_interface",
            "local_address_missing",
            "port_down",
            "vpp_unavailable",
            "other_agent",
            "stats_segment_full",
            "contested",
            "verify_mismatch",
        }
    ),
    "conflict": frozenset(
        {
            "foreign_subinterface",
            "foreign_tunnel",
            "foreign_xconnect",
            "port_in_use",
            "relabelled",
            "adoption_differs",
            "adoption_refused",
        }
    ),
    "failed": frozenset({"vpp_refused", "unsupported"}),
}


# PostgreSQL's jsonb does not store NUL.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class BadReply(ValueError):
    """The response violates docs/reference/agent-api.md, or does not belong to the request."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The response to an accepted intent: the result for each end; ``document`` is the complete JSON."""

    ends: tuple[EndAnswer, ...]
    document: dict[str, Any]


class StoredIntent(Struct, frozen=True, forbid_unknown_fields=True):
    """The intent that an agent has stored, from ``GET /v1/state``. Generation 0 means that there is none."""

    generation: Natural63
    sha256: str


class TunnelCounters(Struct, frozen=True, forbid_unknown_fields=True):
    """Totals at ``at_ms``: packets of a tunnel, and packets that the router fragmented or reassembled."""

    at_ms: Natural53
    rx_packets: Natural53
    tx_packets: Natural53
    fragmented: Natural53
    reassembled: Natural53


class FramesSent(Struct, frozen=True, forbid_unknown_fields=True):
    """The response to ``POST /v1/test-frames``: frames sent, and the counters afterwards."""

    schema: Literal[1]
    router: str
    vll: UUID
    end: Literal["a", "z"]
    revision: Positive31
    sent: Natural31
    counters: TunnelCounters
    vpp_version: str
    agent_version: str


class RebuildAccepted(Struct, frozen=True, forbid_unknown_fields=True):
    """The response to ``POST /v1/rebuild``: the sub-interface will be deleted and created again."""

    schema: Literal[1]
    router: str
    vll: UUID
    end: Literal["a", "z"]


class RoundTrips(Struct, frozen=True, forbid_unknown_fields=True):
    """The response to ``POST /v1/round-trips``: packet counts, and times to the far end and back in µs."""

    schema: Literal[1]
    router: str
    vll: UUID
    end: Literal["a", "z"]
    revision: Positive31
    sent: Natural31
    received: Natural31
    min_us: Natural53
    avg_us: Natural53
    max_us: Natural53


class _Reason(Struct, forbid_unknown_fields=True):
    code: str
    message: str
    object: str | None
    retval: Integer31 | None
    vpp_message: str | None


class _End(Struct, forbid_unknown_fields=True):
    vll: UUID
    end: Literal["a", "z"]
    revision: Positive31
    status: str
    reason: _Reason | None
    # Agents that do not support policers omit this member and police nothing.
    policed: bool = False

    def __post_init__(self) -> None:
        codes = REASON_CODES.get(self.status)
        if codes is None:
            raise ValueError(f"the status is {self.status!r}")
        code = self.reason.code if self.reason else None
        if code not in (codes or {None}):
            raise ValueError(f"the reason {code!r} does not go with {self.status}")


class _Quarantined(Struct, forbid_unknown_fields=True):
    vll: str
    end: str
    interface: str


class _Reply(Struct, forbid_unknown_fields=True):
    schema: Literal[1]
    router: str
    generation: Natural63
    applied: bool
    ends: list[_End]
    quarantined: list[_Quarantined]
    # Agents of the first release do not report this member.
    look: Natural53 | None = None


class _Operation(Struct, forbid_unknown_fields=True):
    n: Positive31
    stage: str
    vll: str
    end: str
    message: str
    cli: str
    why: str


class _Plan(Struct, forbid_unknown_fields=True):
    schema: Literal[1]
    router: str
    generation: Natural63
    operations: list[_Operation]
    ends: list[_End]
    quarantined: list[_Quarantined]


class Owned(Struct, frozen=True):
    """An interface that the agent owns.

    ``key``: the VNI or GRE key of a tunnel. It is None for other interfaces, and for a tunnel whose key the
    agent does not report.
    """

    vll: str
    end: str
    kind: str
    interface: str
    key: Natural53 | None = None


class StateHead(Struct, frozen=True):
    """The part of ``GET /v1/state`` before the objects. ``stored`` None: the agent has no intent."""

    router: str
    stored: StoredIntent | None = field(name="held")


class State(StateHead, frozen=True):
    """The part of ``GET /v1/state`` that the portal reads. ``owned`` is empty while VPP is not connected."""

    owned: tuple[Owned, ...]


def decoded(kind: type[Document], body: bytes, /, **expected: object) -> Document:
    """Decode a response whose members have the ``expected`` values. Raises ``BadReply``."""
    try:
        if _NUL.search(body):
            raise BadReply("a string contains NUL, which cannot be kept as evidence")
        document: Document = _reader(kind)(body)
    except (Malformed, Invalid) as error:
        raise BadReply(str(error)) from error
    for name, value in expected.items():
        if (actual := getattr(document, name)) != value:
            raise BadReply(f"/{name} is {actual!r}, not {value!r}")
    return document


_reader: Callable[[Any], Callable[[bytes], Any]] = cache(reader)


def reply_decode(body: bytes, *, sent: RouterIntent) -> Answered:
    """Decode the response to ``sent``. It must name exactly the ends of ``sent``. Raises ``BadReply``."""
    reply = decoded(_Reply, body, router=sent.router, generation=sent.generation)
    document: dict[str, Any] = to_builtins(reply)
    reasons = [actual["reason"] for actual in document["ends"]]
    ends = tuple(
        EndAnswer(
            vll=end.vll,
            side=end.end,
            revision=end.revision,
            status=end.status,
            reason=reason,
            policed=end.policed,
            look=reply.look,
            permanent=is_permanent(end.status, reason or {}),
        )
        for end, reason in zip(reply.ends, reasons, strict=True)
    )
    _same_ends(ends, sent)
    return Answered(ends, document)


def plan_decode(body: bytes, *, router: str) -> dict[str, Any]:
    """Decode a plan; its ``operations`` and ``ends`` are as in the contract. Raises ``BadReply``."""
    document: dict[str, Any] = to_builtins(decoded(_Plan, body, router=router))
    return document


def problem_decode(body: bytes) -> dict[str, Any]:
    """Decode a complete problem document (RFC 9457). Raises ``BadReply``."""
    problem = decoded(dict[str, Any], body)
    if not isinstance(problem.get("type"), str):
        raise BadReply("this is no problem document")
    return problem


def _same_ends(ends: tuple[EndAnswer, ...], sent: RouterIntent) -> None:
    wanted = {(key.vll, key.side, key.revision): key.present for key in sent.end_keys()}
    answered: AbstractSet[tuple[UUID, str, int]] = {(end.vll, end.side, end.revision) for end in ends}
    if len(answered) != len(ends) or answered != wanted.keys():
        odd = sorted(answered ^ wanted.keys(), key=str)
        raise BadReply(f"/ends does not answer what was sent: {odd[0] if odd else 'an end occurs twice'}")
    for end in ends:
        impossible = {"removed"} if wanted[end.vll, end.side, end.revision] else {"verified", "testing"}
        if end.status in impossible:
            raise BadReply(f"/ends: {end.vll} {end.side} cannot be {end.status}")
