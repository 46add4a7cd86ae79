"""The words for refused leases, with the errors' facts in them."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.allocation import errors
from portal.core.errors import TEXTS, wording
from portal.core.units import rate_text

TEXTS |= {
    errors.NoVlanFree: gettext_noop(
        "{port} has no VLAN left that fits. Remove a line from it, or choose another port."
    ),
    errors.CoresBelowBooked: gettext_noop(
        "The lines of {router} have booked {booked_cores} of its cores, and {bookable_cores} would be left."
        " Move lines away first, or accept that they may lose packets."
    ),
    errors.VniPoolExhausted: gettext_noop(
        "Every VNI is leased, resting or reserved. Ask the NOC to widen the pool."
    ),
    errors.GreKeysExhausted: gettext_noop("No free GRE key was found. Choose VXLAN or GENEVE."),
    errors.GrePairsExhausted: gettext_noop(
        "No pair of IPv{family} tunnel addresses between {a_router} and {z_router} is free, observed and"
        " routed. Choose another transport or a smaller packet size, or ask the NOC for more tunnel"
        " addresses."
    ),
    errors.VniRangeBackwards: gettext_noop(
        "{first} to {last} is no range of VNIs. Write two numbers from {minimum} to {maximum}, in order."
    ),
    errors.VniRangeInUse: gettext_noop(
        "{count} VNIs from {first} to {last} are leased or resting, such as {example}."
        " Reserve another range, or wait until their lines are gone."
    ),
}


@wording.register
def _vlan_taken(error: errors.VlanTaken) -> str:
    if error.whole_port_taken:
        text = _("All of {port} is taken by another line. Choose another port.")
    elif error.vlans is None:
        text = _(
            "Other lines use VLANs of {port}, so it is not free as a whole. Choose another port, or a VLAN of"
            " this one."
        )
    else:
        text = _(
            "VLAN {vlans} of {port} is taken by another line. Choose another one, or leave the choice to us."
        )
    return text.format(port=error.port, vlans=error.vlans)


@wording.register
def _port_full(error: errors.PortFull) -> str:
    if error.bookable_bps == error.speed_bps:
        text = _("{port} has {free} left, but {asked} is needed. Order less, or choose another port.")
    else:
        text = _(
            "{port} has {free} left of {bookable}, which may be booked on its {speed}, but {asked} is needed."
            " Order less, or choose another port."
        )
    return text.format(
        port=error.port,
        free=rate_text(error.free_bps),
        bookable=rate_text(error.bookable_bps),
        speed=rate_text(error.speed_bps),
        asked=rate_text(error.requested_bps),
    )


@wording.register
def _router_full(error: errors.RouterFull) -> str:
    text = _(
        "The cores of {router} are full: {booked} of {bookable} are booked, {free} are left, and {transport}"
        " at this rate takes {asked}."
    ).format(
        router=error.router,
        booked=error.booked_cores,
        bookable=error.bookable_cores,
        free=error.free_cores,
        transport=error.transport,
        asked=error.requested_cores,
    )
    if not error.free_bps:
        return text + " " + _("Choose a port on another router, or ask the NOC for more cores.")
    return (
        text
        + " "
        + _(
            "{free} would still fit: order less, choose a cheaper transport, or a port on another router."
        ).format(free=rate_text(error.free_bps))
    )
