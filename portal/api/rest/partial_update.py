"""PATCH for clients that send back the document that they read. Members that are equal to the object's values
have no effect.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer

from portal.accounts.language import in_readers_language

REQUESTED = "requested_"


def changed_members(body: Any, document: Any, serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    """Return the members of ``body`` that differ from ``document``. If the result is empty, the view changes
    nothing.

    ``document`` is what GET returns now. ``serializer`` lists the members that a client may change. A
    read-only member may be sent unchanged. Raises DRF's ValidationError if a read-only member differs from
    the document, or if the body is not a JSON object.

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
                refused[name] = [_("This member is read-only. Send it as you read it, or leave it out.")]
        elif isinstance(field, serializers.Serializer) and isinstance(value, dict):
            inner, inner_refused = _compared(value, current.get(name) or {}, field.fields)
            if inner:
                changed[name] = inner
            if inner_refused:
                refused[name] = inner_refused
        elif (requested := f"{REQUESTED}{name}") in current and requested in body:
            if not (_is_same(value, current[name]) or _is_same(value, body[requested])):
                text = _(
                    "Change %(requested)s instead: this member shows the value that the portal allocated."
                )
                refused[name] = [text % {"requested": requested}]
        elif not (name in current and _is_same(value, current.get(requested, current[name]))):
            changed[name] = value
    return changed, refused


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same as JSON. Python's ``==`` would treat true and 1, or 7.0 and 7,
    as equal.
    """
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
