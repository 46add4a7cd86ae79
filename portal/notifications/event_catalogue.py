"""The public types of events: the data of each type as JSON Schema, and the bodies of webhook requests.

The names of types follow Standard Webhooks 1.0: words of letters, digits and underscores, separated by full
stops. A later release may add members to the data, but removes none. Receivers must ignore unknown members.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.models import Vll
from portal.vll.states import Lifecycle, OperStatus, OrderAction, OrderState

Schema = dict[str, Any]

_AT = "2026-11-21T09:30:00.000000Z"
_ORDER_ID = "0d3b1c9e-58c4-4a6a-8f5d-2f4b8d6a9e77"
# An example of each member that has no constant value.
_EXAMPLES: dict[str, Any] = {
    "vll": "6f0f7c62-2f5e-4a57-9d0e-6c3a8ad54c11",
    "description": "ZRH-AMS",
    "customer": "Alpine Dairy",
    "order": _ORDER_ID,
    "action": OrderAction.ADD.value,
    "state": OrderState.IN_PROGRESS.value,
    "failure": None,
    "before": "ZRH",
    "after": "ZRH-AMS",
    "end": "z",
    "line_test": "a3d5f1c4-0f0b-4f0e-9a56-2f2d5d0c7b11",
    "reason": None,
    "frame": 1514,
    "largest_passed": None,
    "router": "rhino",
    "trouble_report": "5b0f6f0e-6b1c-4d53-9a3e-0a2b7c1d8e90",
    "note": "Nothing arrives in Amsterdam since noon",
    "verdict": "path-down",
    "sentence": "The network's path between the two ends is down.",
    "webhook": 7,
    "because": "failing",
}


@dataclass(frozen=True, slots=True)
class EventType:
    """A public type of events.

    ``announced``: the kind of the internal event; "" if there is none. ``members``: the schema of each member
    of ``data``. All members are always present. ``example``: an example of ``data``. ``noc_only``: whether
    only the NOC's own webhooks get these events.
    """

    name: str
    announced: str
    about: str | Promise
    members: dict[str, Schema]
    example: dict[str, Any]
    noc_only: bool = False

    @property
    def schema(self) -> Schema:
        """Return the JSON Schema (2020-12) of the whole body."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.name,
            "description": str(self.about),
            "type": "object",
            "required": ["type", "timestamp", "data"],
            "properties": {
                "type": {"const": self.name},
                "timestamp": {"type": "string", "format": "date-time"},
                "data": {"type": "object", "required": list(self.members), "properties": self.members},
            },
        }

    @property
    def body(self) -> dict[str, Any]:
        """Return an example of the whole body."""
        return {"type": self.name, "timestamp": _AT, "data": self.example}


def _id(description: str, kind: str | list[str] = "string") -> Schema:
    return {"type": kind, "format": "uuid", "description": description}


_LINE: dict[str, Schema] = {
    "vll": _id("GET /api/v1/vlls/<id>"),
    "description": {"type": "string", "description": "The customer's name for the line."},
    "customer": {"type": "string", "description": "The customer's name."},
}
_FAILURE: Schema = {
    "type": ["object", "null"],
    "description": "Why it failed or is failing: code, message and object; null if there is no failure.",
}
_FAILED = {"code": "vpp_refused", "message": "VPP refused to create the tunnel", "side": "a"}


def _type(
    name: str,
    about: str | Promise,
    members: dict[str, Schema],
    *,
    announced: str | None = None,
    noc_only: bool = False,
    **example: Any,
) -> EventType:
    """Return a type of events. ``announced`` is the name by default. ``example``: other values of members."""
    values = {
        member: example.get(member, schema.get("const", _EXAMPLES.get(member)))
        for member, schema in members.items()
    }
    return EventType(name, name if announced is None else announced, about, members, values, noc_only)


def _order(name: str, state: str, about: str | Promise, **example: Any) -> EventType:
    """Return a type of events about an order. ``state``: the order's state; "" if any state is possible."""
    members: dict[str, Schema] = {
        "order": _id("GET /api/v1/orders/<id>"),
        "action": {"enum": OrderAction.values},
        "state": {"const": state} if state else {"enum": OrderState.values},
        "failure": _FAILURE,
        **_LINE,
    }
    return _type(f"order.{name}", about, members, announced=f"order.{state or name}", **example)


