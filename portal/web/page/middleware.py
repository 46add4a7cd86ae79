"""Middleware for all pages: compression, and a limit on the size of uploads."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render

from portal.core.whole_number import whole_number
from portal.uploads.table import MAX_BYTES

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


# The largest request: the largest file, plus space for the other fields of a form.
_LARGEST = MAX_BYTES + 64 * 1024
_TOO_LARGE = 413


class UploadLimitMiddleware:
    """Respond to a request that is too large with a page with status 413.

    Requests to the APIs are not limited here, because their views have their own limits.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if whole_number(length, most=_LARGEST) is None and not request.path.startswith("/api/"):
            return render(request, "413.html", {"max_mib": MAX_BYTES // 2**20}, status=_TOO_LARGE)
        return self.get_response(request)
