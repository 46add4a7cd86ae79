"""The portal's look for forms that others made."""

from django import template
from django.forms import BoundField

from portal.web.forms.look import class_of

register = template.Library()


@register.filter
def dressed(field: BoundField) -> BoundField:
    """``field`` with the portal's classes, and without a placeholder that only repeats its label."""
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field
