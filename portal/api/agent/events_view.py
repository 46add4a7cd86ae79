"""POST /api/agent/v1/events (docs/reference/agent-reports.md)."""

from typing import Any, Literal

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.inventory.models import Router
from portal.telemetry.router_events import EventReport, router_events_store


class _Document(EventReport, frozen=True, kw_only=True):
    schema: Literal[1]


@report_endpoint(_Document)
def events(router: Router, report: EventReport) -> dict[str, Any]:
    """Store the new events. Return the number of new events and the number of events that were already
    stored.
    """
    new = router_events_store(router=router, report=report, now=clock.now())
    return {"accepted": new, "duplicate": len(report.events) - new}
