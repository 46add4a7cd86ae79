"""Problem documents for the exceptions that views raise."""

from math import ceil
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response

from portal.accounts.language import in_readers_language
from portal.api.problem_details import CONTENT_TYPE, problem, refusal, unavailable
from portal.api.rest.request_bodies import BodyTooLarge
from portal.core import clock
from portal.core.errors import DomainError, TooSoon


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Return a problem document in the reader's language. DRF calls this as its exception handler.

    Return None for unexpected exceptions; Django's handler for status 500 then responds.
    """
    with in_readers_language():
        response = _response_to(error)
        if response is not None:
            response.headers["Content-Language"] = get_language() or ""
        return response


def _response_to(error: Exception) -> HttpResponse | None:
    if isinstance(error, DomainError):
        if isinstance(error, TooSoon):
            return _response(refusal(error), _after((error.again_at - clock.now()).total_seconds()))
        return _response(refusal(error))
    if isinstance(error, OperationalError | InterfaceError):
        return unavailable()
    if isinstance(error, RequestDataTooBig):
        error = BodyTooLarge()
    if isinstance(error, Http404):
        error = exceptions.NotFound(_("There is no such object, or you may not see it."))
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if isinstance(error, exceptions.ValidationError):
        return _response(_of_validation_error(error))
    if isinstance(error, exceptions.APIException):
        # The exception has an English text. The message catalogue translates it, except texts with numbers.
        code = str(error.default_code).replace("_", "-")
        return _response(problem(code, _(str(error.detail))), _headers(error))
    return None


def _response(document: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(document, status=document["status"], content_type=CONTENT_TYPE, headers=headers)


def _of_validation_error(error: exceptions.ValidationError) -> dict[str, Any]:
    entries = list(_flatten(error.get_full_details(), ""))
    detail = ngettext(
        "%(count)s field cannot be accepted; nothing was done.",
        "%(count)s fields cannot be accepted; nothing was done.",
        len(entries),
    ) % {"count": len(entries)}
    return problem("invalid", detail, errors=entries)


def _flatten(details: Any, path: str) -> Any:
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        yield {"field": path, "code": details["code"], "detail": _(str(details["message"]))}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _flatten(inner, name if name == "" or not path else f"{path}.{name}")
    else:
        for inner in details:
            yield from _flatten(inner, "" if path == "non_field_errors" else path)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers |= _after(wait)
    return headers


def _after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(ceil(seconds))}
