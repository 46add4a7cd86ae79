"""Template filters for texts with code in back-quotes, such as docstrings and error texts."""

import re

from django import template
from django.utils.html import escape, linebreaks
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_CODE = re.compile(r"(`+)([^`]+)\1")


@register.filter
def code_marked(text: str) -> SafeString:
    """Return ``text`` as HTML. Parts in back-quotes become ``code`` elements."""
    return mark_safe(_CODE.sub(r"<code>\2</code>", escape(text)))  # noqa: S308 - escaped before


@register.filter
def paragraphs(text: str) -> SafeString:
    """Return ``text`` as HTML paragraphs. Parts in back-quotes become ``code`` elements."""
    return mark_safe(linebreaks(code_marked(text)))  # noqa: S308 - as above
