"""Texts in which code stands in back-quotes, as docstrings and error texts have it."""

import re

from django import template
from django.utils.html import escape, linebreaks
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_CODE = re.compile(r"(`+)([^`]+)\1")


@register.filter
def code_marked(text: str) -> SafeString:
    """``text`` escaped, with what stands in back-quotes as code."""
    return mark_safe(_CODE.sub(r"<code>\2</code>", escape(text)))  # noqa: S308 - escaped before


@register.filter
def paragraphs(text: str) -> SafeString:
    """The same, in paragraphs."""
    return mark_safe(linebreaks(code_marked(text)))  # noqa: S308 - as above
