"""Request bodies: JSON of limited size, fields that do not convert JSON types, and the changes in a PATCH.

DRF's own fields read ``"7"`` as 7, 7 as ``"7"`` and ``"yes"`` as true. A body that the portal cannot read,
store or send back gets a 4xx response, not a 5xx. A PATCH may send back the document that was read: members
that equal the object's values have no effect.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import QueryDict
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.fields import get_error_detail
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer

from portal.accounts.language import in_readers_language
from portal.core.plain_text import plain_line, plain_lines


class BodyTooLarge(APIException):
    """The body exceeds DATA_UPLOAD_MAX_MEMORY_SIZE.

    Django checks this limit only if it reads the body itself. The parsers read the stream instead.
    """

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"
    default_detail = f"The body may have at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."


class BoundedJSONParser(JSONParser):
    """Parse JSON as UTF-8, regardless of ``charset`` (RFC 8259, section 8.1).

    Refuse NaN, infinity and unpaired surrogates.
    """

    # Bytes.
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read(self.limit + 1)
        if len(body) > self.limit:
            raise BodyTooLarge
        try:
            value = json.loads(body.decode(), parse_constant=_no_constant)
            json.dumps(value, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError(gettext_noop("The JSON is nested too deeply.")) from error
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {type(error).__name__}.") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# The largest whole number that all JSON readers read as the same value (RFC 8259, section 6).
MAX_SAFE_INTEGER = 2**53 - 1


class StrictIntegerField(serializers.IntegerField):
    """A JSON number without fraction. The field refuses ``true``, ``"7"`` and ``7.0``."""

    default_error_messages = {"not_integer": _("Send a whole number, without quotes.")}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("not_integer")
        return super().to_internal_value(data)


class StrictDegreesField(serializers.FloatField):
    """A JSON number of degrees, rounded to six decimal places (a tenth of a metre)."""

    default_error_messages = {"not_a_number": _("Send a number, without quotes.")}

    def to_internal_value(self, data: Any) -> Decimal:  # type: ignore[override]
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("not_a_number")
        if isinstance(data, float) and not isfinite(data):
            self.fail("not_a_number")
        # Limit the number to one million, so that the Decimal stays short. Permitted degrees are smaller.
        return round(Decimal(repr(max(-1e6, min(1e6, data)))), 6)


class StrictLookupField(serializers.CharField):
    """A JSON string by which the portal finds a row. It is not stored, so it may contain any character."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictCharField(serializers.CharField):
    """A JSON string of plain text. Line breaks are allowed only with ``several_lines``."""

    def __init__(self, *, several_lines: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plain = plain_lines if several_lines else plain_line

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text: str = super().to_internal_value(data)
        try:
            self._plain(text)
        except DjangoValidationError as error:
            raise serializers.ValidationError(get_error_detail(error)) from error
        return text


class StrictUuidField(serializers.UUIDField):
    """A UUID as a JSON string. DRF's own field also accepts a number."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    """A JSON ``true`` or ``false``."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown members, because a client must notice a misspelled name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(
                    {str(name)[:100]: [_("This field is not known here.")] for name in unknown},
                    code="unknown_field",
                )
        return super().to_internal_value(data)


def validated(kind: type[serializers.BaseSerializer[Any]], data: Any, **more: Any) -> dict[str, Any]:
    """Return the body or query, validated by the serializer ``kind``. Raises ValidationError.

    An empty parameter of a query is validated as an empty value. By default, DRF treats it as missing.
    """
    serializer = kind(data=data.dict() if isinstance(data, QueryDict) else data, **more)
    check(serializer)
    return dict(serializer.validated_data)


def check(body: serializers.BaseSerializer[Any]) -> None:
    """Validate the body. Raises ValidationError with texts in the language of the reader."""
    with in_readers_language():
        body.is_valid(raise_exception=True)


# The prefix of members with ordered values.
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


@extend_schema_field({"type": ["object", "null"]})
class FactsField(serializers.JSONField):
    """Facts, for example ``{"code": "vpp_refused", "message": "...", "side": "a"}``, or null."""
