"""Found lines, in words."""

from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.inventory.found_line_sentences import odd_sentence
from portal.inventory.found_lines import FoundLine, Odd, Standing
from portal.web.badge_markup import badge_markup

register = template.Library()

_STANDINGS: dict[Standing, tuple[Any, str]] = {
    Standing.ONE_SIDED: (_("One-sided"), "danger"),
    Standing.ONE_DIRECTIONAL: (_("One direction only"), "danger"),
    Standing.MISMATCHED: (_("Mismatched"), "warning"),
    Standing.COMPLETE: (_("Complete"), "success"),
}


@register.simple_tag
def standing(line: FoundLine) -> SafeString:
    """How it stands, as a badge."""
    label, tone = _STANDINGS[line.standing]
    return badge_markup(label, tone)


@register.filter
def sentence(odd: Odd) -> str:
    return odd_sentence(odd)