def _line(
    name: str, about: str | Promise, state: Lifecycle | OperStatus | None = None, **fact: Any
) -> EventType:
    """Return a type of events about a line. ``fact``: the member with the new state, and its value."""
    if state is not None:
        fact = {"lifecycle" if isinstance(state, Lifecycle) else "oper_status": state.value}
    members: dict[str, Schema] = {**{member: {"const": value} for member, value in fact.items()}, **_LINE}
    return _type(f"vll.{name}", about, members, announced=f"vll.{name if state is None else state.value}")


def _link_loss(name: str, about: str | Promise) -> EventType:
    """Return a type of events about link loss forwarding at one end of a line."""
    end: Schema = {"enum": ["a", "z"], "description": "The end that has the link."}
    return _type(f"vll.{name}", about, {"end": end, **_LINE})


def _activation_test(state: str, about: str | Promise, **example: Any) -> EventType:
    """Return a type of events about an activation test of a line. The test is scheduled or has ended."""
    members: dict[str, Schema] = {
        "line_test": _id("GET /api/v1/vlls/<vll>/activation-tests/<id>"),
        "order": _id("GET /api/v1/orders/<id>; null if the test has not begun.", ["string", "null"]),
        "state": {"const": state},
        "reason": {"type": ["string", "null"], "description": "A code; null if the test passed."},
        "message": {"type": "string", "description": "The outcome as a sentence."},
        "frame": {"type": "integer", "description": "The largest promised frame, in bytes without FCS."},
        "largest_passed": {
            "type": ["integer", "null"],
            "description": "In bytes; null if no size passed.",
        },
        **_LINE,
    }
    return _type(f"line_test.{state}", about, members, **example)


def _router(name: str, about: str | Promise) -> EventType:
    members: dict[str, Schema] = {"router": {"type": "string", "description": "Its name."}}
    return _type(f"router.{name}", about, members, noc_only=True)


