"""Conditional requests (RFC 9110, section 13): strong ETags, and the statuses 304, 412 and 428."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags, quote_etag
from django.utils.translation import gettext_noop as _
from rest_framework import generics, status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

Write = Callable[..., Response]


class PreconditionFailed(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "precondition_failed"
    default_detail = _("It has changed since you read it; nothing was done. Read it again, then decide.")


class PreconditionRequired(APIException):
    """The write needs If-Match (RFC 6585, section 3)."""

    status_code = status.HTTP_428_PRECONDITION_REQUIRED
    default_code = "precondition_required"
    default_detail = _("State the version that you are changing: send the ETag that you read as If-Match.")


def etag_of(document: Any) -> str:
    """Return the strong validator of a JSON document. Only documents with equal bytes have the same one."""
    return quote_etag(hashlib.sha256(JSONRenderer().render(document)).hexdigest()[:32])


def if_match(*, required: bool) -> Callable[[Write], Write]:
    """Return a decorator that runs a write only if the caller has read the present version of the object.

    The wrapper finds the object with the view's ``get_queryset`` (404 outside the caller's scope). It locks
    the object until the write has committed. If several callers have read the same version and then write,
    the first write succeeds and all other writes get 412. A request without If-Match gets 428 if ``required``
    is true; otherwise the write runs. ``If-Match: *`` matches any version.

    The write method receives the object instead of the URL's arguments. If the view has a method
    ``lock_before``, the wrapper calls it before it locks the object, so that the method can lock other rows.
    """

    def conditional(write: Write) -> Write:
        @wraps(write)
        def checked(view: generics.GenericAPIView[Any], request: Request, **kwargs: Any) -> Response:
            header = request.headers.get("If-Match")
            with transaction.atomic():
                if lock_before := getattr(view, "lock_before", None):
                    lock_before(**kwargs)
                rows = view.get_queryset().select_for_update(of=("self",), no_key=True)
                found = get_object_or_404(rows, **kwargs)
                if header is None and required:
                    raise PreconditionRequired
                if header is not None and not _matches(header, view, found):
                    raise PreconditionFailed
                return write(view, request, found)

        checked.if_match_required = required  # type: ignore[attr-defined]
        return checked

    return conditional


def _matches(header: str, view: generics.GenericAPIView[Any], found: Any) -> bool:
    # Strong comparison: a weak tag (W/"...") never matches.
    accepted = parse_etags(header)
    return "*" in accepted or etag_of(view.get_serializer(found).data) in accepted


NO_STORE = {"Cache-Control": "no-store"}
