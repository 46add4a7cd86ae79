"""The routers' identity in the agent API, and the renewal of their certificates.

The views share the code that finds a router by its client certificate and reads one JSON document.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

from cryptography.x509 import Certificate, load_der_x509_certificate
from django.http import HttpRequest, HttpResponse, JsonResponse
from msgspec import Meta, Struct

from portal.api.problem_details import CONTENT_TYPE, problem_response, refusal
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.strict_json import Invalid, Malformed, reader
from portal.inventory.certificates import certificate_renew
from portal.inventory.models import Router
from portal.inventory.pki import NotAnIdentity, identity_of
from portal.inventory.queries import router_of
from portal.inventory.reported_observation import ListNotReported
from portal.telemetry.observation_ingest import Busy

log = logging.getLogger(__name__)

# Bytes.
MAX_BODY = 32 * 1024 * 1024
# A function with the arguments router and document. With ``with_certificate``, the client's certificate is a
# third argument.
Report = Callable[..., dict[str, Any]]


def report_endpoint(
    kind: type[Any], *, with_certificate: bool = False
) -> Callable[[Report], Callable[[HttpRequest], HttpResponse]]:
    """Return a decorator that makes a view for ``POST`` out of ``report(router, document) -> response``.

    ``kind`` is the type of the document. The view finds the router by the client certificate of the TLS
    connection; the body cannot select another router. With ``with_certificate``, the certificate is the third
    argument of ``report``.
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


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    csr_pem: Annotated[str, Meta(max_length=10_000)]
    ca_sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


@report_endpoint(_Document, with_certificate=True)
def certificate(router: Router, request: _Document, shown: Certificate) -> dict[str, Any]:
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
