"""Template filters and tags for alarms."""

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.alarms import sentences
from portal.alarms.kinds import Severity
from portal.alarms.models import Alarm
from portal.core import clock
from portal.core.units import lasting_text
from portal.web import alarm_links
from portal.web.badge_markup import badge_markup

register = template.Library()

_TONES: dict[int, str] = {
    Severity.CRITICAL: "critical",
    Severity.MAJOR: "danger",
    Severity.MINOR: "warning",
    Severity.WARNING: "muted",
}


@register.filter
def headline(alarm: Alarm) -> SafeString:
    """Return a headline such as ``rhino is silent``.

    The name is in a ``bdi`` element, so that its writing direction does not affect the sentence.
    """
    name = format_html("<bdi>{}</bdi>", alarm.name)
    return format_html(sentences.headline(alarm.kind), name=name, kind=alarm.kind)


@register.filter
def note(alarm: Alarm) -> str:
    """Return further details of an alarm; "" if there are no further details."""
    return sentences.note(alarm.kind, alarm.facts)


@register.filter
def address(alarm: Alarm) -> str:
    """Return the address of the page on which the alarm can be handled; "" if there is no such page."""
    return alarm_links.address_of(alarm)


@register.simple_tag
def severity_badge(severity: int) -> SafeString:
    """Return the badge of a severity. A severity that this release does not know is shown as a number."""
    if severity not in _TONES:
        return badge_markup(str(severity), "muted")
    return badge_markup(Severity(severity).label, _TONES[severity])


@register.filter
def severity_name(severity: int) -> str:
    """Return the name of a severity in CSS classes, such as ``critical``."""
    return Severity(severity).name.lower() if severity in _TONES else "unknown"


@register.filter
def age(since: datetime) -> str:
    """Return the time since ``since`` in minutes, hours or days, such as ``2 h 10 min``."""
    minutes = max(0, int((clock.now() - since).total_seconds()) // 60)
    return lasting_text(minutes * 60) if minutes else _("under 1 min")


@register.filter
def lasted(alarm: Alarm) -> str:
    """Return how long an alarm was active; for an alarm that is still active, until now."""
    until = alarm.cleared_at or clock.now()
    return lasting_text((until - alarm.raised_at).total_seconds())
