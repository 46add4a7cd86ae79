"""Samples in quarantine, in words."""

import json
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.core.reader_zone import precise_moment_text
from portal.core.unix_time import to_time
from portal.telemetry.models import AgentClock, Quarantine
from portal.telemetry.sample_quarantine import MAX_AHEAD
from portal.telemetry.sample_quarantine_texts import offset_text, reason_text
from portal.web.badge_markup import badge_markup

register = template.Library()

_STATES: dict[str, tuple[Any, str]] = {
    Quarantine.State.UNDECIDED: (_("Undecided"), "warning"),
    Quarantine.State.ACCEPTED: (_("Accepted"), "success"),
    Quarantine.State.DISCARDED: (_("Discarded"), "muted"),
    Quarantine.State.EXPIRED: (_("Expired"), "danger"),
}


@register.simple_tag
def quarantine_state(quarantine: Quarantine) -> SafeString:
    """The decision, as a badge."""
    label, tone = _STATES.get(quarantine.state, (quarantine.state, "muted"))
    return badge_markup(label, tone)


@register.filter
def reason(quarantine: Quarantine) -> str:
    """The reason why its samples were set aside."""
    return reason_text(quarantine)


@register.filter
def clock(quarantine: Quarantine) -> str:
    """``2 h ahead``, as it was measured."""
    return offset_text(quarantine.offset_ms)


@register.filter
def clock_of(known: AgentClock) -> str:
    """An agent's clock, as its newest counters were sent: right within a minute, or by how much it is not."""
    is_right = abs(known.offset_ms) <= MAX_AHEAD.total_seconds() * 1000
    return offset_text(0 if is_right else known.offset_ms)


@register.filter
def by_its_clock(ms: int) -> str:
    """A moment of a router's clock (milliseconds since the epoch), which may be beyond every calendar."""
    try:
        return precise_moment_text(to_time(ms))
    except OverflowError:
        return f"{ms} ms"


@register.filter
def pretty(sample: dict[str, Any]) -> str:
    """A sample as its agent sent it."""
    return json.dumps(sample, indent=1)
