"""The two conditions for speaking at the agent API: a router's certificate, and one JSON document."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from cryptography.x509 import load_der_x509_certificate
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.api.problem_details import CONTENT_TYPE, problem_answer, refusal
from portal.core.errors import DomainError
from portal.core.strict_json import Invalid, Malformed, reader
from portal.inventory.certificate_identity import NotAnIdentity, identity_of
from portal.inventory.models import Router
from portal.inventory.queries import router_of
from portal.inventory.reported_observation import ListNotReported
from portal.telemetry.observation_ingest import Busy

log = logging.getLogger(__name__)

MAX_BODY = 32 * 1024 * 1024
# Of the router, the document and, where that is asked for, the certificate that was shown.
Report = Callable[..., dict[str, Any]]


def report_endpoint(
    kind: type[Any], *, with_certificate: bool = False
) -> Callable[[Report], Callable[[HttpRequest], HttpResponse]]:
    """A view for ``POST`` of such a document: ``report(router, document) -> the answer``.

    The router is the one whose certificate the TLS connection showed; nothing in the body can change it.
    ``with_certificate``: that one is a third argument.
    """
    read = reader(kind, of_others=True)

    def wrap(report: Report) -> Callable[[HttpRequest], HttpResponse]:
        @wraps(report)
        def view(request: HttpRequest) -> HttpResponse:
            answer = _answer(request, read, report, with_certificate)
            # With its length an answer is one piece; without it gunicorn sends it in chunks.
            answer["Content-Length"] = str(len(answer.content))
            return answer

        return view

    return wrap


def _answer(
    request: HttpRequest, read: Callable[[bytes], Any], report: Report, with_certificate: bool
) -> HttpResponse:
    shown = _certificate_at(request)
    router = None if shown is None else _router_of(shown)
    if shown is None or router is None:
        return problem_answer("wrong-role", "the client certificate is not accepted")
    if request.method != "POST":
        detail = f"{request.method} is not taken here"
        return problem_answer("method-not-allowed", detail, headers={"Allow": "POST"})
    body = request.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return problem_answer("too-large", f"at most {MAX_BODY} bytes")
    try:
        more = (load_der_x509_certificate(shown),) if with_certificate else ()
        return JsonResponse(report(router, read(body), *more))
    except Malformed as error:
        # Not 400: the agent would send the same again for ever.
        return problem_answer("malformed-json", str(error))
    except Invalid as error:
        log.warning("%s sent a report that is refused: %s", router, error)
        return problem_answer("invalid-report", f"{error}; nothing was stored", errors=[error.fault])
    except ListNotReported as named:
        detail = f"the list {named} is not what is stored, or has to be looked into; nothing was stored"
        return problem_answer("not-stored", detail)
    except DomainError as error:
        document = refusal(error)
        return JsonResponse(document, status=document["status"], content_type=CONTENT_TYPE)
    except Busy:
        detail = "many routers come back at once; keep the report and send it again"
        return problem_answer("busy", detail)


def _certificate_at(request: HttpRequest) -> bytes | None:
    """The one that the TLS connection showed (DER); None without one."""
    # gunicorn hands the connection itself over; a header could be forged by whoever stands in between.
    connection: Any = request.META.get("gunicorn.socket")
    return connection.getpeercert(binary_form=True) if hasattr(connection, "getpeercert") else None


def _router_of(certificate: bytes) -> Router | None:
    try:
        return router_of(identity_of(certificate))
    except NotAnIdentity:
        return None
