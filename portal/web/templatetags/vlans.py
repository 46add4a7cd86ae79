"""Template tags and filters for a port's page: link state, VLAN ranges, and losses."""

from collections.abc import Mapping
from dataclasses import dataclass

from django import template
from django.utils.safestring import SafeString

from portal.allocation.vlan_usage import VlanRange
from portal.core.units import count_text
from portal.inventory.port_link_state import LinkState
from portal.web.badge_markup import badge_markup

register = template.Library()

_TONES = {
    LinkState.UP: "success",
    LinkState.DOWN: "danger",
    LinkState.OFF: "warning",
    LinkState.MISSING: "warning",
    LinkState.UNKNOWN: "muted",
}
_LOST = ("drops", "rx_miss", "rx_errors", "rx_no_buffer", "tx_errors")


@dataclass(frozen=True, slots=True)
class Listed:
    """VLAN ranges to show. ``more``: the number of ranges that are not shown."""

    shown: tuple[VlanRange, ...]
    more: int


@register.simple_tag
def port_link_badge(state: LinkState) -> SafeString:
    """Return the badge for the state of a port's link."""
    return badge_markup(state.label, _TONES[state])


@register.filter
def vlan_count(ranges: tuple[VlanRange, ...]) -> str:
    """Return the number of VLANs in the ranges, such as ``4 094``."""
    return count_text(sum(len(each) for each in ranges))


@register.simple_tag
def vlan_ranges(ranges: tuple[VlanRange, ...], most: int | None) -> Listed:
    """Return the first ``most`` ranges; all ranges if ``most`` is None."""
    shown = ranges if most is None else ranges[:most]
    return Listed(shown, len(ranges) - len(shown))


@register.filter
def any_lost(counts: Mapping[str, float | None]) -> bool:
    """Return whether a port lost or dropped at least one frame."""
    return any(counts[name] for name in _LOST)


@register.filter
def missed(counts: Mapping[str, float | None]) -> float:
    """Return the number of frames that the router could not receive although they arrived at the port."""
    return (counts["rx_miss"] or 0) + (counts["rx_no_buffer"] or 0)
