"""Responses to errors outside a view's own handling: an HTML page, or JSON for API paths."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults
from django.views.csrf import csrf_failure

from portal.accounts.language import own_language_use
from portal.api import problem_details
from portal.web.page.middleware import is_partial, stale_form_refusal

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle status 400 (handler400): a Host header that is not allowed, or a suspicious request."""
    return (
        problem_details.bad_request(request) if _is_api(request) else defaults.bad_request(request, exception)
    )


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Handle a failed CSRF check (CSRF_FAILURE_VIEW): a missing token, or one of an earlier sign-in."""
    own_language_use(request)
    return stale_form_refusal(request) if is_partial(request) else csrf_failure(request, reason=reason)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle status 404 (handler404)."""
    # If no view was found, nothing has set the language of the reader yet.
    own_language_use(request)
    if _is_api(request):
        return problem_details.not_found(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Handle status 500 (handler500) while Django handles the exception. Respond 503 if the database is
    unavailable.
    """
    if _is_api(request):
        return problem_details.server_error(request)
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return defaults.server_error(request)
    return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
