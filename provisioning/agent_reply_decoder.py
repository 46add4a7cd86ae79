"""Decoding what an agent answers, strictly: what the contract does not name is an error, never skipped."""

import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from portal.vll.operations.router_answers import EndAnswer
from provisioning.intent_document import RouterIntent
from provisioning.permanent_refusals import is_for_good

T = TypeVar("T")

_REASON_CODES = {
    "verified": frozenset[str](),
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
        {"foreign_subinterface", "foreign_tunnel", "foreign_xconnect", "port_in_use", "relabelled"}
    ),
    "failed": frozenset({"vpp_refused", "unsupported"}),
}


class BadReply(ValueError):
    """The agent's answer is not what docs/agent-api.md says, or not about what was sent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An accepted intent's answer; ``document`` is the JSON as it came."""

    generation: int
    applied: bool
    ends: tuple[EndAnswer, ...]
    quarantined: tuple[dict[str, Any], ...]
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """The intent that an agent holds, from ``GET /v1/state``; generation 0 when it holds none."""

    generation: int
    sha256: str | None


def reply_decode(body: bytes, *, sent: RouterIntent) -> Reply:
    """Read the answer to ``sent``: it must speak of exactly the ends that were sent. Raises ``BadReply``."""
    document = _object(
        json_decode(body),
        "",
        {"schema", "router", "generation", "applied", "ends", "quarantined"},
        later={"look": None},
    )
    look = None if document["look"] is None else _typed(document["look"], int, "/look")
    for name, expected in (("schema", 1), ("router", sent.router), ("generation", sent.generation)):
        if document[name] != expected:
            raise BadReply(f"/{name} is {document[name]!r}, not {expected!r}")
    ends = tuple(
        _end(item, f"/ends/{index}", look) for index, item in enumerate(_list(document["ends"], "/ends"))
    )
    _same_ends(ends, sent)
    quarantined = tuple(
        _object(item, f"/quarantined/{index}", {"vll", "end", "interface"})
        for index, item in enumerate(_list(document["quarantined"], "/quarantined"))
    )
    return Reply(
        generation=sent.generation,
        applied=_typed(document["applied"], bool, "/applied"),
        ends=ends,
        quarantined=quarantined,
        document=document,
    )


def held_decode(body: bytes, *, router: str) -> Held:
    """Read which intent the agent holds out of its state. Raises ``BadReply``."""
    document = json_decode(body)
    if not isinstance(document, dict) or document.get("router") != router or "held" not in document:
        raise BadReply(f"this is not the state of {router}")
    if document["held"] is None:
        return Held(generation=0, sha256=None)
    held = _object(document["held"], "/held", {"generation", "sha256"})
    return Held(
        generation=_typed(held["generation"], int, "/held/generation"),
        sha256=_typed(held["sha256"], str, "/held/sha256"),
    )


def plan_decode(body: bytes, *, router: str) -> dict[str, Any]:
    """Read a plan; its ``operations`` and ``ends`` are as in the contract. Raises ``BadReply``."""
    names = {"schema", "router", "generation", "operations", "ends", "quarantined"}
    document = _object(json_decode(body), "", names)
    if document["router"] != router:
        raise BadReply(f"this is not a plan of {router}")
    for index, item in enumerate(_list(document["operations"], "/operations")):
        _object(item, f"/operations/{index}", {"n", "stage", "vll", "end", "message", "cli", "why"})
    for index, item in enumerate(_list(document["ends"], "/ends")):
        _end(item, f"/ends/{index}")
    return document


def _end(item: Any, at: str, look: int | None = None) -> EndAnswer:
    # An agent of before there were policers polices nothing.
    item = _object(item, at, {"vll", "end", "revision", "status", "reason"}, later={"policed": False})
    status = item["status"]
    if status not in _REASON_CODES:
        raise BadReply(f"{at}/status is {status!r}")
    reason = item["reason"]
    if (reason is None) != (not _REASON_CODES[status]):
        raise BadReply(f"{at}/reason does not go with {status}")
    if reason is not None:
        _object(reason, f"{at}/reason", {"code", "message", "object", "retval", "vpp_message"})
        if reason["code"] not in _REASON_CODES[status]:
            raise BadReply(f"{at}/reason/code is {reason['code']!r}")
        _typed(reason["message"], str, f"{at}/reason/message")
        if reason["retval"] is not None:
            _typed(reason["retval"], int, f"{at}/reason/retval")
    return EndAnswer(
        vll=_uuid(item["vll"], f"{at}/vll"),
        side=_typed(item["end"], str, f"{at}/end"),
        revision=_typed(item["revision"], int, f"{at}/revision"),
        status=status,
        reason=reason,
        policed=_typed(item["policed"], bool, f"{at}/policed"),
        look=look,
        for_good=is_for_good(status, code=reason and reason["code"], retval=reason and reason["retval"]),
    )


def _same_ends(ends: tuple[EndAnswer, ...], sent: RouterIntent) -> None:
    wanted = {(key.vll, key.side, key.revision): key.present for key in sent.end_keys()}
    answered: AbstractSet[tuple[UUID, str, int]] = {(end.vll, end.side, end.revision) for end in ends}
    if len(answered) != len(ends) or answered != wanted.keys():
        odd = sorted(answered ^ wanted.keys(), key=str)
        raise BadReply(f"/ends does not answer what was sent: {odd[0] if odd else 'an end stands twice'}")
    for end in ends:
        impossible = "removed" if wanted[end.vll, end.side, end.revision] else "verified"
        if end.status == impossible:
            raise BadReply(f"/ends: {end.vll} {end.side} cannot be {impossible}")


def json_decode(body: bytes) -> Any:
    """Read JSON that PostgreSQL can keep as evidence. Raises ``BadReply``.

    Python also reads NaN, which is no JSON (RFC 8259), and NUL and lone surrogates, which jsonb refuses.
    """
    try:
        value = json.loads(body, parse_constant=_no_constant)
        _require_storable(value)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"no JSON: {error}") from error
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _require_storable(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("a string holds NUL")
        value.encode()
    elif isinstance(value, dict):
        for name, member in value.items():
            _require_storable(name)
            _require_storable(member)
    elif isinstance(value, list):
        for member in value:
            _require_storable(member)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number")


def _object(
    value: Any, at: str, names: set[str], *, later: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """``later`` are members that agents of earlier releases do not know, with what holds of these."""
    if not isinstance(value, dict) or value.keys() - later.keys() != names:
        found = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise BadReply(f"{at or '/'} has {found}, not {sorted(names)}")
    return {**later, **value}


def _list(value: Any, at: str) -> list[Any]:
    return _typed(value, list, at)


def _typed(value: Any, kind: type[T], at: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadReply(f"{at} is {value!r}, no {kind.__name__}")
    return value


def _uuid(value: Any, at: str) -> UUID:
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError) as error:
        raise BadReply(f"{at} is {value!r}, no UUID") from error
