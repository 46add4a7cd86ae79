"""Template tags for alarms: severity, state, and the page of the object."""

from datetime import datetime

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.alarms import sentences
from portal.alarms.kinds import Kind, Severity
from portal.alarms.models import Alarm
from portal.core import clock
from portal.core.reader_texts import lasting_text
from portal.web.page.badges import badge_markup

_OF_KIND: dict[str, str] = {
    Kind.NETBOX: "web:noc-netbox",
    Kind.NETBOX_LINES: "web:noc-netbox",
    Kind.BLACK_HOLE: "web:noc-map",
    Kind.PATH_DOWN: "web:noc-map",
    Kind.PATH_UNHEARD: "web:noc-map",
}
_OF_OBJECT = {
    "router": "web:noc-router",
    "line": "web:vll",
    "port": "web:noc-ports-change",
    "link": "web:noc-links-change",
    "webhook": "web:webhook",
}
_LOSSES = (Kind.LOSSES, Kind.FEW_BUFFERS)


def address_of(alarm: Alarm) -> str:
    """Return the address of the page for an active alarm; "" if the alarm is cleared or has no page.

    A newer release may have stored alarms of kinds or objects that this release does not know.
    """
    if alarm.cleared_at is not None:
        return ""
    try:
        return _address_of(alarm)
    except (KeyError, NoReverseMatch):
        return ""


def _address_of(alarm: Alarm) -> str:
    kind, (what, _colon, about) = alarm.kind, alarm.object.partition(":")
    if kind in _OF_KIND:
        return reverse(_OF_KIND[kind])
    if kind in _LOSSES:
        return reverse("web:noc-router", args=[about.partition(":")[0]]) + "#losses"
    if kind == Kind.TROUBLE:
        return reverse("web:diagnosis", args=[about])
    if kind == Kind.ORDER_FAILED:
        return reverse("web:vll", args=[alarm.facts["line"]])
    if what == "order":
        return reverse("web:noc-order", args=[about])
    if kind == Kind.TEST_FAILED:
        return reverse("web:activation-test", args=[alarm.facts["line"], alarm.facts["test"]])
    return reverse(_OF_OBJECT[what], args=[about]) if what in _OF_OBJECT else ""


register = template.Library()
register.filter("address", address_of)

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
