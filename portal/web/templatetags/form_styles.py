"""Filters that Django's templates lack: the portal's look for forms of packages, and the value of a key."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.forms import BoundField

from portal.web.forms.base import class_of

register = template.Library()


@register.filter
def styled(field: BoundField) -> BoundField:
    """Return ``field`` with the portal's classes, without a placeholder that repeats its label."""
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field


@register.filter
def focused(field: BoundField) -> BoundField:
    """Return ``field`` with autofocus: it has the focus when the page opens."""
    field.field.widget.attrs["autofocus"] = True
    return field


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key in a variable, None without one: ``{{ names|of:row.pk }}``."""
    return values.get(key)
