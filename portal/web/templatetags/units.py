"""Rates, tags and transports as people write them."""

from django import template
from django.utils.translation import gettext as _

from portal.core import units
from portal.core.request_id import current_request_id
from portal.core.tagging import Tagging
from portal.core.transport import Transport
from portal.vll.models import VllEnd

register = template.Library()

_TAGGINGS = {Tagging.DOT1Q: "802.1Q", Tagging.QINQ: "QinQ", Tagging.DOT1AD: "802.1ad"}


@register.filter
def rate(bps: float) -> str:
    """bit/s with an SI prefix."""
    return units.rate_text(bps)


@register.filter
def tags(end: VllEnd) -> str:
    """``802.1Q 100``, ``QinQ 100.200`` or the whole port."""
    if end.tagging == Tagging.UNTAGGED:
        return _("whole port")
    vlans = ".".join(str(vlan) for vlan in (end.outer_vlan, end.inner_vlan) if vlan is not None)
    return f"{_TAGGINGS[Tagging(end.tagging)]} {vlans}"


@register.filter
def transport(value: str) -> str:
    """``vxlan4`` -> ``VXLAN over IPv4``; ``auto`` stays a request."""
    if value == "auto":
        return _("automatic")
    known = Transport(value)
    if known.family is None:
        return _("local cross-connect")
    return _("%(encapsulation)s over IPv%(family)d") % {
        "encapsulation": known.encapsulation.upper(),
        "family": known.family,
    }


@register.simple_tag
def request_id() -> str:
    """The id to name when reporting a problem."""
    return current_request_id.get()