_TROUBLE = _id("GET /api/v1/vlls/<vll>/trouble-reports")
_WEBHOOK: Schema = {"type": "integer", "description": "GET /api/v1/webhooks/<id>"}
TYPES: tuple[EventType, ...] = (
    _order("accepted", OrderState.ACKNOWLEDGED.value, _("An order was accepted.")),
    _order("held", OrderState.PENDING_APPROVAL.value, _("An order is waiting for the NOC's approval.")),
    _order("started", OrderState.IN_PROGRESS.value, _("The routers are being configured.")),
    _order(
        "completed",
        OrderState.COMPLETED.value,
        _("An order was completed. A change to a line is an order with the action modify."),
    ),
    _order(
        "failed",
        OrderState.FAILED.value,
        _("An order failed. Its changes on the routers were undone."),
        failure=_FAILED,
    ),
    _order("rejected", OrderState.REJECTED.value, _("The NOC rejected an order.")),
    _order("cancelled", OrderState.CANCELLED.value, _("An order was cancelled.")),
    _order("overdue", "", _("An order is taking too long; the NOC is working on it.")),
    _line("active", _("A line is in service."), Lifecycle.ACTIVE),
    _line("suspended", _("A line is suspended."), Lifecycle.SUSPENDED),
    _line("pending_terminate", _("A line's removal is ordered."), Lifecycle.PENDING_TERMINATE),
    _line("terminated", _("A line is removed."), Lifecycle.TERMINATED),
    _line("cancelled", _("A line was abandoned before it came into service."), Lifecycle.CANCELLED),
    _type(
        "vll.described",
        _("A line has a new description."),
        {"before": {"type": "string"}, "after": {"type": "string"}, **_LINE},
    ),
    _line("up", _("A line is operationally up."), OperStatus.UP),
    _line("down", _("A line is operationally down."), OperStatus.DOWN),
    _line(
        "unknown",
        _("A router is not reporting, and nothing else shows whether the line is up."),
        OperStatus.UNKNOWN,
    ),
    _line("in_sync", _("The routers are again configured as they should be."), in_sync=True),
    _line("drift", _("A router is not configured as it should be."), in_sync=False),
    _line("not_carried", _("The network no longer carries a line's largest frames.")),
    _line("black_hole", _("Large frames of a line are lost between its routers; small ones are not.")),
    _line("black_hole_gone", _("Large frames of a line get through between its routers again.")),
    _link_loss(
        "link_loss_forwarded",
        _("The link at one end of a line is to be taken down, because the other end has lost its link."),
    ),
    _link_loss(
        "link_loss_over", _("A link that was taken down for link loss forwarding is to be set up again.")
    ),
    _activation_test(
        "scheduled",
        _("An activation test was scheduled. It will interrupt a line for a few seconds."),
        message="To be tested at 2026-11-24 03:00 UTC",
        order=None,
    ),
    _activation_test(
        "passed",
        _("A line passed its test: frames of every size arrived in both directions."),
        message="All test frames of up to 1,514 bytes arrived, both ways.",
        largest_passed=1514,
    ),
    _activation_test(
        "failed",
        _("Test frames were lost: the network carries smaller frames than promised, or none."),
        message="No test frame arrives at the other end: the underlay does not carry this tunnel.",
        reason="nothing-arrives",
    ),
    _activation_test(
        "not_tested",
        _("A line had no activation test. The event contains the reason."),
        message="Both ends are on one router, and there is no tunnel.",
        reason="no-tunnel",
    ),
    _type(
        "trouble.reported",
        _("Somebody reported trouble with a line to the NOC."),
        {
            "trouble_report": _TROUBLE,
            "note": {"type": "string", "description": "In the reporter's own words."},
            "verdict": {"type": "string", "description": "A code of GET /api/v1/vlls/<vll>/diagnosis"},
            "sentence": {"type": "string", "description": "The verdict at that time as a sentence."},
            **_LINE,
        },
    ),
    _type("trouble.closed", _("The NOC closed a trouble report."), {"trouble_report": _TROUBLE, **_LINE}),
    _router("silent", _("A router is not reporting; sent to the NOC's own webhooks.")),
    _router(
        "reporting", _("A silent router is reporting again. The event goes only to the NOC's own webhooks.")
    ),
    _type(
        "webhook.disabled",
        _("A webhook was disabled; sent to the other webhooks of the same customer."),
        {
            "webhook": _WEBHOOK,
            "because": {"enum": ["gone", "failing"]},
            "customer": {
                "type": ["string", "null"],
                "description": "The customer's name; null for a webhook of the NOC.",
            },
        },
    ),
    _type(
        "webhook.test",
        _(
            "Somebody requested a test message. It goes to the tested webhook, whichever events this "
            "webhook gets."
        ),
        {"webhook": _WEBHOOK},
        announced="",
    ),
)
BY_NAME = {each.name: each for each in TYPES}
BY_ANNOUNCED = {each.announced: each for each in TYPES if each.announced}
# The types that a webhook can select. Customers' webhooks can select only CUSTOMER_CHOICES.
CHOICES = [(each.name, each.about) for each in TYPES if each.announced]
CUSTOMER_CHOICES = [(name, about) for name, about in CHOICES if not BY_NAME[name].noc_only]


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
    customer_of_line: Any = line.customer
    facts = {"vll": str(line.pk), "description": line.description, "customer": customer_of_line.name}
    return body(kind.name, event.at, {**_facts(event, kind), **facts})


def body(name: str, at: datetime, data: dict[str, Any]) -> str:
    """Return the body of an event as JSON text without white space between tokens."""
    timestamp = at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    document = {"type": name, "timestamp": timestamp, "data": data}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _facts(event: Event, kind: EventType) -> dict[str, Any]:
    """Return the members of the event's type that do not describe its line."""
    order = str(event.order_id) if event.order_id else None
    facts: dict[str, Any] = {"failure": None, **event.data, "order": order}
    if event.kind.startswith("line_test."):
        facts |= {"reason": facts["code"] or None, "message": facts["reason"]}
    members = {name: schema for name, schema in kind.members.items() if name not in _LINE}
    facts |= {name: schema["const"] for name, schema in members.items() if "const" in schema}
    # Older releases stored fewer facts about trouble.
    is_trouble = event.kind.startswith("trouble.")
    return {name: facts[name] for name in members if name in facts or not is_trouble}
