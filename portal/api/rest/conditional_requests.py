"""Conditional requests (RFC 9110, section 13): strong ETags, and the statuses 304, 412 and 428.

A PATCH may send back the document that was read: members that equal the object's values have no effect.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags, quote_etag
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework import generics, serializers, status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.language import in_readers_language

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
REQUESTED = "requested_"


def changed_members(body: Any, document: Any, serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    """Return the members of ``body`` that differ from ``document``.

    If the result is empty, the view changes nothing. ``document`` is what GET returns now. ``serializer``
    lists the members that a client may change. A read-only member may be sent unchanged. Raises DRF's
    ValidationError if a read-only member differs from the document, or if the body is not a JSON object.

    Some documents have a member ``requested_x`` (the ordered value) next to ``x`` (the allocated value). If
    ``body`` has ``requested_x``, the client orders the value of ``requested_x``. Then ``x`` must equal either
    the allocated value or ``requested_x``.
    """
    with in_readers_language():
        if not isinstance(body, dict):
            # A serializer accepts only a mapping. This call therefore raises ValidationError with DRF's text.
            return dict(serializer.run_validation(body))
        current = json.loads(JSONRenderer().render(document))
        changed, refused = _compared(body, current, serializer.fields)
    if refused:
        raise serializers.ValidationError(refused, code="read_only")
    return changed


def _compared(
    body: dict[str, Any], current: dict[str, Any], fields: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    changed: dict[str, Any] = {}
    refused: dict[str, Any] = {}
    for name, value in body.items():
        field = fields.get(name)
        if field is None:
            if name not in current:
                changed[name] = value  # the serializer refuses this unknown member
            elif not _is_same(value, current[name]):
                text = gettext("This member is read-only. Send it as you read it, or leave it out.")
                refused[name] = [text]
        elif isinstance(field, serializers.Serializer) and isinstance(value, dict):
            inner, inner_refused = _compared(value, current.get(name) or {}, field.fields)
            if inner:
                changed[name] = inner
            if inner_refused:
                refused[name] = inner_refused
        elif (requested := f"{REQUESTED}{name}") in current and requested in body:
            if not (_is_same(value, current[name]) or _is_same(value, body[requested])):
                text = gettext(
                    "Change %(requested)s instead: this member shows the value that the portal allocated."
                )
                refused[name] = [text % {"requested": requested}]
        elif not (name in current and _is_same(value, current.get(requested, current[name]))):
            changed[name] = value
    return changed, refused


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON. In Python, ``True == 1`` and ``7.0 == 7``."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
