"""Middleware of all pages: partial requests, compression, and a limit on the size of uploads."""

from enum import StrEnum
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from portal.core.quantities import whole_number
from portal.uploads.csv_reader import MAX_BYTES

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


class UploadLimitMiddleware(MiddlewareMixin):
    """Respond to a request that is too large with a page with status 413.

    Requests to the APIs are not limited here, because their views have their own limits.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if whole_number(length, most=_LARGEST) is not None or request.path.startswith("/api/"):
            return None
        return render(request, "413.html", {"max_mib": MAX_BYTES // 2**20}, status=_TOO_LARGE)


# The request header with the id of the account for which the page was rendered.
READER = "Longline-Reader"
# The response header with the reason of a refusal, one of the values of Refusal.
REFUSED = "Longline-Refused"
# The response header with the token that the page's forms must send from now on.
FORM_TOKEN = "Longline-Form-Token"  # noqa: S105 - the name of a header
_STATUS = {"signed-out": 401, "other-account": 403, "stale-form": 403}


class Refusal(StrEnum):
    """The reason why a partial request was refused."""

    SIGNED_OUT = "signed-out"
    OTHER_ACCOUNT = "other-account"
    STALE_FORM = "stale-form"


class PartialRequestMiddleware(MiddlewareMixin):
    """Refuse a partial request if the session has ended, or now belongs to another account than the page.

    JavaScript of an open page sends partial requests (htmx, polls, live parts and fetch). A browser follows a
    redirect before JavaScript sees the response, so the sign-in page would become a part of the open page.
    The response to a partial request is therefore never a redirect. It is either a refusal with the reason,
    or it contains the address of a page that the browser opens as a whole page. static/js/connection.js
    handles both.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if not (is_partial(request) and 300 <= response.status_code < 400 and "Location" in response):
            return response
        if not request.user.is_authenticated:
            return refusal(Refusal.SIGNED_OUT)
        return HttpResponseClientRedirect(response["Location"])

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        return refusal(Refusal.OTHER_ACCOUNT) if opened_by_another_account(request) else None


def is_partial(request: HttpRequest) -> bool:
    """Return whether JavaScript of an open page sent the request."""
    return bool(getattr(request, "htmx", False))


def opened_by_another_account(request: HttpRequest) -> bool:
    """Return whether the page was rendered for another account than the account of the session."""
    reader = request.headers.get(READER, "")
    return bool(reader) and request.user.is_authenticated and reader != str(request.user.pk)


def refusal(reason: Refusal) -> HttpResponse:
    """Return the response to a refused request, with the reason in the header REFUSED."""
    response = HttpResponse(f"{reason}\n", content_type="text/plain; charset=utf-8", status=_STATUS[reason])
    response[REFUSED] = reason.value
    return response


def stale_form_refusal(request: HttpRequest) -> HttpResponse:
    """Return the response to a request with an outdated form token.

    It contains the new token, unless the session has ended or belongs to another account.
    """
    if not request.user.is_authenticated:
        return refusal(Refusal.SIGNED_OUT)
    if opened_by_another_account(request):
        return refusal(Refusal.OTHER_ACCOUNT)
    response = refusal(Refusal.STALE_FORM)
    response[FORM_TOKEN] = get_token(request)
    return response


def page_of(request: HttpRequest) -> str:
    """Return the address of the page that the user has open; "" if it is unknown.

    For a POST, this is the page with the form, because the address of the POST may accept only POST.
    """
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    referrer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(
        referrer, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return ""
    parts = urlsplit(referrer)
    return parts._replace(scheme="", netloc="", fragment="").geturl() if parts.netloc else ""
