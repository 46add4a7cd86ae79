"""Template tags and filters for samples in quarantine."""

import json
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.core.clock import to_time
from portal.core.reader_zone import precise_moment_text
from portal.telemetry.models import AgentClock, Quarantine
from portal.telemetry.sample_quarantine import MAX_AHEAD
from portal.telemetry.sample_quarantine_texts import offset_text, reason_text
from portal.web.page.badges import badge_markup

register = template.Library()

_STATES: dict[str, tuple[Any, str]] = {
    Quarantine.State.UNDECIDED: (_("Undecided"), "warning"),
    Quarantine.State.ACCEPTED: (_("Accepted"), "success"),
    Quarantine.State.DISCARDED: (_("Discarded"), "muted"),
    Quarantine.State.EXPIRED: (_("Expired"), "danger"),
}


@register.simple_tag
def quarantine_state(quarantine: Quarantine) -> SafeString:
    """Return the badge for the state of a quarantine, such as "Undecided"."""
    label, tone = _STATES.get(quarantine.state, (quarantine.state, "muted"))
    return badge_markup(label, tone)


@register.filter
def reason(quarantine: Quarantine) -> str:
    """Return the reason for a quarantine as a sentence."""
    return reason_text(quarantine)


@register.filter
def clock(quarantine: Quarantine) -> str:
    """Return the measured offset of the router's clock, such as ``2 h ahead``."""
    return offset_text(quarantine.offset_ms)


@register.filter
def clock_of(known: AgentClock) -> str:
    """Return the offset of an agent's clock when it sent its newest counters, such as ``2 h ahead``.

    A clock that is wrong by at most a minute is shown as right.
    """
    is_right = abs(known.offset_ms) <= MAX_AHEAD.total_seconds() * 1000
    return offset_text(0 if is_right else known.offset_ms)


@register.filter
def by_its_clock(ms: int) -> str:
    """Return a time of the router's clock (milliseconds since the epoch) as text.

    A time outside datetime's range is returned in milliseconds.
    """
    try:
        return precise_moment_text(to_time(ms))
    except OverflowError:
        return f"{ms} ms"


@register.filter
def pretty(sample: dict[str, Any]) -> str:
    """Return a sample as indented JSON."""
    return json.dumps(sample, indent=1)
