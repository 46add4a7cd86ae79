"""Template filters and tags for rates, ratios, times, VLAN tags and transports."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.template.defaultfilters import date
from django.utils.html import conditional_escape, escape, format_html, linebreaks
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core import reader_texts
from portal.core.http import current_request_id
from portal.core.network.encapsulations import Transport
from portal.core.network.vlan_tags import Tagging
from portal.telemetry.availability import availability_text
from portal.telemetry.models import AgentClock
from portal.telemetry.sample_times import MAX_OFFSET
from portal.vll.models import VllEnd

register = template.Library()
# Numbers and times in the language and the time zone of the reader.
register.filter("rate", reader_texts.rate_text)
register.filter("part", reader_texts.part_text)
register.filter("moment", reader_texts.moment_text)
register.filter("precise_moment", reader_texts.precise_moment_text)
register.filter("lasting", reader_texts.lasting_text)
register.simple_tag(reader_texts.zone_name, name="zone")

_TRANSPORTS = frozenset(each.value for each in Transport)
_TAGS: dict[str, str] = {
    Tagging.UNTAGGED: gettext_noop("whole port"),
    Tagging.DOT1Q: gettext_noop("VLAN %(outer)s"),
    Tagging.QINQ: gettext_noop("VLAN %(outer)s, inner VLAN %(inner)s"),
    Tagging.DOT1AD: gettext_noop("S-VLAN %(outer)s, C-VLAN %(inner)s"),
}


@register.filter
def clock_of(known: AgentClock) -> str:
    """Return the offset of a router's clock when its agent sent its newest counters, such as ``2 h ahead``.

    A clock that is wrong by at most a minute is shown as right.
    """
    is_right = abs(known.offset_ms) <= MAX_OFFSET.total_seconds() * 1000
    return reader_texts.offset_text(0 if is_right else known.offset_ms)


@register.filter
def tags(end: VllEnd) -> str:
    """Return the VLANs of an end, such as ``VLAN 100`` or ``S-VLAN 100, C-VLAN 200`` (IEEE 802.1ad).

    An end without VLANs is called "whole port".
    """
    if end.tagging not in _TAGS:
        return str(end.tagging)
    vlans = {"outer": end.outer_vlan, "inner": end.inner_vlan}
    return _(_TAGS[end.tagging]) % vlans


@register.filter
def transport(value: str) -> str:
    """Return the name of a transport: "VXLAN over IPv4" for ``vxlan4``, "automatic" for ``auto``."""
    if value == "auto":
        return _("automatic")
    return Transport(value).display_name if value in _TRANSPORTS else value


@register.simple_tag
def request_id() -> str:
    """Return the request id that users quote when they report a problem."""
    return current_request_id.get()


@register.filter
def rate_or_not(bps: float | None) -> str:
    """Return a rate in bit/s with an SI prefix; "not measured" for None."""
    return _("not measured") if bps is None else reader_texts.rate_text(bps)


@register.filter
def measured(bps: float | None) -> str:
    """Return a measured rate with three digits, such as ``12.3 Mbit/s``; "–" for None."""
    return "–" if bps is None else reader_texts.measured_text(bps)


@register.filter
def in_ms(us: int | None) -> str:
    """Return a time, given in µs, in ms, such as ``0.81 ms``; "–" for None."""
    return "–" if us is None else f"{reader_texts.decimal_text(us / 1000, 2)} ms"


@register.filter
def available(times: dict[str, Any]) -> str:
    """Return the availability in per cent, rounded down; "not measured" if no status is known.

    If the status is known for only a part of the time, the text also contains that part.
    """
    return availability_text(times["availability"], times["known_ratio"]) or _("not measured")


@register.filter
def lost(way: dict[str, Any]) -> str:
    """Return the loss of one direction in per cent, rounded up; "not measured" if the loss is unknown.

    If the loss is below its bound (the accuracy of the measurement), the text is "<" and the bound.
    """
    ratio, bound = way["loss_ratio"], way["bound_ratio"]
    if ratio is None:
        return _("not measured")
    return f"< {reader_texts.part_text(bound)}" if ratio < bound else reader_texts.part_text(ratio)


@register.filter
def frames(count: float | None) -> str:
    """Return a number of frames, such as ``1 234 567``; "–" for None."""
    return "–" if count is None else reader_texts.count_text(count)


@register.simple_tag
def time(at: datetime | None, otherwise: str = "–") -> SafeString:
    """Return a time to the second in the reader's time zone; ``otherwise`` for None.

    static/js/times.js rewrites it if the server does not know the time zone yet.
    """
    if not at:
        return conditional_escape(otherwise)
    return format_html('<time datetime="{}">{}</time>', date(at, "c"), reader_texts.precise_moment_text(at))


@register.filter
def time_of_day(at: datetime) -> str:
    """Return the time of day to the second in the reader's time zone, such as ``14:00:07 CET``."""
    return reader_texts.time_text(at, seconds=True)


_ENDS = {"a": gettext_noop("A end"), "z": gettext_noop("Z end")}


@register.filter
def end_name(side: str) -> str:
    """Return the name of an end of a line, such as "A end"."""
    return _(_ENDS[side])


_CODE = re.compile(r"(`+)([^`]+)\1")


@register.filter
def code_marked(text: str) -> SafeString:
    """Return ``text`` as HTML. Parts in back-quotes become ``code`` elements."""
    return mark_safe(_CODE.sub(r"<code>\2</code>", escape(text)))  # noqa: S308 - escaped before


@register.filter
def paragraphs(text: str) -> SafeString:
    """Return ``text`` as HTML paragraphs. Parts in back-quotes become ``code`` elements."""
    return mark_safe(linebreaks(code_marked(text)))  # noqa: S308 - as above
