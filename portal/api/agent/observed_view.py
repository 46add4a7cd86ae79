"""POST /api/agent/v1/observed (docs/reference/agent-reports.md)."""

from typing import Any, Literal

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.core.strict_json import Etag
from portal.inventory.models import Router
from portal.inventory.queries import watch_routes
from portal.inventory.reported_observation import ObservedReport
from portal.telemetry.observation_ingest import observation_take
from portal.vll.router_operations.freeze import freeze_reported, freeze_wanted


class _Document(ObservedReport, frozen=True, kw_only=True):
    schema: Literal[1]
    watch_etag: Etag | None = None


@report_endpoint(_Document)
def observed(router: Router, report: _Document) -> dict[str, Any]:
    """Store the report. Return the routes that the agent watches, the router's maintenance and its freeze.

    Agent and portal send each other lists. Each side leaves out a list if an etag shows that the other side
    already has it.
    """
    now = clock.now()
    taken = observation_take(router=router, report=report, now=now)
    if taken and (router.frozen_since is not None or report.freeze is not None):
        freeze_reported(router=router, report=report.freeze, now=now)
    etag, addresses = watch_routes(router, known=report.watch_etag)
    etags = {"watch_routes": etag} | {name: report.digests[name] for name in ("routes", "ends", "circuits")}
    maintenance = router.maintenance_since is not None
    freeze = freeze_wanted(router, now=now)
    return {
        "watch_routes": addresses,
        "underlay_table": router.underlay_table,
        "etags": etags,
        "maintenance": maintenance,
        "freeze": freeze,
    }
