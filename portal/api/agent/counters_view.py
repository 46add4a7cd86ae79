"""POST /api/agent/v1/counters (docs/reference/agent-reports.md)."""

from typing import Any, Literal

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.inventory.models import Router
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.reported_counters import CounterReport


class _Document(CounterReport, frozen=True, kw_only=True):
    schema: Literal[1]


@report_endpoint(_Document)
def counters(router: Router, report: CounterReport) -> dict[str, Any]:
    """Store the samples. Return the numbers of samples that were accepted, already stored, or refused.

    A sample has counts of several ends. For these numbers, each end of a sample counts as one.
    """
    stored = counters_store(router=router, report=report, now=clock.now())
    return {"accepted": stored.accepted, "duplicate": stored.duplicate, "refused": stored.refused}
