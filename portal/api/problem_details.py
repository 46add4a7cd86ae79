"""Problem documents (RFC 9457), the bodies of all 4xx and 5xx responses of the JSON APIs.

A problem document states the error, its cause, the next step and the id of the request.
"""

import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _

from portal.api.error_catalogue import KINDS
from portal.core.errors import DomainError
from portal.core.http.absolute_urls import absolute_url
from portal.core.http.request_id import current_request_id

CONTENT_TYPE = "application/problem+json"
# The portal's page that explains each type. The fragment of the address is the code.
ERRORS_PAGE = "api/docs/errors/"


def problem(code: str, detail: str, **members: Any) -> dict[str, Any]:
    """Return a problem document for a code of KINDS."""
    status, title = KINDS[code]
    return _document(code, status, _(title), detail, members)


def refusal(error: DomainError) -> dict[str, Any]:
    """Return the problem document of a DomainError, that is, of a rule that refused the request."""
    entries = [entry(each) for each in getattr(error, "refusals", (error,))]
    title = _("The request was refused")
    return _document(error.code, error.status, title, error.sentence, {"errors": entries})


def entry(error: DomainError) -> dict[str, Any]:
    """Return the item of the member ``errors`` for a DomainError."""
    return {"field": error.field, "code": error.code, "detail": error.sentence, "facts": error.facts}


def _document(code: str, status: int, title: str, detail: str, members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": absolute_url(f"/{ERRORS_PAGE}#{code}"),
        "title": title,
        "status": status,
        "detail": detail,
        "request_id": current_request_id.get(),
        **members,
    }


def problem_response(
    code: str, detail: str, *, headers: dict[str, str] | None = None, **members: Any
) -> JsonResponse:
    """Return a response with the problem document for a code of KINDS."""
    document = problem(code, detail, **members)
    return JsonResponse(document, status=document["status"], content_type=CONTENT_TYPE, headers=headers)


def unavailable() -> JsonResponse:
    """Return the response to a request while the database cannot be reached."""
    detail = _("The database does not answer; nothing was done. Try again in a few seconds.")
    return problem_response("unavailable", detail, headers={"Retry-After": "5"})


def bad_request(request: HttpRequest) -> JsonResponse:
    """Return the response to a request that Django refuses, for example because its Host header is not
    allowed.
    """
    return problem_response("bad-request", _("The request's address or headers are not acceptable."))


def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Return the response to an unknown path below a JSON API."""
    return problem_response("not-found", _("Nothing is served at %(path)s.") % {"path": request.path})


def server_error(request: HttpRequest) -> JsonResponse:
    """Return the response to the unexpected exception that is being handled.

    The status is 503 if the database cannot be reached, otherwise 500.
    """
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return unavailable()
    detail = _("This is our mistake. Nothing was left half done; quote the request id when you report it.")
    return problem_response("internal", detail)
