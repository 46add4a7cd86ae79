"""Errors of requests for a line: its ports, frames, rates and routers. Sizes in bytes, rates in bit/s."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from portal.allocation.errors import VlanTaken
from portal.core.errors import Conflict, DomainError
from portal.core.reader_texts import moment_text, rate_text


class PortUnknown(DomainError):
    """The port does not exist, or this user may not see it. The error does not show which reason applies."""

    text = _("Port {port} does not exist, or you may not see it. Choose one of your own ports.")
    field: str
    port: int


class VlanCoolingOff(VlanTaken):
    """A removed line of the same customer still has the requested frames.

    ``line``: the id of the removed line. It keeps the frames until ``until``, so that the removal can be
    undone. ``free_now``: the request to the API that frees them immediately. ``until`` and ``free_now`` are
    null if the removal is already under way.
    """

    line: str
    description: str
    until: datetime | None
    free_now: str | None

    @property
    def sentence(self) -> str:
        names = {
            "line": self.description or self.line,
            "vlans": self.vlans,
            "port": self.port,
            "until": moment_text(self.until) if self.until else "",
        }
        if self.until is None and self.vlans is None:
            text = _("Your line “{line}” is just being removed from {port}. Order again in a minute.")
        elif self.until is None:
            text = _(
                "Your line “{line}” is just being removed and still has VLAN {vlans} on {port}. Order again "
                "in a minute, or choose another VLAN."
            )
        elif self.vlans is None:
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


class NotAllowedToOrder(DomainError):
    """The user sees the customer but may not order for it."""

    status = 403
    text = _("Your role lets you see {customer} but not order for it. Ask one of its operators or admins.")
    customer: str


class PortsOfTwoCustomers(DomainError):
    """The ports belong to two customers. Both ports of a VLL must belong to one customer."""

    text = _("{a_port} and {z_port} belong to different customers. A line joins two ports of one customer.")
    a_port: str
    z_port: str
    field: str = "z_end.port"


class PortHasNoCustomer(DomainError):
    """The port has no customer yet."""

    text = _("{port} is not assigned to a customer yet. Ask the NOC to assign it.")
    field: str
    port: str


class PortOfAnotherCustomer(DomainError):
    """The port belongs to another customer. The ends of a line can only move to ports of its customer."""

    text = _("{port} does not belong to {customer}. A line stays with its customer: choose one of its ports.")
    field: str
    port: str
    customer: str


class EndsAreTheSame(DomainError):
    """Both ends select the same frames of the same port."""

    text = _(
        "Both ends would take the same frames from {port}. Choose another port, or other VLANs for one of "
        "them."
    )
    port: str
    field: str = "z_end"


class RateOutOfRange(DomainError):
    """A rate outside the permitted range. In bit/s."""

    code = ""
    value: int
    minimum: int
    maximum: int

    @property
    def sentence(self) -> str:
        return _("{value} is not between {minimum} and {maximum}.").format(
            value=rate_text(self.value), minimum=rate_text(self.minimum), maximum=rate_text(self.maximum)
        )


class CirOutOfRange(RateOutOfRange):
    """A committed information rate below the operator's minimum or above 1 Tbit/s. In bit/s."""

    field: str = "cir_bps"


class EirOutOfRange(RateOutOfRange):
    """An excess information rate that is negative or above 1 Tbit/s. In bit/s."""

    field: str = "eir_bps"


class PeakAbovePort(DomainError):
    """CIR and EIR together are more than the speed of the port. In bit/s."""

    port: str
    peak_bps: int
    speed_bps: int
    field: str = "eir_bps"

    @property
    def sentence(self) -> str:
        if self.field == "cir_bps":
            text = _(
                "{port} runs at {speed}, and {peak} is more than that. Order less, or choose a faster port."
            )
        else:
            text = _("{port} runs at {speed}; CIR and EIR together are {peak}. Order less excess.")
        return self.filled(text)


class BurstOutOfRange(DomainError):
    """A burst size that is smaller than the line's largest frame, or larger than policers support (bytes)."""

    text = _(
        "{value} bytes is not between {minimum} and {maximum} bytes: a burst contains at least the largest "
        "frame of the line. Enter a value in that range, or leave it out: the portal then chooses a value "
        "that suits the rate."
    )
    field: str
    value: int
    minimum: int
    maximum: int


class ExcessBurstWithoutRate(DomainError):
    """An EBS for a line without an EIR: nothing would fill that bucket."""

    text = _("Without an excess rate nothing fills an excess burst. Order an EIR, or leave out the EBS.")
    value: int
    field: str = "ebs_bytes"


class LinkLossNeedsWholePorts(DomainError):
    """Link loss forwarding for a line that shares a port.

    The port's other users would go down. ``side``: "A" or "Z".
    """

    text = _(
        "Link loss forwarding takes a whole port down, so both ends have to be whole ports. The {side} end "
        "is not a whole port. Order the whole port there, or leave link loss forwarding off."
    )
    field: str
    side: str


class LinkLossNeedsUni(DomainError):
    """Link loss forwarding at a port towards another operator."""

    text = _(
        "{port} leads to another operator, so its link is never taken down. Leave link loss forwarding off."
    )
    field: str
    port: str


class LinkLossUnsupported(DomainError):
    """Link loss forwarding on a router whose agent does not support it."""

    text = _(
        "The agent on {router} does not support link loss forwarding yet. Leave it off, or ask the"
        " NOC to upgrade that agent."
    )
    field: str
    router: str


class LinkLossPortInUse(DomainError):
    """Link loss forwarding at a port that a foreign interface uses too, according to the port's router."""

    text = _(
        "{interface} uses {port} as well, and would go down with the port. Leave link loss forwarding off, "
        "or ask the NOC about that interface."
    )
    field: str
    port: str
    interface: str


class RouterHasNoAgent(DomainError):
    """The port's router carries traffic but has no agent, so no VLL can have an end there."""

    text = _("{router} only carries traffic: lines cannot end there. Choose a port on another router.")
    field: str
    router: str


class RouterInMaintenance(Conflict):
    """The router is under maintenance and takes no new lines."""

    text = _(
        "{router} is under maintenance and accepts no new lines at the moment. Lines in service are "
        "not affected. Try again later, or choose a port on another router."
    )
    field: str
    router: str


class FrameTooLargeForPort(DomainError):
    """The frame on the UNI's wire, tags included, is larger than the port accepts. In bytes."""

    text = _(
        "{port} takes frames of up to {max_frame} bytes, but the largest frame of this line is {frame} bytes"
        " there. Order packets of up to {largest_svc_mtu} bytes."
    )
    field: str
    port: str
    frame: int
    max_frame: int
    largest_svc_mtu: int


class NothingToChange(DomainError):
    """The line already is as requested."""

    text = _("The line already has these values; there is nothing to order.")


class EndsSwapped(DomainError):
    """A change that only swaps the two ends: a line has no direction."""

    text = _(
        "The line already joins these two ports, and the order of A and Z makes no difference. Leave"
        " A and Z where they are, and change the other differences."
    )
    field = "a_end.port"


class StillBeingRemoved(Conflict):
    """This end would return to a router that has not confirmed the end's removal yet."""

    text = _("{router} has not yet confirmed that this end is gone. Try again when it has, or ask the NOC.")
    field: str
    router: str
