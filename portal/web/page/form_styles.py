"""Template filters for fields of forms, and a filter for the value of a key."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.forms import BoundField

from portal.web.fields.base import class_of

register = template.Library()


@register.filter
def styled(field: BoundField) -> BoundField:
    """Return a field of a package's form with the portal's CSS classes.

    The placeholder, which repeats the label, is removed.
    """
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field


@register.filter
def focused(field: BoundField) -> BoundField:
    """Return ``field`` with the attribute ``autofocus``, so that it has the focus when the page opens."""
    field.field.widget.attrs["autofocus"] = True
    return field


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key; None if the key does not exist. The key may be a variable:
    ``{{ names|of:row.pk }}``.
    """
    return values.get(key)
