"""A badge as HTML. Python renders it without a template, because a long table has hundreds of badges."""

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString


def badge_markup(label: str | Promise, tone: str) -> SafeString:
    """Return a badge. ``tone``: success, info, warning, danger or muted; "" for a label without a badge."""
    if not tone:
        return conditional_escape(str(label))
    return format_html('<span class="ll-badge ll-{}">{}</span>', tone, label)
