"""Template tags and filters for found lines."""

from django import template
from django.utils.safestring import SafeString

from portal.inventory.found_line_sentences import odd_sentence
from portal.inventory.found_lines import FoundLine, Odd, Standing
from portal.web.badge_markup import badge_markup
from portal.web.found_line_filters import STANDINGS

register = template.Library()

_TONES = {
    Standing.ONE_SIDED: "danger",
    Standing.ONE_DIRECTIONAL: "danger",
    Standing.MISMATCHED: "warning",
    Standing.COMPLETE: "success",
}


@register.simple_tag
def standing(line: FoundLine) -> SafeString:
    """Return the badge of a found line's standing, such as "Complete"."""
    return badge_markup(STANDINGS[line.standing], _TONES[line.standing])


@register.filter
def sentence(odd: Odd) -> str:
    return odd_sentence(odd)
