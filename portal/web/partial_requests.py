"""Requests that scripts of an open page send: htmx, polls, live parts and fetch.

A browser follows a redirect before a script sees the response. A sign-in page would therefore become a part
of the open page. Such a request never receives another page: it receives a refusal that names the reason, or
the address that the browser then opens as a whole page. static/js/connection.js acts on both.
"""

from collections.abc import Callable
from enum import StrEnum
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

# The account that the page was rendered for; its scripts send it with each request.
READER = "Longline-Reader"
# Why the request was refused: one of the values of Refusal.
REFUSED = "Longline-Refused"
# The token that the page's forms have to send from now on.
FORM_TOKEN = "Longline-Form-Token"  # noqa: S105 - the name of a header
_STATUS = {"signed-out": 401, "other-account": 403, "stale-form": 403}


class Refusal(StrEnum):
    """Why a request of an open page was refused."""

    SIGNED_OUT = "signed-out"
    OTHER_ACCOUNT = "other-account"
    STALE_FORM = "stale-form"


class PartialRequestMiddleware:
    """Refuse a partial request of a page whose session has ended or belongs to another account now."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not (is_partial(request) and 300 <= response.status_code < 400 and "Location" in response):
            return response
        if not request.user.is_authenticated:
            return refusal(Refusal.SIGNED_OUT)
        return HttpResponseClientRedirect(response["Location"])

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        return refusal(Refusal.OTHER_ACCOUNT) if opened_by_another_account(request) else None


def is_partial(request: HttpRequest) -> bool:
    """Return whether a script of an open page sent the request."""
    return bool(getattr(request, "htmx", False))


def opened_by_another_account(request: HttpRequest) -> bool:
    """Return whether the page was rendered for another account than the session belongs to now."""
    reader = request.headers.get(READER, "")
    return bool(reader) and request.user.is_authenticated and reader != str(request.user.pk)


def refusal(reason: Refusal) -> HttpResponse:
    """Return the response that names the reason in its header and has no content for the page."""
    response = HttpResponse(f"{reason}\n", content_type="text/plain; charset=utf-8", status=_STATUS[reason])
    response[REFUSED] = reason.value
    return response


def stale_form_refusal(request: HttpRequest) -> HttpResponse:
    """Return the refusal of a request whose form token is outdated, with the token to send instead."""
    if not request.user.is_authenticated:
        return refusal(Refusal.SIGNED_OUT)
    if opened_by_another_account(request):
        return refusal(Refusal.OTHER_ACCOUNT)
    response = refusal(Refusal.STALE_FORM)
    response[FORM_TOKEN] = get_token(request)
    return response


def page_of(request: HttpRequest) -> str:
    """Return the address of the page that the reader has open, "" where it is unknown.

    A form may be sent to an address that only accepts POST, so the page is then the one that had the form.
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
