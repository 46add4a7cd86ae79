"""POST /api/agent/v1/events (docs/agent-api.md)."""

from typing import Any

from portal.api.agent.client_certificate import report_endpoint
from portal.api.agent.strict_json import (
    array,
    document,
    foreign_text,
    integer,
    nullable,
    one_of,
    record,
    uuid,
)
from portal.core import clock
from portal.inventory.models import Router
from portal.telemetry.router_events import ReportedEvent, router_events_store

_MS = integer(0, 2**53)
KINDS = (
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
    "intent.applied",
)
_REPORT = record(
    {
        "schema": one_of(1),
        "boot_id": uuid,
        "sent_ms": _MS,
        "events": array(
            record(
                {
                    "seq": integer(1),
                    "at_ms": _MS,
                    "kind": one_of(*KINDS),
                    "interface": nullable(foreign_text(maximum=63)),
                    "vll": nullable(uuid),
                    "end": nullable(one_of("a", "z")),
                    "generation": nullable(integer(1)),
                    "detail": nullable(foreign_text(maximum=1000)),
                }
            ),
            maximum=1000,
            unique="seq",
        ),
    }
)


@report_endpoint(document(_REPORT))
def events(router: Router, body: dict[str, Any]) -> dict[str, Any]:
    """Store the events that are new."""
    events = [
        ReportedEvent(
            seq=each["seq"],
            at_ms=each["at_ms"],
            kind=each["kind"],
            interface=each["interface"],
            vll=each["vll"],
            side=each["end"],
            generation=each["generation"],
            detail=each["detail"],
        )
        for each in body["events"]
    ]
    new = router_events_store(router=router, boot_id=body["boot_id"], reported=events, now=clock.now())
    return {"accepted": new, "duplicate": len(events) - new}
