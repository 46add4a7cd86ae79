"""Errors that no view answered: as a page, or as JSON below an API."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from portal.accounts.language_middleware import own_language_use
from portal.api import problem_details

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400: a host that is not ours, or a request that Django distrusts."""
    return (
        problem_details.bad_request(request) if _is_api(request) else defaults.bad_request(request, exception)
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404."""
    # Where the address leads to no view, nobody has asked yet who reads the answer.
    own_language_use(request)
    if _is_api(request):
        return problem_details.not_found(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500; Django calls it while the error is still being handled. Without a database it is 503."""
    if _is_api(request):
        return problem_details.server_error(request)
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return defaults.server_error(request)
    return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
