"""Every 4xx and 5xx of the JSON doors as RFC 9457: what, why, what to do next, and the request's id."""

from math import ceil
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from portal.api.parsers import BodyTooLarge
from portal.core import clock
from portal.core.errors import Conflict, DomainError, TooSoon
from portal.core.request_id import current_request_id
from portal.vll.errors import NotAllowedToOrder, NotForYouToForce
from portal.vll.words import code, facts, sentence

CONTENT_TYPE = "application/problem+json"
_TRY_AGAIN = {"Retry-After": "5"}


def problem(status_code: int, kind: str, title: str, detail: str, **members: Any) -> dict[str, Any]:
    """The members of a problem document."""
    return {
        "type": f"urn:longline:error:{kind}",
        "title": title,
        "status": status_code,
        "detail": detail,
        "request_id": current_request_id.get(),
        **members,
    }


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook. Errors that nobody foresaw are left to Django's 500 handler."""
    if isinstance(error, DomainError):
        return _answer(_of_domain_error(error), _headers_of_refusal(error))
    if isinstance(error, OperationalError | InterfaceError):
        return _answer(_unavailable(), _TRY_AGAIN)
    if isinstance(error, RequestDataTooBig):
        error = BodyTooLarge()
    if isinstance(error, Http404):
        error = exceptions.NotFound("There is no such object, or you may not see it.")
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, exceptions.ValidationError):
        return _answer(_of_validation_error(error))
    if isinstance(error, exceptions.APIException):
        return _answer(_of_api_exception(error), _headers(error))
    return None


def unavailable(request: HttpRequest) -> JsonResponse:
    """The answer while the database is away, where no view could give it."""
    return JsonResponse(_unavailable(), status=503, content_type=CONTENT_TYPE, headers=_TRY_AGAIN)


def bad_request(request: HttpRequest) -> JsonResponse:
    """The answer to a request that Django distrusts, such as one for another host."""
    detail = "The request's address or headers are not acceptable."
    return JsonResponse(
        problem(400, "bad-request", "Bad request", detail), status=400, content_type=CONTENT_TYPE
    )


def server_error(request: HttpRequest) -> JsonResponse:
    """The answer to an error that nobody foresaw, for the JSON doors."""
    detail = "This is our mistake. Nothing was half done; name the request id when you report it."
    return JsonResponse(
        problem(500, "internal", "Internal error", detail), status=500, content_type=CONTENT_TYPE
    )


def not_found(request: HttpRequest) -> JsonResponse:
    """The answer to an unknown path under a JSON door."""
    detail = f"Nothing is served at {request.path}."
    return JsonResponse(problem(404, "not-found", "Not found", detail), status=404, content_type=CONTENT_TYPE)


def _unavailable() -> dict[str, Any]:
    detail = "The database does not answer; nothing was done. Try again in a few seconds."
    return problem(503, "unavailable", "Service unavailable", detail)


def _answer(document: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(document, status=document["status"], content_type=CONTENT_TYPE, headers=headers)


def _of_domain_error(error: DomainError) -> dict[str, Any]:
    entry = {"field": error.field, "code": code(error), "detail": sentence(error), "facts": facts(error)}
    return problem(_status_of(error), code(error), "The request was refused", sentence(error), errors=[entry])


def _status_of(error: DomainError) -> int:
    match error:
        case NotAllowedToOrder() | NotForYouToForce():
            return 403
        case Conflict():
            return 409
        case TooSoon():
            return 429
        case _:
            return 422


def _headers_of_refusal(error: DomainError) -> dict[str, str]:
    if not isinstance(error, TooSoon):
        return {}
    return _after((error.again_at - clock.now()).total_seconds())


def _of_validation_error(error: exceptions.ValidationError) -> dict[str, Any]:
    entries = list(_flatten(error.get_full_details(), ""))
    detail = f"{len(entries)} field{'s' if len(entries) != 1 else ''} cannot be accepted; nothing was done."
    return problem(422, "invalid", "The request is not valid", detail, errors=entries)


def _flatten(details: Any, path: str) -> Any:
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        yield {"field": path, "code": details["code"], "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _flatten(inner, name if name == "" or not path else f"{path}.{name}")
    else:
        for inner in details:
            yield from _flatten(inner, "" if path == "non_field_errors" else path)


def _of_api_exception(error: exceptions.APIException) -> dict[str, Any]:
    kind = str(error.default_code).replace("_", "-")
    title = kind.replace("-", " ").capitalize()
    return problem(error.status_code, kind, title, str(error.detail))


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers |= _after(wait)
    return headers


def _after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(ceil(seconds))}
