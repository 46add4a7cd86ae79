"""Errors that no view answered, in the words of the door that was knocked at: JSON or a page."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from portal.api import problems

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400: a host that is not ours, or a request that Django distrusts."""
    return problems.bad_request(request) if _is_api(request) else defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404."""
    return problems.not_found(request) if _is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500; Django calls it while the error is still being handled. Without a database it is 503."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return problems.server_error(request) if _is_api(request) else defaults.server_error(request)
    if _is_api(request):
        return problems.unavailable(request)
    return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)
