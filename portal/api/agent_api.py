"""The agent API (docs/reference/agent-reports.md): reports, questions about a line, new certificates."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

from cryptography.x509 import Certificate, load_der_x509_certificate
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from msgspec import Meta, Struct

from portal.api.problem_details import CONTENT_TYPE, problem_response, refusal
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.quantities import uuid_of
from portal.core.strict_json import Etag, Invalid, Malformed, reader
from portal.diagnosis.diagnosis import diagnosis_of
from portal.inventory.certificates import certificate_renew
from portal.inventory.models import Router
from portal.inventory.pki import NotAnIdentity, identity_of
from portal.inventory.queries import router_of, watch_routes
from portal.inventory.reported_observation import ListNotReported, ObservedReport
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.observation_ingest import Busy, observation_take
from portal.telemetry.reported_counters import CounterReport
from portal.telemetry.router_events import EventReport, router_events_store
from portal.vll.errors import LineAmbiguous, LineNotHere
from portal.vll.models import Vll
from portal.vll.router_operations.freeze import freeze_reported, freeze_wanted
from portal.vll.states import TERMINAL_LIFECYCLES

log = logging.getLogger(__name__)

# Bytes.
MAX_BODY = 32 * 1024 * 1024
# A function of router and document. ``with_certificate`` adds the client's certificate.
Report = Callable[..., dict[str, Any]]


def report_endpoint(
    kind: type[Any], *, with_certificate: bool = False
) -> Callable[[Report], Callable[[HttpRequest], HttpResponse]]:
    """Return a decorator that makes a view for ``POST`` out of ``report(router, document) -> response``.

    ``kind`` is the type of the document. The client certificate of the TLS connection selects the router: the
    body cannot select another one. With ``with_certificate``, the certificate is the third argument of
    ``report``.
    """
    read = reader(kind, of_others=True)

    def wrap(report: Report) -> Callable[[HttpRequest], HttpResponse]:
        @wraps(report)
        def view(request: HttpRequest) -> HttpResponse:
            response = _response(request, read, report, with_certificate)
            # Without this header, gunicorn sends the response in chunks.
            response["Content-Length"] = str(len(response.content))
            return response

        return view

    return wrap


def _response(
    request: HttpRequest, read: Callable[[bytes], Any], report: Report, with_certificate: bool
) -> HttpResponse:
    shown = _certificate_of(request)
    router = None if shown is None else _router_of(shown)
    if shown is None or router is None:
        return problem_response("wrong-role", "the client certificate is not accepted")
    if request.method != "POST":
        detail = f"the method {request.method} is not supported here"
        return problem_response("method-not-allowed", detail, headers={"Allow": "POST"})
    body = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return problem_response("too-large", f"the body may have at most {MAX_BODY} bytes")
    try:
        more = (load_der_x509_certificate(shown),) if with_certificate else ()
        return JsonResponse(report(router, read(body), *more))
    except Malformed as error:
        # Do not use status 400: the agent would repeat the same document indefinitely.
        return problem_response("malformed-json", str(error))
    except Invalid as error:
        log.warning("The report of %s is refused: %s", router, error)
        return problem_response("invalid-report", f"{error}; nothing was stored", errors=[error.fault])
    except ListNotReported as error:
        detail = f"the portal needs the items of the list {error}; send it whole; nothing was stored"
        return problem_response("not-stored", detail)
    except DomainError as error:
        document = refusal(error)
        return JsonResponse(document, status=document["status"], content_type=CONTENT_TYPE)
    except Busy:
        detail = "many routers are reconnecting at the same time; keep the report and send it again"
        return problem_response("busy", detail)


def _certificate_of(request: HttpRequest) -> bytes | None:
    """Return the client certificate of the TLS connection (DER), or None if the client sent none."""
    # Read the certificate from the connection, which gunicorn passes, and not from a header: a proxy or
    # client could forge a header.
    connection: Any = request.META.get("gunicorn.socket")
    return connection.getpeercert(binary_form=True) if hasattr(connection, "getpeercert") else None


def _router_of(certificate: bytes) -> Router | None:
    try:
        return router_of(identity_of(certificate))
    except NotAnIdentity:
        return None


class _RenewalRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    csr_pem: Annotated[str, Meta(max_length=10_000)]
    ca_sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


@report_endpoint(_RenewalRequest, with_certificate=True)
def certificate(router: Router, request: _RenewalRequest, shown: Certificate) -> dict[str, Any]:
    """Return the certificate and the authorities that the agent must use from now on.

    If a value is null, the agent keeps the certificate or the authorities that it has.
    """
    renewed = certificate_renew(
        router=router,
        shown=shown,
        csr_pem=request.csr_pem,
        ca_sha256=request.ca_sha256,
        now=clock.now(),
    )
    return {"certificate_pem": renewed.certificate_pem, "ca_pem": renewed.ca_pem}


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
    """Store the new events. Return the numbers of new events and of events that were already stored."""
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


class _LineRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    line: Annotated[str, Meta(min_length=1, max_length=100)]


@report_endpoint(_LineRequest)
def line(router: Router, request: _LineRequest) -> dict[str, Any]:
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
