"""The scheme of a request: https if a trusted proxy that terminates TLS reports https."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.core.client_address import from_trusted_proxy


class ForwardedProtoMiddleware:
    """Set the scheme of the request, which Django uses for redirects, links and callback URLs.

    The WSGI server itself trusts no proxy (portal.processes.gunicorn_web), because it does not know
    ``LONGLINE_TRUSTED_PROXIES``.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.headers.get("X-Forwarded-Proto", "").lower() == "https" and from_trusted_proxy(request):
            request.META["wsgi.url_scheme"] = "https"
        return self._get_response(request)
