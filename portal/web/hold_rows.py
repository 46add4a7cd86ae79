"""A hold for display: its ports, its VLANs and its expiry."""

from dataclasses import dataclass

from portal.accounts import permissions
from portal.accounts.models import User
from portal.inventory.models import Port
from portal.vll.models import Hold, VllEnd
from portal.vll.models.hold import MAX_RENEWALS


@dataclass(frozen=True, slots=True)
class Held:
    """A hold for display. ``ends``: its ports and VLANs, as ends of a line that are not stored."""

    hold: Hold
    ends: list[VllEnd]
    renewals_left: int
    may_order: bool


def held_of(hold: Hold, user: User) -> Held:
    """Return ``hold`` for display, with its ports and the user's permission to order."""
    ports = Port.objects.select_related("router").in_bulk([hold.ends[side]["port"] for side in "az"])
    return Held(
        hold=hold,
        ends=[
            VllEnd(
                side=side,
                port=ports[hold.ends[side]["port"]],
                **{
                    name: hold.ends[side][name]
                    for name in ("tagging", "outer_vlan", "inner_vlan", "exact_match")
                },
            )
            for side in "az"
        ],
        renewals_left=MAX_RENEWALS - hold.renewals,
        may_order=permissions.may_order(user, hold.customer),
    )
