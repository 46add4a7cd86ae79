"""Template filters for lines to adopt."""

from django import template

from portal.vll.adoption_differences import AdoptionDifference
from portal.vll.adoption_sentences import adoption_sentence

register = template.Library()


@register.filter
def difference_sentence(difference: AdoptionDifference) -> str:
    return adoption_sentence(difference)
