"""Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a repeated write takes effect only once.

The response is stored in the same transaction as the effect of the request. After a crash, either both the
response and the effect exist, or neither.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpResponse
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import User
from portal.api.models import KeptAnswer
from portal.api.rest.access_control import caller
from portal.core import clock
from portal.core.db.statements import rows_of
from portal.core.errors import DomainError

HEADER = "Idempotency-Key"
KEPT_FOR = timedelta(hours=24)
# Responses with these statuses are not stored, because the same request can succeed later.
_NOT_STORED = {
    status.HTTP_409_CONFLICT,
    status.HTTP_412_PRECONDITION_FAILED,
    status.HTTP_428_PRECONDITION_REQUIRED,
    status.HTTP_429_TOO_MANY_REQUESTS,
}
# The headers that are stored with the response. All other headers concern only a single exchange.
_KEPT_HEADERS = ("Content-Language", "Content-Type", "ETag", "Location", "Retry-After")
# The key is the draft's quoted string (RFC 8941), or the text without quotes that most clients send.
_KEY = re.compile(r'"(?P<quoted>[\x21\x23-\x5b\x5d-\x7e]{1,255})"|(?P<bare>[\x21\x23-\x7e]{1,255})')

Handler = Callable[..., Response]


class MalformedKey(APIException):
    status_code = status.HTTP_400_BAD_REQUEST
    default_code = "malformed_idempotency_key"
    default_detail = _("An Idempotency-Key is 1 to 255 visible ASCII characters. Send a UUID, for example.")


class KeyMissing(APIException):
    """A POST has no Idempotency-Key, although LONGLINE_REQUIRE_IDEMPOTENCY_KEY is set."""

    status_code = status.HTTP_400_BAD_REQUEST
    default_code = "idempotency_key_missing"
    default_detail = _("Send an Idempotency-Key with every POST, such as a UUID. Nothing was done.")


class KeyInFlight(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_code = "idempotency_key_in_flight"
    default_detail = _("A request with this Idempotency-Key is being worked on. Send it again in a second.")
    wait = 1


class KeyReused(APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "idempotency_key_reused"
    default_detail = _("This Idempotency-Key was used for another request; nothing was done. Use a new key.")


def once_per_key(handler: Handler) -> Callable[..., HttpResponse]:
    """Make a view's write method obey Idempotency-Key.

    If a request is repeated within 24 hours, the client gets the stored first response, even if that response
    was a refusal. Some responses are not stored, so that a repeated request runs again. These are refusals
    because of a temporary state (409), failed conditions (412, 428), exceeded limits (429), and errors of the
    portal (5xx).

    A request without the header runs normally. Exception: if LONGLINE_REQUIRE_IDEMPOTENCY_KEY is set, a POST
    with an API token needs the header and is otherwise refused.
    """

    @wraps(handler)
    def write(view: APIView, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        header = request.headers.get(HEADER)
        if header is None:
            if settings.LONGLINE_REQUIRE_IDEMPOTENCY_KEY and request.method == "POST" and request.auth:
                raise KeyMissing
            return handler(view, request, *args, **kwargs)
        key, user, now = _key_of(header), caller(request), clock.now()
        fingerprint = _fingerprint(request)
        with transaction.atomic(durable=True):
            _claim(user, key)
            rows = KeptAnswer.objects.filter(user=user, key=key, answered_at__gt=now - KEPT_FOR)
            if kept := rows.first():
                return _replay(kept, fingerprint)
            response = _rendered(view, _try(handler, view, request, *args, **kwargs))
            _keep(user, key, fingerprint, response, now)
            return response

    write.once_per_key = True  # type: ignore[attr-defined]
    return write


def answers_sweep(*, now: datetime) -> int:
    """Delete stored responses that are older than 24 hours. Return the number of deleted responses."""
    return KeptAnswer.objects.filter(answered_at__lte=now - KEPT_FOR).delete()[0]


def _key_of(header: str) -> str:
    match = _KEY.fullmatch(header.strip())
    if match is None:
        raise MalformedKey
    return match["quoted"] or match["bare"]


def _fingerprint(request: Request) -> bytes:
    # Hash the bytes as the client sent them, before any parser reads them.
    parts = (str(request.method), request.get_full_path(), str(request.content_type))
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + request._request.body).digest()


def _claim(user: User, key: str) -> None:
    """Lock this key until the transaction ends. Raises KeyInFlight if another request has the lock."""
    number = hashlib.sha256(f"{user.pk} {key}".encode()).digest()[:8]
    [(is_locked,)] = rows_of("SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(number, signed=True)])
    if not is_locked:
        raise KeyInFlight


def _replay(kept: KeptAnswer, fingerprint: bytes) -> HttpResponse:
    if bytes(kept.fingerprint) != fingerprint:
        raise KeyReused
    headers = {**kept.headers, "Idempotency-Replayed": "true"}
    return HttpResponse(bytes(kept.body), status=kept.status, headers=headers)


def _try(handler: Handler, view: APIView, *args: Any, **kwargs: Any) -> Response:
    """Return the handler's response. A refusal undoes the handler's changes and keeps the lock of the key.

    Raises the exception again if its response must not be stored.
    """
    try:
        with transaction.atomic():
            return handler(view, *args, **kwargs)
    except (APIException, DomainError, Http404) as refusal:
        response = view.handle_exception(refusal)
        status_code = response.status_code
        if status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR or status_code in _NOT_STORED:
            raise
        return response


def _rendered(view: APIView, response: Response) -> HttpResponse:
    """Return the response as bytes. The client gets these bytes both the first time and on repetitions."""
    view.finalize_response(view.request, response, *view.args, **view.kwargs)
    return HttpResponse(response.render().content, status=response.status_code, headers=response.headers)


def _keep(user: User, key: str, fingerprint: bytes, response: HttpResponse, now: datetime) -> None:
    found = {
        "fingerprint": fingerprint,
        "status": response.status_code,
        "headers": {name: response[name] for name in _KEPT_HEADERS if name in response},
        "body": response.content,
        "answered_at": now,
    }
    # An expired row may exist that the sweep has not deleted yet. This statement replaces it.
    KeptAnswer.objects.bulk_create(
        [KeptAnswer(user=user, key=key, **found)],
        update_conflicts=True,
        unique_fields=["user", "key"],
        update_fields=list(found),
    )
