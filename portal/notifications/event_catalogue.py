"""The public types of events, and the data of each type as JSON Schema.

The names of types follow Standard Webhooks 1.0: words of letters, digits and underscores, separated by full
stops. A later release may add members to the data, but removes none. Receivers must ignore unknown members.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.vll.states import Lifecycle, OperStatus, OrderAction, OrderState

Schema = dict[str, Any]

_ORDER_ID, _VLL_ID = "0d3b1c9e-58c4-4a6a-8f5d-2f4b8d6a9e77", "6f0f7c62-2f5e-4a57-9d0e-6c3a8ad54c11"
_AT = "2026-11-21T09:30:00.000000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
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


_LINE: dict[str, Schema] = {
    "vll": {"type": "string", "format": "uuid", "description": "GET /api/v1/vlls/<id>"},
    "description": {"type": "string", "description": "The customer's name for the line."},
    "customer": {"type": "string", "description": "The customer's name."},
}
_LINE_EXAMPLE = {"vll": _VLL_ID, "description": "ZRH-AMS", "customer": "Alpine Dairy"}
_FAILURE: Schema = {
    "type": ["object", "null"],
    "description": "Why it failed or is failing: code, message and object; null if there is no failure.",
}
_FAILED = {"code": "vpp_refused", "message": "VPP refused to create the tunnel", "side": "a"}


def _order(name: str, state: str, about: str | Promise, *, announced: str = "", **example: Any) -> EventType:
    """Return a type of events about an order. ``state``: the order's state; "" if any state is possible."""
    states: Schema = {"const": state} if state else {"enum": OrderState.values}
    return EventType(
        name=f"order.{name}",
        announced=announced or f"order.{state}",
        about=about,
        members={
            "order": {"type": "string", "format": "uuid", "description": "GET /api/v1/orders/<id>"},
            "action": {"enum": OrderAction.values},
            "state": states,
            "failure": _FAILURE,
            **_LINE,
        },
        example={
            "order": _ORDER_ID,
            "action": OrderAction.ADD.value,
            "state": state or OrderState.IN_PROGRESS.value,
            "failure": None,
            **example,
            **_LINE_EXAMPLE,
        },
    )


def _line(name: str, announced: str, about: str | Promise, **fact: Any) -> EventType:
    """Return a type of events about a line. ``fact``: the member with the new state, and its value."""
    return EventType(
        name=f"vll.{name}",
        announced=f"vll.{announced}",
        about=about,
        members={**{member: {"const": value} for member, value in fact.items()}, **_LINE},
        example={**fact, **_LINE_EXAMPLE},
    )


def _link_loss(name: str, about: str | Promise) -> EventType:
    """Return a type of events about link loss forwarding, which shuts or restores the link of a line's
    end.
    """
    return EventType(
        name=f"vll.{name}",
        announced=f"vll.{name}",
        about=about,
        members={"end": {"enum": ["a", "z"], "description": "The end that has the link."}, **_LINE},
        example={"end": "z", **_LINE_EXAMPLE},
    )


def _activation_test(state: str, about: str | Promise, **example: Any) -> EventType:
    """Return a type of events about an activation test of a line. The test is scheduled or has ended."""
    return EventType(
        name=f"line_test.{state}",
        announced=f"line_test.{state}",
        about=about,
        members={
            "line_test": {
                "type": "string",
                "format": "uuid",
                "description": "GET /api/v1/vlls/<vll>/activation-tests/<id>",
            },
            "order": {
                "type": ["string", "null"],
                "format": "uuid",
                "description": "GET /api/v1/orders/<id>; null if the test has not begun.",
            },
            "state": {"const": state},
            "reason": {"type": ["string", "null"], "description": "A code; null if the test passed."},
            "message": {"type": "string", "description": "The outcome as a sentence."},
            "frame": {"type": "integer", "description": "The largest promised frame, in bytes without FCS."},
            "largest_passed": {
                "type": ["integer", "null"],
                "description": "In bytes; null if no size passed.",
            },
            **_LINE,
        },
        example={
            "line_test": "a3d5f1c4-0f0b-4f0e-9a56-2f2d5d0c7b11",
            "order": _ORDER_ID,
            "state": state,
            "reason": None,
            "frame": 1514,
            "largest_passed": None,
            **example,
            **_LINE_EXAMPLE,
        },
    )


def _router(name: str, about: str | Promise) -> EventType:
    """Return a type of events about a router. Only the NOC's own webhooks get these events."""
    return EventType(
        name=f"router.{name}",
        announced=f"router.{name}",
        about=about,
        members={"router": {"type": "string", "description": "Its name."}},
        example={"router": "rhino"},
        noc_only=True,
    )


