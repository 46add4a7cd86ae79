"""Trouble reports, and what was found when they were sent."""

from django import template

from portal.diagnosis.models import TroubleReport
from portal.diagnosis.verdict import stored_sentence

register = template.Library()


@register.filter
def verdict_then(report: TroubleReport) -> str:
    """The portal's verdict when trouble was reported, for a reader."""
    return stored_sentence(report.finding["verdict"], report.finding.get("facts"))
