"""Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a write that is sent again is done once.

The answer is stored in the transaction that made the effect: there is no moment at which one exists
without the other, whatever dies when.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.http import Http404, HttpResponse
from django.utils.translation import gettext_noop as _
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import User
from portal.api.models import KeptAnswer
from portal.api.v1.permission_classes import caller
from portal.core import clock
from portal.core.errors import DomainError

HEADER = "Idempotency-Key"
KEPT_FOR = timedelta(hours=24)
# These say nothing about the request: with the newest ETag, or once what is in the way has passed, it is
# another try.
_TO_TRY_AGAIN = {
    status.HTTP_409_CONFLICT,
    status.HTTP_412_PRECONDITION_FAILED,
    status.HTTP_428_PRECONDITION_REQUIRED,
    status.HTTP_429_TOO_MANY_REQUESTS,
}
# The headers that belong to the answer; all others belong to the exchange.
_KEPT_HEADERS = ("Content-Language", "Content-Type", "ETag", "Location", "Retry-After")
# The draft's quoted string (RFC 8941), or the bare text that most clients send.
_KEY = re.compile(r'"(?P<quoted>[\x21\x23-\x5b\x5d-\x7e]{1,255})"|(?P<bare>[\x21\x23-\x7e]{1,255})')

Handler = Callable[..., Response]


class MalformedKey(APIException):
    status_code = status.HTTP_400_BAD_REQUEST
    default_code = "malformed_idempotency_key"
    default_detail = _("An Idempotency-Key is 1 to 255 visible ASCII characters. Send a UUID, for example.")


class KeyMissing(APIException):
    """LONGLINE_REQUIRE_IDEMPOTENCY_KEY: a POST that is repeated without a key is done twice."""

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
    default_detail = _(
        "This Idempotency-Key came with another request before; nothing was done. Use a new key."
    )


def once_per_key(handler: Handler) -> Callable[..., HttpResponse]:
    """Make a view's write method obey Idempotency-Key.

    Without the header nothing changes, but where LONGLINE_REQUIRE_IDEMPOTENCY_KEY is set a POST with a token
    is refused. With it, whatever the method answered, refusals of what was asked
    included, is what every repetition within 24 hours gets; refusals by a state that passes (409), faults of
    ours (5xx), conditions that failed (412, 428) and what came too soon (429) leave nothing behind.
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
            if kept := _kept(user, key, now):
                return _replay(kept, fingerprint)
            answer = _rendered(view, _try(handler, view, request, *args, **kwargs))
            _keep(user, key, fingerprint, answer, now)
            return answer

    write.once_per_key = True  # type: ignore[attr-defined]
    return write


def answers_sweep(*, now: datetime) -> int:
    """Forget the answers whose time is over; how many."""
    return KeptAnswer.objects.filter(answered_at__lte=now - KEPT_FOR).delete()[0]


def _key_of(header: str) -> str:
    match = _KEY.fullmatch(header.strip())
    if match is None:
        raise MalformedKey
    return match["quoted"] or match["bare"]


def _fingerprint(request: Request) -> bytes:
    # The bytes, before any parser reads them: what was sent, not what we made of it.
    parts = (str(request.method), request.get_full_path(), str(request.content_type))
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + request._request.body).digest()


def _claim(user: User, key: str) -> None:
    """Be the only one at work on this key until the transaction ends. Raises KeyInFlight."""
    number = hashlib.sha256(f"{user.pk} {key}".encode()).digest()[:8]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(number, signed=True)])
        if not cursor.fetchone()[0]:
            raise KeyInFlight


def _kept(user: User, key: str, now: datetime) -> KeptAnswer | None:
    return KeptAnswer.objects.filter(user=user, key=key, answered_at__gt=now - KEPT_FOR).first()


def _replay(kept: KeptAnswer, fingerprint: bytes) -> HttpResponse:
    if bytes(kept.fingerprint) != fingerprint:
        raise KeyReused
    headers = {**kept.headers, "Idempotency-Replayed": "true"}
    return HttpResponse(bytes(kept.body), status=kept.status, headers=headers)


def _try(handler: Handler, view: APIView, *args: Any, **kwargs: Any) -> Response:
    """The handler's answer; a refusal undoes what it did, but not the claim of the key."""
    try:
        with transaction.atomic():
            return handler(view, *args, **kwargs)
    except (APIException, DomainError, Http404) as refusal:
        answer = view.handle_exception(refusal)
        if answer.status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR or answer.status_code in _TO_TRY_AGAIN:
            raise
        return answer


def _rendered(view: APIView, answer: Response) -> HttpResponse:
    """The answer as bytes: the first one is sent from what is stored, so that all are the same."""
    view.finalize_response(view.request, answer, *view.args, **view.kwargs)
    return HttpResponse(answer.render().content, status=answer.status_code, headers=answer.headers)


def _keep(user: User, key: str, fingerprint: bytes, answer: HttpResponse, now: datetime) -> None:
    found = {
        "fingerprint": fingerprint,
        "status": answer.status_code,
        "headers": {name: answer[name] for name in _KEPT_HEADERS if name in answer},
        "body": answer.content,
        "answered_at": now,
    }
    # A row that is past its time and not swept yet gives way.
    KeptAnswer.objects.bulk_create(
        [KeptAnswer(user=user, key=key, **found)],
        update_conflicts=True,
        unique_fields=["user", "key"],
        update_fields=list(found),
    )
