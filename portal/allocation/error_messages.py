"""Error messages for refused leases, composed from the facts of the errors."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.allocation import errors
from portal.core.errors import TEXTS, wording
from portal.core.units import at_most_text, rate_text

TEXTS |= {
    errors.NoVlanFree: gettext_noop(
        "{port} has no suitable VLAN left. Remove a line from it, or choose another port."
    ),
    errors.CoresBelowBooked: gettext_noop(
        "Lines have booked {booked_cores} cores of {router}, and {bookable_cores} would be left. Move "
        "lines away first, or accept that they may lose packets."
    ),
    errors.VniPoolExhausted: gettext_noop(
        "Every VNI is leased, cooling down or reserved. Ask the NOC to enlarge the pool."
    ),
    errors.GreKeysExhausted: gettext_noop("No free GRE key was found. Choose VXLAN or GENEVE."),
    errors.GrePairsExhausted: gettext_noop(
        "No pair of IPv{family} tunnel addresses between {a_router} and {z_router} is free, observed and"
        " routed. Choose another transport or a smaller packet size, or ask the NOC for more tunnel"
        " addresses."
    ),
    errors.TunnelKeyTaken: gettext_noop(
        "Another line uses the key {key}, or the key is reserved. Change the key on both routers, or end "
        "the reservation."
    ),
    errors.TunnelPairTaken: gettext_noop(
        "Another line has a GRE tunnel between {pair} already. Remove that line first."
    ),
    errors.VniRangeBackwards: gettext_noop(
        "{first} to {last} is not a range of VNIs. Enter two numbers from {minimum} to {maximum}, in order."
    ),
    errors.VniRangeInUse: gettext_noop(
        "{count} VNIs from {first} to {last} are leased or cooling down, such as {example}. Reserve "
        "another range, or wait until their lines are gone."
    ),
}


@wording.register
def _vlan_taken(error: errors.VlanTaken) -> str:
    if error.whole_port_taken:
        text = _("Another line uses all of {port}. Choose another port.")
    elif error.vlans is None:
        text = _(
            "Other lines use VLANs on {port}, so the whole port is not free. Choose another port, or "
            "a VLAN on this one."
        )
    else:
        text = _("VLAN {vlans} on {port} is used by another line. Choose another one, or let us choose.")
    return text.format(port=error.port, vlans=error.vlans)


@wording.register
def _vlan_in_foreign_use(error: errors.VlanInForeignUse) -> str:
    if error.vlans is None:
        text = _(
            "{port} is also used by {interface}, which this portal does not manage. Choose another port, or "
            "ask the NOC about that interface."
        )
    else:
        text = _(
            "VLAN {vlans} on {port} is used by {interface}, which this portal does not manage. Choose another"
            " VLAN, or let us choose."
        )
    return text.format(port=error.port, vlans=error.vlans, interface=error.interface)


@wording.register
def _port_full(error: errors.PortFull) -> str:
    if error.link_bps is not None:
        text = _(
            "{port} runs at {link} instead of {speed} and has {free} left, but this takes {requested}. Order "
            "less, or choose another port."
        )
    elif error.bookable_bps == error.speed_bps:
        text = _("{port} has {free} left, but this takes {requested}. Order less, or choose another port.")
    else:
        text = _(
            "{port} has {free} left of the {bookable} that can be booked on its {speed}, but this "
            "takes {requested}. Order less, or choose another port."
        )
    return text.format(
        port=error.port,
        free=rate_text(error.free_bps),
        bookable=rate_text(error.bookable_bps),
        speed=rate_text(error.speed_bps),
        link=rate_text(error.link_bps or 0),
        requested=rate_text(error.requested_bps),
    )


@wording.register
def _router_full(error: errors.RouterFull) -> str:
    text = _(
        "{router} cannot forward this much: it would take {requested} of its processor cores, and {free} of"
        " {bookable} are free."
    ).format(
        router=error.router,
        requested=error.requested_cores,
        free=error.free_cores,
        bookable=error.bookable_cores,
    )
    if not error.free_bps:
        return text + " " + _("Choose a port on another router, or ask the NOC for more cores.")
    more = _("Up to {free} would fit: order less, or choose a port on another router.")
    return text + " " + more.format(free=at_most_text(error.free_bps))
