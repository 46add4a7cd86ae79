"""A template filter for trouble reports."""

from django import template

from portal.diagnosis.models import TroubleReport
from portal.diagnosis.verdict import stored_sentence

register = template.Library()


@register.filter
def verdict_then(report: TroubleReport) -> str:
    """Return the sentence of the diagnosis at the time of the trouble report."""
    return stored_sentence(report.finding["verdict"], report.finding.get("facts"))
