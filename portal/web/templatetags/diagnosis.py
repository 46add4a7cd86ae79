"""Trouble reports, and the findings when they were sent."""

from django import template

from portal.diagnosis.models import TroubleReport
from portal.diagnosis.verdict import stored_sentence

register = template.Library()


@register.filter
def verdict_then(report: TroubleReport) -> str:
    """Return the portal's verdict at the time of the report, in words."""
    return stored_sentence(report.finding["verdict"], report.finding.get("facts"))
