"""Responses to errors that no view handled: a page, or JSON below an API path."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults
from django.views.csrf import csrf_failure

from portal.accounts.language_middleware import own_language_use
from portal.api import problem_details
from portal.web.partial_requests import is_partial, stale_form_refusal

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle 400 (handler400): a foreign host, or a request that Django distrusts."""
    return (
        problem_details.bad_request(request) if _is_api(request) else defaults.bad_request(request, exception)
    )


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Handle a failed CSRF check (CSRF_FAILURE_VIEW): the form's token is from an earlier sign-in, or
    missing.
    """
    own_language_use(request)
    return stale_form_refusal(request) if is_partial(request) else csrf_failure(request, reason=reason)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle 404 (handler404)."""
    # An address without a view has not yet set the reader's language.
    own_language_use(request)
    if _is_api(request):
        return problem_details.not_found(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Handle 500 (handler500). Django calls it while it handles the error. Without a database the status is
    503.
    """
    if _is_api(request):
        return problem_details.server_error(request)
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return defaults.server_error(request)
    return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
