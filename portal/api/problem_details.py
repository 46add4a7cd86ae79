"""Problem documents (RFC 9457), the bodies of all 4xx and 5xx responses of the JSON APIs.

A problem document states the error, its cause, the next step and the id of the request.
"""

import sys
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from portal.core.errors import DomainError, error_types
from portal.core.http import absolute_url, current_request_id

CONTENT_TYPE = "application/problem+json"
# The portal's page that explains each type. The fragment of the address is the code.
ERRORS_PAGE = "api/docs/errors/"


def problem(code: str, detail: str, **members: Any) -> dict[str, Any]:
    """Return a problem document for a code of KINDS."""
    status, title = KINDS[code]
    return _document(code, status, gettext(title), detail, members)


def refusal(error: DomainError) -> dict[str, Any]:
    """Return the problem document of a DomainError, that is, of a rule that refused the request."""
    entries = [entry(each) for each in getattr(error, "refusals", (error,))]
    title = gettext("The request was refused")
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
    detail = gettext("The database does not answer; nothing was done. Try again in a few seconds.")
    return problem_response("unavailable", detail, headers={"Retry-After": "5"})


def bad_request(request: HttpRequest) -> JsonResponse:
    """Return the response to a request that Django refuses, for example for its forbidden Host header."""
    return problem_response("bad-request", gettext("The request's address or headers are not acceptable."))


def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """Return the response to an unknown path below a JSON API."""
    return problem_response("not-found", gettext("Nothing is served at %(path)s.") % {"path": request.path})


def server_error(request: HttpRequest) -> JsonResponse:
    """Return the response to the unexpected exception that is being handled.

    The status is 503 if the database cannot be reached, otherwise 500.
    """
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return unavailable()
    detail = gettext(
        "This is our mistake. Nothing was left half done; quote the request id when you report it."
    )
    return problem_response("internal", detail)


# The codes that do not belong to a DomainError, each with status and title.
KINDS = {
    "authentication-failed": (401, _("The API token is unknown, expired or revoked")),
    "bad-request": (400, _("The address or the headers of the request are not acceptable")),
    "bad-signature": (403, _("The signature of NetBox's message is missing or wrong")),
    "busy": (429, _("Many routers are reconnecting at the same time")),
    "export-running": (429, _("Another export is being sent")),
    "idempotency-key-in-flight": (409, _("A request with this Idempotency-Key is being worked on")),
    "idempotency-key-missing": (400, _("This portal requires an Idempotency-Key with every POST")),
    "idempotency-key-reused": (422, _("This Idempotency-Key was used for another request")),
    "identity-not-verified": (403, _("The session needs your password or a code")),
    "internal": (500, _("The portal made a mistake")),
    "invalid": (422, _("Members or parameters cannot be accepted")),
    "invalid-report": (422, _("Members of an agent's report cannot be accepted")),
    "malformed-idempotency-key": (400, _("The Idempotency-Key is not 1 to 255 visible ASCII characters")),
    "malformed-json": (422, _("An agent's report is not JSON")),
    "method-not-allowed": (405, _("This address does not support the method")),
    "not-acceptable": (406, _("No media type of the Accept header is available")),
    "not-authenticated": (401, _("No API token was sent")),
    "not-found": (404, _("There is no such address or object, or you may not see it")),
    "not-stored": (412, _("An agent's report refers to a list that must be sent in full")),
    "parse-error": (400, _("The body cannot be read")),
    "permission-denied": (403, _("You may not do this")),
    "precondition-failed": (412, _("The object has changed since you read it")),
    "precondition-required": (428, _("If-Match is missing")),
    "throttled": (429, _("Too many requests in this minute")),
    "too-large": (413, _("The body is too large")),
    "unavailable": (503, _("The database does not answer")),
    "unsupported-media-type": (415, _("The media type of the body is not supported")),
    "wrong-role": (403, _("The client certificate does not belong to a router of the portal")),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A code of problem documents.

    ``facts`` are the names of the code's facts. ``meaning`` can refer to facts by their names in braces.
    """

    code: str
    status: int
    meaning: str
    facts: list[str]


def entries() -> list[Entry]:
    """Return an entry for each code, sorted by code."""
    found = [Entry(code, status, f"{gettext(title)}.", []) for code, (status, title) in KINDS.items()]
    for kind in error_types():
        meaning = str(kind.text) or " ".join((kind.__doc__ or "").split())
        found.append(Entry(kind.code, kind.status, meaning, kind.fact_names()))
    return sorted(found, key=lambda entry: entry.code)


def markdown() -> str:
    """Return the text of ``docs/reference/errors.md``."""
    rows = (f"| `{e.code}` | {e.status} | {e.meaning} | {', '.join(e.facts)} |\n" for e in entries())
    return _HEAD + "".join(rows)


_HEAD = """# Errors

For people who write clients of the REST API: all error codes, generated by `make openapi`.

The `type` of a problem document (RFC 9457) is the address of its entry in the portal:
`/api/docs/errors/#<code>`. Clients compare only the part after the `#`. Names in braces are facts; the
document has their values in `errors`. Sizes are in bytes, rates in bit/s.

| code | status | meaning | facts |
| --- | --- | --- | --- |
"""
