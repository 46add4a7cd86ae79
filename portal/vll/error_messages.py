"""The messages of refused orders and paths: what is refused, why, and how to continue."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core import required_mtu, vlan_tags
from portal.core.errors import TEXTS, wording
from portal.core.reader_zone import moment_text
from portal.core.units import rate_text
from portal.underlay import errors as underlay
from portal.underlay.tunnel_endpoints import Assumption
from portal.vll import errors


@wording.register
def _vlan_cooling_off(error: errors.VlanCoolingOff) -> str:
    names = {
        "line": error.description or error.line,
        "vlans": error.vlans,
        "port": error.port,
        "until": moment_text(error.until) if error.until else "",
    }
    if error.until is None and error.vlans is None:
        text = _("Your line “{line}” is just being removed from {port}. Order again in a minute.")
    elif error.until is None:
        text = _(
            "Your line “{line}” is just being removed and still has VLAN {vlans} on {port}. Order again in "
            "a minute, or choose another VLAN."
        )
    elif error.vlans is None:
        text = _(
            "Your removed line “{line}” keeps its place on {port} until {until}, so that you can undo the"
            " removal. To free the port now, remove that line permanently; or choose another port."
        )
    else:
        text = _(
            "Your removed line “{line}” keeps VLAN {vlans} on {port} until {until}, so that you can undo"
            " the removal. To free the VLAN now, remove that line permanently; or choose another VLAN."
        )
    return text.format(**names)


TEXTS |= {
    errors.SimilarOrder: gettext_noop(
        "The same line was ordered within the last hour (order {order}). Order another one only if you "
        "want a second line."
    ),
    errors.PortUnknown: gettext_noop(
        "Port {port} does not exist, or you may not see it. Choose one of your own ports."
    ),
    errors.NotAllowedToOrder: gettext_noop(
        "Your role lets you see {customer} but not order for it. Ask one of its operators or admins."
    ),
    errors.PortsOfTwoCustomers: gettext_noop(
        "{a_port} and {z_port} belong to different customers. A line joins two ports of one customer."
    ),
    errors.PortHasNoCustomer: gettext_noop(
        "{port} is not assigned to a customer yet. Ask the NOC to assign it."
    ),
    errors.EndsAreTheSame: gettext_noop(
        "Both ends would take the same frames from {port}. Choose another port, or other VLANs for one of "
        "them."
    ),
    errors.BurstOutOfRange: gettext_noop(
        "{value} bytes is not between {minimum} and {maximum} bytes: a burst contains at least the largest "
        "frame of the line. Enter a value in that range, or leave it out: the portal then chooses a value "
        "that suits the rate."
    ),
    errors.ExcessBurstWithoutRate: gettext_noop(
        "Without an excess rate nothing fills an excess burst. Order an EIR, or leave out the EBS."
    ),
    errors.LinkLossNeedsWholePorts: gettext_noop(
        "Link loss forwarding takes a whole port down, so both ends have to be whole ports. The {side} end "
        "is not a whole port. Order the whole port there, or leave link loss forwarding off."
    ),
    errors.LinkLossNeedsUni: gettext_noop(
        "{port} leads to another operator, so its link is never taken down. Leave link loss forwarding off."
    ),
    errors.LinkLossUnsupported: gettext_noop(
        "The agent on {router} does not support link loss forwarding yet. Leave it off, or ask the"
        " NOC to upgrade that agent."
    ),
    errors.LinkLossPortInUse: gettext_noop(
        "{interface} uses {port} as well, and would go down with the port. Leave link loss forwarding off, "
        "or ask the NOC about that interface."
    ),
    errors.PortShutDown: gettext_noop(
        "A port of this line is shut down because the other end has lost its link. Turn link loss forwarding "
        "off first, so that the port is up when the line is let go."
    ),
    errors.RouterHasNoAgent: gettext_noop(
        "{router} only carries traffic: lines cannot end there. Choose a port on another router."
    ),
    errors.RouterInMaintenance: gettext_noop(
        "{router} is under maintenance and accepts no new lines at the moment. Lines in service are "
        "not affected. Try again later, or choose a port on another router."
    ),
    errors.RouterIsDrained: gettext_noop(
        "{router} is drained, so its maintenance continues. End the drain first."
    ),
    errors.RouterIsDead: gettext_noop(
        "{router} is declared dead, so its maintenance continues. Undo that first."
    ),
    errors.FrameTooLargeForPort: gettext_noop(
        "{port} takes frames of up to {max_frame} bytes, but the largest frame of this line is {frame} bytes"
        " there. Order packets of up to {largest_svc_mtu} bytes."
    ),
    errors.OrderIsOpen: gettext_noop(
        "Order {order_id} ({action}) is still {state}. Wait until it has finished, or cancel it."
    ),
    errors.WrongLifecycle: gettext_noop(
        "This line is {lifecycle}, so {action} is not possible. Look at the line again to see the possible "
        "actions."
    ),
    errors.FoundLineUnknown: gettext_noop(
        "This found line has changed: its routers now report it differently, or it was taken over already. "
        "Look at the list again."
    ),
    errors.FoundLineOdd: gettext_noop(
        "The portal takes over a line without changing it, but something about this line is unusual: {odd} "
        "Fix that on the routers first."
    ),
    errors.AdoptionsRefused: gettext_noop(
        "{count} of these lines cannot be taken over, so no line was taken over. Leave these lines out, or "
        "fix what prevents the takeover."
    ),
    errors.FoundPortUnknown: gettext_noop(
        "{interface} of {router} is not a port of the inventory. The portal adds the port if you name the "
        "customer of the line and VPP knows the port’s speed. Otherwise add the port with its customer and "
        "its speed, and try again."
    ),
    errors.FoundPortOfAnother: gettext_noop(
        "{port} is a port of {owner}, but the line was to belong to {customer}. A line and its ports have "
        "the same customer: name {owner}, or change the port."
    ),
    errors.RouterAdoptsNothing: gettext_noop(
        "The agent of {router} is not allowed to take over lines, or has not reported recently. Set "
        "`adoption: allowed` in the agent’s file, start the agent again, and wait for its next report."
    ),
    errors.LineNotHere: gettext_noop(
        "No line “{line}” ends on {router}. Give its whole id, or its name as the portal has it."
    ),
    errors.LineAmbiguous: gettext_noop("Several lines here are called “{line}”. Give the id of one: {ids}."),
    errors.AdoptionWhileFrozen: gettext_noop(
        "{router} is frozen: somebody is working on it, and its configuration may change at any moment. "
        "Take the line over when the freeze has ended."
    ),
    errors.ChangeWhileFrozen: gettext_noop(
        "{router} is frozen. The change needs both routers of the line, so the line would carry nothing "
        "until the freeze ends. Order the change again when the freeze has ended."
    ),
    errors.RouterCannotBeFrozen: gettext_noop(
        "The agent of {router} does not support freezes, or has never reported. Upgrade the agent first, "
        "or lock the router: then the portal sends nothing to the agent, but the agent still repairs drift."
    ),
    errors.FreezeTooLong: gettext_noop(
        "The end of a freeze must be in the future and within {days} days. If you need more time, begin "
        "another freeze later."
    ),
    errors.LineBeingTested: gettext_noop(
        "{line} is being tested, and would carry nothing while {router} is frozen. A test takes less than "
        "a minute. Freeze the router after the test."
    ),
    errors.RouterIsNotFrozen: gettext_noop(
        "The portal has not frozen {router}. If an operator has frozen it on the router, end that freeze "
        "there, with `longline-agent unfreeze`."
    ),
    errors.FreezeNotOver: gettext_noop(
        "The freeze of {router} is not over. End it first; then you see what was changed meanwhile."
    ),
    errors.RouterLetsNothingGo: gettext_noop(
        "The agent of {router} does not support letting a line go. Upgrade the agent first."
    ),
    errors.PortOfAnotherCustomer: gettext_noop(
        "{port} does not belong to {customer}. A line stays with its customer: choose one of its ports."
    ),
    errors.WrongOrderState: gettext_noop(
        "This order is {state}, so {action} is not possible. Read it again."
    ),
    errors.LineHasNoTunnel: gettext_noop(
        "Both ends of this line are on one router, so there is no tunnel to send test frames through."
    ),
    errors.RouterSendsNoTestFrames: gettext_noop(
        "{routers} cannot send test frames, so nothing was done. Ask the NOC to upgrade."
    ),
    errors.RouterDoesNotAnswer: gettext_noop(
        "{routers} would not respond within seconds, so the line might stay interrupted; nothing was "
        "done. Try again later, or ask the NOC."
    ),
    errors.ActivationTestFrameOutOfRange: gettext_noop(
        "This line carries frames of {minimum} to {maximum} bytes, so frames of {value} cannot be "
        "sent. Enter a size in that range, or leave it out."
    ),
    errors.ActivationTestTimeOutOfRange: gettext_noop(
        "A test can be scheduled from now until {latest}. Choose a time in between."
    ),
    errors.ActivationTestIsScheduled: gettext_noop(
        "A test of this line is already scheduled for {at}. Cancel that test first."
    ),
    errors.WrongActivationTestState: gettext_noop(
        "This test is {state}: only a scheduled test can be cancelled here. To stop a running test,"
        " cancel its order."
    ),
    errors.StaleRevision: gettext_noop(
        "This line has changed: it is at revision {current}, but your change was made for {expected}."
        " Read it again, then retry."
    ),
    errors.NothingToChange: gettext_noop("The line already has these values; there is nothing to order."),
    errors.EndsSwapped: gettext_noop(
        "The line already joins these two ports, and the order of A and Z makes no difference. Leave"
        " A and Z where they are, and change the other differences."
    ),
    errors.StillBeingRemoved: gettext_noop(
        "{router} has not yet confirmed that this end is gone. Try again when it has, or ask the NOC."
    ),
    errors.AlreadyRetried: gettext_noop(
        "This order was already retried as order {order_id}. If that order failed too, retry that order "
        "instead."
    ),
    errors.CoolingOffOutOfRange: gettext_noop(
        "A cooling-off of {value} s is not possible. Choose 0 to {maximum} s."
    ),
    errors.NotForYouToDecide: gettext_noop(
        "Only the NOC can approve or reject orders. Wait for its decision."
    ),
    errors.NotForYouToForce: gettext_noop(
        "Only NOC admins can end an order without the routers' confirmation or declare a router dead. Ask "
        "one of them."
    ),
    errors.CoolingOffAlready: gettext_noop(
        "This line is already stopped and will be removed at {until}. Undo that, or remove it without "
        "a cooling-off."
    ),
    errors.PlanIsIncomplete: gettext_noop(
        "{routers} sent no plan, so this plan cannot be approved. Nothing was done. Ask for a new plan "
        "when all routers respond."
    ),
    errors.PlanIsStale: gettext_noop(
        "A router has changed since this plan was made, or the plan is not ready yet; nothing was "
        "done. Look at a new plan, then approve it."
    ),
    errors.GreKeysGone: gettext_noop(
        "This order's tunnel was to have a GRE key, but the VPPs of {a_router} and {z_router} no longer "
        "both support keys. Install VPPs that support keys, or reject the order: a new order gets a pair "
        "of addresses."
    ),
    errors.TunnelAddressGone: gettext_noop(
        "This order's tunnel was to end on {address}, which {router} no longer has. Give the router "
        "that address again, or reject the order: a new order gets another address."
    ),
    errors.ReservationUnknown: gettext_noop(
        "There is no reservation {hold}, or it has expired. Order without it, or create a new one."
    ),
    errors.TooManyReservations: gettext_noop(
        "{customer} has {maximum} open reservations, which is the limit. Order with one of them, or release"
        " one."
    ),
    errors.ReservationRenewedOut: gettext_noop(
        "This reservation has been renewed {maximum} times, which is the limit. Order before it expires."
    ),
    errors.ConcurrentChange: gettext_noop(
        "Somebody else changed this at the same moment; nothing was done. Read it again, then retry."
    ),
    errors.UnderlayTableInUse: gettext_noop(
        "The tunnels of {count} lines, such as {example}, end on {router} in table {table}. If you change "
        "the table, these lines are down until both of their routers and the links are in the new table. "
        "Remove or move these lines first. Then change the table."
    ),
    errors.LoopbackInUse: gettext_noop(
        "The tunnels of {count} lines, such as {example}, end on {address} of {router}. First move these "
        "lines, or change their transport to the other IP version. Then change the address."
    ),
    vlan_tags.WholePortIsExact: gettext_noop(
        "A whole port takes every frame, so exact match must stay on. To accept frames with further tags "
        "on a VLAN, choose dot1q."
    ),
    required_mtu.SvcMtuOutOfRange: gettext_noop(
        "Packets of {value} bytes are not possible. Enter a size from {minimum} to {maximum} bytes."
    ),
    underlay.TunnelWithinRouter: gettext_noop(
        "Both ports are on {router}; {transport} joins two routers. Choose auto or l2xc."
    ),
}


_VLANS = {
    "a_end.outer_vlan": gettext_noop("the outer VLAN of the A end"),
    "a_end.inner_vlan": gettext_noop("the inner VLAN of the A end"),
    "z_end.outer_vlan": gettext_noop("the outer VLAN of the Z end"),
    "z_end.inner_vlan": gettext_noop("the inner VLAN of the Z end"),
    "outer_vlan": gettext_noop("the outer VLAN"),
    "inner_vlan": gettext_noop("the inner VLAN"),
}


@wording.register
def _vlan_refused(
    error: vlan_tags.VlanMissing | vlan_tags.VlanNotWanted | vlan_tags.VlanOutOfRange,
) -> str:
    which = _(_VLANS.get(error.field, error.field))
    match error:
        case vlan_tags.VlanMissing():
            return _("Enter {which}: a number from {minimum} to {maximum}.").format(
                which=which, minimum=vlan_tags.MIN_VLAN, maximum=vlan_tags.MAX_VLAN
            )
        case vlan_tags.VlanNotWanted():
            return _("Leave out {which}: it has no meaning with the tagging {tagging}.").format(
                which=which, tagging=error.tagging
            )
        case _:
            return _("{value} cannot be {which}: enter a number from {minimum} to {maximum}.").format(
                value=error.value, which=which, minimum=error.minimum, maximum=error.maximum
            )


@wording.register
def _rate_out_of_range(error: errors.CirOutOfRange | errors.EirOutOfRange) -> str:
    return _("{value} is not between {minimum} and {maximum}.").format(
        value=rate_text(error.value), minimum=rate_text(error.minimum), maximum=rate_text(error.maximum)
    )


@wording.register
def _peak_above_port(error: errors.PeakAbovePort) -> str:
    if error.field == "cir_bps":
        text = _("{port} runs at {speed}, and {peak} is more than that. Order less, or choose a faster port.")
    else:
        text = _("{port} runs at {speed}; CIR and EIR together are {peak}. Order less excess.")
    return text.format(port=error.port, speed=rate_text(error.speed_bps), peak=rate_text(error.peak_bps))


@wording.register
def _lines_affected(error: errors.LinesAffected) -> str:
    lines = ", ".join(error.lines)
    if error.count > len(error.lines):
        lines = _("{lines} and {more} more").format(lines=lines, more=error.count - len(error.lines))
    return _(
        "With this change to {name}, the largest frames of these lines would be lost: {lines}. Keep"
        " the present value, or accept the loss: their customers are notified."
    ).format(name=error.name, lines=lines)


@wording.register
def _path_too_narrow(error: underlay.PathTooNarrow) -> str:
    """Return a message with the largest packet that the path carries for the request. Add a sentence if
    another transport would carry larger packets.
    """
    link = _("link {link} has an IP MTU of {available} bytes, but {required} are needed").format(
        link=error.link.name, available=error.available, required=error.required
    )
    largest = {each.transport: each.largest_svc_mtu for each in error.capacities}
    carried = largest.get(error.requested) if error.requested else max(largest.values(), default=None)
    if carried is None:
        text = _("Packets of this size do not fit this path: {link}, {shortfall} more.").format(
            link=link, shortfall=error.shortfall
        )
        return f"{text} {_what_fits(error)}"
    text = _("This path carries packets of up to {carried} bytes, {shortfall} fewer than requested: {link}.")
    if error.requested:
        text = _(
            "With {transport} this path carries packets of up to {carried} bytes, {shortfall} fewer than "
            "requested: {link}."
        )
    sentence = text.format(
        carried=carried,
        shortfall=error.shortfall,
        link=link,
        transport=error.requested.display_name if error.requested else "",
    )
    best = max(largest, key=lambda transport: largest[transport])
    if largest[best] <= carried:
        return sentence
    more = _("{transport} would carry up to {largest}.").format(
        transport=best.display_name, largest=largest[best]
    )
    return f"{sentence} {more}"


@wording.register
def _path_mtu_unknown(error: underlay.PathMtuUnknown) -> str:
    return _(
        "The IP MTU of {links} is not known, and it is never guessed. Ask the NOC: it must be "
        "declared, or the silent agent must report again."
    ).format(links=", ".join(link.name for link in error.links))


@wording.register
def _no_path(error: underlay.NoPath) -> str:
    text = _("No IPv{family} links in service join {a} and {z} in both directions.").format(
        family=error.family.value, a=error.a.name, z=error.z.name
    )
    return f"{text} {_what_fits(error)}"


@wording.register
def _family_missing(error: underlay.FamilyMissing) -> str:
    text = _("These routers have no IPv{family} loopback for the end of a tunnel: {routers}.").format(
        family=error.family.value, routers=", ".join(router.name for router in error.routers)
    )
    return f"{text} {_what_fits(error)}"


@wording.register
def _encapsulation_missing(error: underlay.EncapsulationMissing) -> str:
    text = _("The VPP of {router} does not support {transport}: the plugin is missing.").format(
        router=error.router.name, transport=error.transport.value
    )
    return f"{text} {_what_fits(error)}"


@wording.register
def _table_unknown_to_agent(error: underlay.TableUnknownToAgent) -> str:
    return _(
        "The underlay of {router} is in table {table}, and its agent is of an earlier release that"
        " creates tunnels only in table 0. Upgrade the agent."
    ).format(router=error.router.name, table=error.table)


@wording.register
def _table_unreadable(error: underlay.TableUnreadable) -> str:
    text = _(
        "The underlay of {router} is in table {table}, and VPP does not say in which table a tunnel of"
        " {transport} is."
    ).format(router=error.router.name, table=error.table, transport=error.transport.value)
    return f"{text} {_what_fits(error)}"


@wording.register
def _endpoint_missing(error: underlay.EndpointMissing) -> str:
    if error.table:
        text = _("{router} does not have its tunnel endpoint {address} in table {table} at the moment.")
    else:
        text = _("{router} does not have its tunnel endpoint {address} at the moment.")
    text = text.format(router=error.router.name, address=error.address, table=error.table)
    return f"{text} {_what_fits(error)}"


@wording.register
def _endpoint_unrouted(error: underlay.EndpointUnrouted) -> str:
    text = _("{far} has no route to {address}, the tunnel endpoint of {router}, at the moment.").format(
        far=error.far.name, address=error.address, router=error.router.name
    )
    return f"{text} {_what_fits(error)}"


_ASSUMED = {
    "encapsulation": gettext_noop("{router} has not reported yet; its VPP is assumed to support {subject}."),
    "address": gettext_noop("{router} has not reported yet; it is assumed to have {subject}, as declared."),
    "route": gettext_noop("{router} has not reported yet; it is assumed to have a route to {subject}."),
}


def assumed(assumption: Assumption) -> str:
    """Return the assumption and its reason."""
    return _(_ASSUMED[assumption.what]).format(router=assumption.router.name, subject=assumption.subject)


@wording.register
def _local_across_routers(error: underlay.LocalAcrossRouters) -> str:
    text = _("A local cross-connect joins two ports of one router; these are on {a} and {z}.").format(
        a=error.a.name, z=error.z.name
    )
    return f"{text} {_what_fits(error)}"


def _what_fits(error: underlay.TransportRefused) -> str:
    """Return alternatives: transports that fit, else the largest packet that any transport would carry."""
    if error.fits:
        return _("These transports would carry it: {transports}.").format(
            transports=", ".join(transport.display_name for transport in error.fits)
        )
    if error.capacities:
        largest = max(error.capacities, key=lambda capacity: capacity.largest_svc_mtu)
        return _("{transport} would carry packets of up to {largest} bytes.").format(
            largest=largest.largest_svc_mtu, transport=largest.transport.display_name
        )
    return _("No other transport would carry it either. Ask the NOC.")
