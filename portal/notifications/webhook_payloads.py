"""The bodies of webhook requests, and their signatures."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from portal.events.models import Event
from portal.inventory.models import Router
from portal.notifications.event_catalogue import BY_ANNOUNCED, EventType
from portal.vll.models import Vll
from portal.vll.states import OperStatus

_PREFIX = "whsec_"
# The specification requires 24 to 64 bytes.
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new random secret in the form that users get: ``whsec_`` and base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    body: bytes, *, message_id: str, at: datetime, secrets: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the three headers that sign a message, with one signature for each secret.

    During a change of the secret, a receiver knows only one of the two secrets. ``at``: the time of the
    attempt. Receivers check it to detect replays.
    """
    timestamp = int(at.timestamp())
    signatures = [_signature(secret, f"{message_id}.{timestamp}.".encode() + body) for secret in secrets]
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(signatures)),
    ]


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def payload(event: Event, *, line: Vll | None, router: Router | None, customer: str | None) -> str | None:
    """Return the body for a public event; None if the line or the router of the event was deleted.

    ``line`` must have its customer loaded. The body describes the state at the time of the event. The REST
    API returns the current state.
    """
    kind = BY_ANNOUNCED[event.kind]
    if event.kind.startswith("webhook."):
        return body(kind.name, event.at, {**event.data, "customer": customer})
    if event.kind.startswith("router."):
        return body(kind.name, event.at, {"router": router.name}) if router else None
    if line is None:
        return None
    return body(kind.name, event.at, {**_facts(event, kind), **_line(line)})


def body(name: str, at: datetime, data: dict[str, Any]) -> str:
    """Return the body of an event as JSON text without white space between tokens."""
    timestamp = at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    document = {"type": name, "timestamp": timestamp, "data": data}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _facts(event: Event, kind: EventType) -> dict[str, Any]:
    facts = event.data
    subject, _, what = event.kind.partition(".")
    if subject == "order":
        return {
            "order": str(event.order_id),
            "action": facts["action"],
            "state": facts["state"] if event.kind == "order.overdue" else what,
            "failure": facts.get("failure"),
        }
    if subject == "line_test":
        return {
            "line_test": facts["line_test"],
            "order": str(event.order_id) if event.order_id else None,
            "state": what,
            "reason": facts["code"] or None,
            "message": facts["reason"],
            "frame": facts["frame"],
            "largest_passed": facts["largest_passed"],
        }
    if subject == "trouble":
        return {name: facts[name] for name in kind.members if name in facts}
    match what:
        case "described":
            return {"before": facts["before"], "after": facts["after"]}
        case "in_sync" | "drift":
            return {"in_sync": what == "in_sync"}
        case "not_carried" | "black_hole" | "black_hole_gone":
            return {}
        case "link_loss_forwarded" | "link_loss_over":
            return {"end": facts["end"]}
        case _ if what in OperStatus.values:
            return {"oper_status": what}
        case _:
            return {"lifecycle": what}


def _line(line: Vll) -> dict[str, Any]:
    customer: Any = line.customer
    return {"vll": str(line.pk), "description": line.description, "customer": customer.name}