_TROUBLE: Schema = {
    "type": "string",
    "format": "uuid",
    "description": "GET /api/v1/vlls/<vll>/trouble-reports",
}
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
    _order(
        "overdue", "", _("An order is taking too long; the NOC is working on it."), announced="order.overdue"
    ),
    _line("active", "active", _("A line is in service."), lifecycle=Lifecycle.ACTIVE.value),
    _line("suspended", "suspended", _("A line is suspended."), lifecycle=Lifecycle.SUSPENDED.value),
    _line(
        "pending_terminate",
        "pendingTerminate",
        _("A line's removal is ordered."),
        lifecycle=Lifecycle.PENDING_TERMINATE.value,
    ),
    _line("terminated", "terminated", _("A line is removed."), lifecycle=Lifecycle.TERMINATED.value),
    _line(
        "cancelled",
        "cancelled",
        _("A line was abandoned before it came into service."),
        lifecycle=Lifecycle.CANCELLED.value,
    ),
    EventType(
        name="vll.described",
        announced="vll.described",
        about=_("A line has a new description."),
        members={"before": {"type": "string"}, "after": {"type": "string"}, **_LINE},
        example={"before": "ZRH", "after": "ZRH-AMS", **_LINE_EXAMPLE},
    ),
    _line("up", "op-up", _("A line is operationally up."), oper_status=OperStatus.UP.value),
    _line("down", "op-down", _("A line is operationally down."), oper_status=OperStatus.DOWN.value),
    _line(
        "unknown",
        "op-unknown",
        _("A router is not reporting, and nothing else shows whether the line is up."),
        oper_status=OperStatus.UNKNOWN.value,
    ),
    _line("in_sync", "in_sync", _("The routers are again configured as they should be."), in_sync=True),
    _line("drift", "drift", _("A router is not configured as it should be."), in_sync=False),
    _line("not_carried", "not_carried", _("The network no longer carries a line's largest frames.")),
    _line(
        "black_hole",
        "black_hole",
        _("Large frames of a line are lost between its routers; small ones are not."),
    ),
    _line(
        "black_hole_gone",
        "black_hole_gone",
        _("Large frames of a line get through between its routers again."),
    ),
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
    EventType(
        name="trouble.reported",
        announced="trouble.reported",
        about=_("Somebody reported trouble with a line to the NOC."),
        members={
            "trouble_report": _TROUBLE,
            "note": {"type": "string", "description": "In the reporter's own words."},
            "verdict": {"type": "string", "description": "A code of GET /api/v1/vlls/<vll>/diagnosis"},
            "sentence": {"type": "string", "description": "The verdict at that time as a sentence."},
            **_LINE,
        },
        example={
            "trouble_report": "5b0f6f0e-6b1c-4d53-9a3e-0a2b7c1d8e90",
            "note": "Nothing arrives in Amsterdam since noon",
            "verdict": "path-down",
            "sentence": "The network's path between the two ends is down.",
            **_LINE_EXAMPLE,
        },
    ),
    EventType(
        name="trouble.closed",
        announced="trouble.closed",
        about=_("The NOC closed a trouble report."),
        members={"trouble_report": _TROUBLE, **_LINE},
        example={"trouble_report": "5b0f6f0e-6b1c-4d53-9a3e-0a2b7c1d8e90", **_LINE_EXAMPLE},
    ),
    _router("silent", _("A router is not reporting; sent to the NOC's own webhooks.")),
    _router(
        "reporting", _("A silent router is reporting again. The event goes only to the NOC's own webhooks.")
    ),
    EventType(
        name="webhook.disabled",
        announced="webhook.disabled",
        about=_("A webhook was disabled; sent to the other webhooks of the same customer."),
        members={
            "webhook": {"type": "integer", "description": "GET /api/v1/webhooks/<id>"},
            "because": {"enum": ["gone", "failing"]},
            "customer": {
                "type": ["string", "null"],
                "description": "The customer's name; null for a webhook of the NOC.",
            },
        },
        example={"webhook": 7, "because": "failing", "customer": "Alpine Dairy"},
    ),
    EventType(
        name="webhook.test",
        announced="",
        about=_(
            "Somebody requested a test message. It goes to the tested webhook, whichever events this "
            "webhook gets."
        ),
        members={"webhook": {"type": "integer", "description": "GET /api/v1/webhooks/<id>"}},
        example={"webhook": 7},
    ),
)
BY_NAME = {each.name: each for each in TYPES}
BY_ANNOUNCED = {each.announced: each for each in TYPES if each.announced}
# The types that a webhook can select. Customers' webhooks can select only CUSTOMER_CHOICES.
CHOICES = [(each.name, each.about) for each in TYPES if each.announced]
CUSTOMER_CHOICES = [(name, about) for name, about in CHOICES if not BY_NAME[name].noc_only]
