"""Requests of agents: reports, and questions about a line (docs/reference/agent-reports.md)."""

from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from msgspec import Meta, Struct

from portal.api.agent.client_certificate import report_endpoint
from portal.core import clock
from portal.core.quantities import uuid_of
from portal.core.strict_json import Etag
from portal.diagnosis.diagnosis import diagnosis_of
from portal.inventory.models import Router
from portal.inventory.queries import watch_routes
from portal.inventory.reported_observation import ObservedReport
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.observation_ingest import observation_take
from portal.telemetry.reported_counters import CounterReport
from portal.telemetry.router_events import EventReport, router_events_store
from portal.vll.errors import LineAmbiguous, LineNotHere
from portal.vll.models import Vll
from portal.vll.router_operations.freeze import freeze_reported, freeze_wanted
from portal.vll.states import TERMINAL_LIFECYCLES


class _CountersDocument(CounterReport, frozen=True, kw_only=True):
    schema: Literal[1]


@report_endpoint(_CountersDocument)
def counters(router: Router, report: CounterReport) -> dict[str, Any]:
    """Store the samples. Return the numbers of samples that were accepted, already stored, or refused.

    A sample has counts of several ends. For these numbers, each end of a sample counts as one.
    """
    stored = counters_store(router=router, report=report, now=clock.now())
    return {"accepted": stored.accepted, "duplicate": stored.duplicate, "refused": stored.refused}


class _EventsDocument(EventReport, frozen=True, kw_only=True):
    schema: Literal[1]


@report_endpoint(_EventsDocument)
def events(router: Router, report: EventReport) -> dict[str, Any]:
    """Store the new events. Return the number of new events and the number of events that were already
    stored.
    """
    new = router_events_store(router=router, report=report, now=clock.now())
    return {"accepted": new, "duplicate": len(report.events) - new}


class _ObservedDocument(ObservedReport, frozen=True, kw_only=True):
    schema: Literal[1]
    watch_etag: Etag | None = None


@report_endpoint(_ObservedDocument)
def observed(router: Router, report: _ObservedDocument) -> dict[str, Any]:
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


# The refusal of an ambiguous name lists at most this number of ids.
_MAX_IDS = 10


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    line: Annotated[str, Meta(min_length=1, max_length=100)]


@report_endpoint(_Document)
def line(router: Router, request: _Document) -> dict[str, Any]:
    """Return the portal's facts about a line that ends on the router, and the line's diagnosis.

    The request names the line by id or name. Raises LineNotHere, LineAmbiguous.
    """
    found = list(_lines(router, request.line)[: _MAX_IDS + 1])
    if not found:
        raise LineNotHere(line=request.line, router=router.name)
    if len(found) > 1:
        raise LineAmbiguous(line=request.line, ids=", ".join(str(each.pk) for each in found[:_MAX_IDS]))
    vll = found[0]
    diagnosis = diagnosis_of(vll, now=clock.now()).as_document(for_noc=True)
    return {
        "vll": str(vll.pk),
        "description": vll.description,
        "customer": vll.customer.name,
        "lifecycle": vll.lifecycle,
        "cir_bps": vll.cir_bps,
        "verdict": diagnosis["verdict"]["sentence"],
        "checks": [
            {"code": each["code"], "state": each["state"], "evidence": each["evidence"]}
            for each in diagnosis["checks"]
        ],
    }


def _lines(router: Router, text: str) -> QuerySet[Vll]:
    here = Vll.objects.filter(ends__port__router=router).exclude(lifecycle__in=TERMINAL_LIFECYCLES).distinct()
    rows = here.select_related("customer").order_by("created_at", "pk")
    if line_id := uuid_of(text):
        return rows.filter(pk=line_id)
    return rows.filter(description__iexact=text.replace("\0", ""))
