"""The two conditions for speaking at the agent API: a router's certificate, and one JSON document."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.api.problem_details import problem_answer
from portal.core.strict_json import Invalid, Malformed, reader
from portal.inventory.certificate_identity import NotAnIdentity, identity_of
from portal.inventory.models import Router
from portal.inventory.observation_report import NotTold
from portal.inventory.queries import router_of
from portal.telemetry.observation_ingest import Busy

log = logging.getLogger(__name__)

MAX_BODY = 32 * 1024 * 1024
Report = Callable[[Router, Any], dict[str, Any]]


def report_endpoint(kind: type[Any]) -> Callable[[Report], Callable[[HttpRequest], HttpResponse]]:
    """A view for ``POST`` of such a document: ``report(router, document) -> the answer``.

    The router is the one whose certificate the TLS connection showed; nothing in the body can change it.
    """
    read = reader(kind, of_others=True)

    def wrap(report: Report) -> Callable[[HttpRequest], HttpResponse]:
        @wraps(report)
        def view(request: HttpRequest) -> HttpResponse:
            answer = _answer(request, read, report)
            # With its length an answer is one piece; without it gunicorn sends it in chunks.
            answer["Content-Length"] = str(len(answer.content))
            return answer

        return view

    return wrap


def _answer(request: HttpRequest, read: Callable[[bytes], Any], report: Report) -> HttpResponse:
    router = _router_at(request)
    if router is None:
        return problem_answer("wrong-role", "the client certificate is not accepted")
    if request.method != "POST":
        detail = f"{request.method} is not taken here"
        return problem_answer("method-not-allowed", detail, headers={"Allow": "POST"})
    body = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return problem_answer("too-large", f"at most {MAX_BODY} bytes")
    try:
        return JsonResponse(report(router, read(body)))
    except Malformed as error:
        # Not 400: the agent would send the same again for ever.
        return problem_answer("malformed-json", str(error))
    except Invalid as error:
        log.warning("%s sent a report that is refused: %s", router, error)
        return problem_answer("invalid-report", f"{error}; nothing was stored", errors=[error.fault])
    except NotTold as named:
        detail = f"the list {named} is not what is stored, or has to be looked into; nothing was stored"
        return problem_answer("not-stored", detail)
    except Busy:
        detail = "many routers come back at once; keep the report and send it again"
        return problem_answer("busy", detail)


def _router_at(request: HttpRequest) -> Router | None:
    # gunicorn hands the connection itself over; a header could be forged by whoever stands in between.
    connection: Any = request.META.get("gunicorn.socket")
    certificate = connection.getpeercert(binary_form=True) if hasattr(connection, "getpeercert") else None
    if certificate is None:
        return None
    try:
        return router_of(identity_of(certificate))
    except NotAnIdentity:
        return None
