"""Filters that templates lack: the portal's look for forms of others, and a value by its key."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.forms import BoundField

from portal.web.forms.base import class_of

register = template.Library()


@register.filter
def styled(field: BoundField) -> BoundField:
    """``field`` with the portal's classes, and without a placeholder that only repeats its label."""
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field


@register.filter
def focused(field: BoundField) -> BoundField:
    """``field`` as the one that somebody who came to write begins in."""
    field.field.widget.attrs["autofocus"] = True
    return field


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """``{{ names|of:row.pk }}``: the value of a key that stands in a variable; None where there is none."""
    return values.get(key)
