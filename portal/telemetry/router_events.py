"""Events that agents report about their routers. Each event is stored once, however often it is sent."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from msgspec import Meta, Struct, field, to_builtins

from portal.core.clock import to_ms, to_time
from portal.core.db.statements import execute, rows_of
from portal.core.strict_json import ForeignName, ForeignText, Natural53, Positive63, Uuid, require_unique
from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.models import VllEnd

# Frames of the line arrive again, after VPP had lost the line's VLAN and the agent rebuilt the sub-interface.
VLAN_RESTORED = "vll.vlan_restored"
# Events of lines, by the kind of the agent's event.
_KINDS_OF_LINES = {"end.vlan_rebuilt": "vll.vlan_rebuilt", "end.vlan_restored": VLAN_RESTORED}
_CLAIM = """
INSERT INTO telemetry_routerevent (router_id, boot_id, seq, stored_at)
SELECT %s, %s, reported.seq, %s FROM unnest(%s::bigint[]) AS reported(seq)
ON CONFLICT DO NOTHING
RETURNING seq
"""
Kind = Literal[
    "vpp.connected",
    "vpp.lost",
    "interface.up",
    "interface.down",
    "end.conflict",
    "end.conflict_cleared",
    "end.drift",
    "end.contested",
    "end.contested_cleared",
    "end.quarantined",
    "end.vlan_rebuilt",
    "end.vlan_restored",
    "end.vlan_not_restored",
    "intent.applied",
]
# The age of an event is the time since it was stored, because an agent's clock may have any value. Events
# that people cause have no boot id, so they are not deleted.
_FORGET = """
WITH old AS (
    DELETE FROM telemetry_routerevent WHERE stored_at < %s RETURNING router_id, boot_id, seq
)
DELETE FROM events_event AS event USING old
WHERE event.router_id = old.router_id
  AND event.data ->> 'boot_id' = old.boot_id::text AND event.data ->> 'seq' = old.seq::text
"""


class ReportedEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """An event of an agent (docs/reference/agent-reports.md). ``at_ms``: by the agent's clock."""

    seq: Positive63
    at_ms: Natural53
    kind: Kind
    interface: ForeignName | None
    vll: Uuid | None
    side: Literal["a", "z"] | None = field(name="end")
    generation: Positive63 | None
    detail: ForeignText | None


class EventReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Events of one run of the agent (``boot_id``)."""

    boot_id: Uuid
    sent_ms: Natural53
    events: Annotated[tuple[ReportedEvent, ...], Meta(max_length=1000)]

    def __post_init__(self) -> None:
        require_unique(self.events, "seq", at="/events")


@transaction.atomic
def router_events_store(*, router: Router, report: EventReport, now: datetime) -> int:
    """Store a router's events and return the number of new events.

    The time of an event is the agent's time, but not later than ``now``. ``at_ms`` keeps the agent's time.
    """
    numbers = sorted(each.seq for each in report.events)
    new = {seq for (seq,) in rows_of(_CLAIM, [router.pk, report.boot_id, now, numbers])}
    new_events = [each for each in report.events if each.seq in new]
    events = [_event(router, report.boot_id, each, now) for each in new_events]
    Event.objects.bulk_create(events + _of_lines(router, new_events, now))
    return len(events)


def router_events_forget(*, before: datetime) -> int:
    """Delete agents' events stored before that time. Return their number. Sent again, they count as new."""
    return execute(_FORGET, [before])


def _of_lines(router: Router, reported: list[ReportedEvent], now: datetime) -> list[Event]:
    """Return the events for the pages of lines. An event about an end on another router is ignored."""
    about_lines = [each for each in reported if each.kind in _KINDS_OF_LINES]
    if not about_lines:
        return []
    here = VllEnd.objects.filter(port__router=router, vll__in={each.vll for each in about_lines if each.vll})
    customers = {(str(end.vll_id), end.side): end.vll.customer_id for end in here.select_related("vll")}
    return [
        Event(
            at=_at(each, now),
            kind=_KINDS_OF_LINES[each.kind],
            vll_id=each.vll,
            customer_id=customers[each.vll, each.side],
            data={"end": each.side, "router": router.name},
        )
        for each in about_lines
        if each.vll and each.side and (each.vll, each.side) in customers
    ]


def _at(reported: ReportedEvent, now: datetime) -> datetime:
    """Return the event's time, at most ``now``. A wrong clock's time may be outside datetime's range."""
    return now if reported.at_ms >= to_ms(now) else to_time(reported.at_ms)


def _event(router: Router, boot_id: str, reported: ReportedEvent, now: datetime) -> Event:
    details: dict[str, Any] = {"boot_id": boot_id, **to_builtins(reported, enc_hook=str)}
    kind = details.pop("kind")
    return Event(
        at=_at(reported, now),
        kind=f"router.{kind}",
        router_id=router.pk,
        data={name: value for name, value in details.items() if value is not None},
    )
