"""What a port's page shows: the state of its link, ranges of VLANs, and what it lost."""

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
    """Ranges as far as they are shown; ``more``: how many are not."""

    shown: tuple[VlanRange, ...]
    more: int


@register.simple_tag
def port_link_badge(state: LinkState) -> SafeString:
    """The badge of a link's state."""
    return badge_markup(state.label, _TONES[state])


@register.filter
def vlan_count(ranges: tuple[VlanRange, ...]) -> str:
    """The number of VLANs in these ranges, as ``4 094``."""
    return count_text(sum(len(each) for each in ranges))


@register.simple_tag
def vlan_ranges(ranges: tuple[VlanRange, ...], most: int | None) -> Listed:
    """The first ``most`` of them, or all for None."""
    shown = ranges if most is None else ranges[:most]
    return Listed(shown, len(ranges) - len(shown))


@register.filter
def any_lost(counts: Mapping[str, float | None]) -> bool:
    """Whether a port lost or dropped any frame."""
    return any(counts[name] for name in _LOST)


@register.filter
def missed(counts: Mapping[str, float | None]) -> float:
    """Frames that came, and that the router could not take in."""
    return (counts["rx_miss"] or 0) + (counts["rx_no_buffer"] or 0)
