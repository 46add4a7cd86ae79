"""The scheme by which the portal was called: https where a trusted proxy, which ends TLS, says so."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.core.client_address import from_trusted_proxy


class ForwardedProtoMiddleware:
    """Redirects, links and the addresses that others are told to come back to follow from it.

    The WSGI server is told to believe nobody (portal.processes.gunicorn_web): it does not know
    ``LONGLINE_TRUSTED_PROXIES``.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.headers.get("X-Forwarded-Proto", "").lower() == "https" and from_trusted_proxy(request):
            request.META["wsgi.url_scheme"] = "https"
        return self._get_response(request)
