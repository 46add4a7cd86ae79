"""A reservation for display: its ports, its VLANs and its expiry."""

from dataclasses import dataclass

from portal.accounts import permissions
from portal.accounts.models import User
from portal.inventory.models import Port
from portal.vll.line_spec import AllocatedEnd
from portal.vll.models import Reservation, VllEnd
from portal.vll.models.reservation import MAX_RENEWALS


@dataclass(frozen=True, slots=True)
class ShownReservation:
    """A reservation for display. ``ends``: its ports and VLANs, as ends of a line that are not stored."""

    row: Reservation
    ends: list[VllEnd]
    renewals_left: int
    may_order: bool


def shown_reservation(row: Reservation, user: User) -> ShownReservation:
    """Return ``row`` for display, with its ports and the user's permission to order."""
    ports = Port.objects.select_related("router").in_bulk([row.ends[side]["port"] for side in "az"])
    return ShownReservation(
        row=row,
        ends=[
            VllEnd(side=side, port=ports[end.port], **end.columns)
            for side, end in ((side, AllocatedEnd.from_json(row.ends[side])) for side in "az")
        ],
        renewals_left=MAX_RENEWALS - row.renewals,
        may_order=permissions.may_order(user, row.customer),
    )
