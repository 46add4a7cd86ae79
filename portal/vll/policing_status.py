"""Whether a router enforces an end's bandwidth profile, and the reason if it does not. The CIR is booked even
if no router enforces it.
"""

from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.network.bandwidth_profile import Policing
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import ObservedRouter
from portal.vll.models import VllEnd

_PLACES = frozenset(each.value for each in Policing)


class Unpoliced(StrEnum):
    """The reasons why an end is not policed."""

    ROUTER_SILENT = "router_silent"
    NO_POLICERS = "no_policers"
    WHOLE_PORTS_ONLY = "whole_ports_only"
    NOT_CONFIRMED = "not_confirmed"


_TEXTS = {
    Unpoliced.ROUTER_SILENT: gettext_noop("{router} has not reported yet what it can police."),
    Unpoliced.NO_POLICERS: gettext_noop("{router} cannot police: its VPP does not support it."),
    Unpoliced.WHOLE_PORTS_ONLY: gettext_noop(
        "{router} can only police whole ports: its VPP, {version}, or its agent cannot police VLANs."
    ),
    Unpoliced.NOT_CONFIRMED: gettext_noop(
        "{router} can police ends like this one, but does not confirm that it polices this one."
    ),
}


def unpoliced(end: VllEnd) -> Unpoliced | None:
    """Return why the end is not policed; None for a policed end. Prefetch ``port.router.observed``."""
    if end.policed:
        return None
    seen = _observed(end)
    if seen is None:
        return Unpoliced.ROUTER_SILENT
    if seen.policing not in _PLACES:
        # A portal of a newer release stored this value: the router polices in a way that this release does
        # not know.
        return Unpoliced.NOT_CONFIRMED
    if Policing(seen.policing).covers(Tagging(end.tagging)):
        return Unpoliced.NOT_CONFIRMED
    return Unpoliced.WHOLE_PORTS_ONLY if seen.policing == Policing.PORT else Unpoliced.NO_POLICERS


def unpoliced_text(end: VllEnd, why: Unpoliced) -> str:
    """Return the reason as a sentence for a reader."""
    seen = _observed(end)
    return _(_TEXTS[why]).format(router=end.port.router.name, version=seen.vpp_version if seen else "")


def _observed(end: VllEnd) -> ObservedRouter | None:
    return getattr(end.port.router, "observed", None)
