"""Bookings of bandwidth on ports, and the settlement that bookings of routers' cores use too.

The sum of the bookings at a place is stored next to them, and changes in the same transaction. A CHECK
constraint limits the sum of each port.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, F, Value

from portal.allocation.errors import PortFull
from portal.allocation.models import BandwidthBooking
from portal.core.db.statements import execute
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import Port


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookings:
    """The bookings of one resource.

    ``place`` and ``amount``: the columns of ``model`` with the id of the port or router, and with the booked
    amount. ``router``: the look-up path to the id of the router. ``add``: a function that adds an amount to
    the sum of a place, and locks this place.
    """

    model: Any
    place: str
    amount: str
    router: str
    add: Callable[[int, int], object]

    def settle(
        self,
        *,
        owner: UUID,
        spare: UUID,
        wanted: Mapping[str, tuple[int, int]],
        leftover: Mapping[str, UUID],
    ) -> None:
        """Make ``owner`` book exactly ``wanted``, from the bookings of ``owner`` and ``spare``.

        ``wanted``: side -> (place, amount). Both owners together have booked at least these amounts. Other
        bookings are released. If ``leftover`` names an owner for a side, that owner gets the side's booking
        at any place other than the wanted one. Locks the places, in id order.
        """
        left, over = [], []
        changes: dict[int, int] = defaultdict(int)
        for row in self.model.objects.filter(owner__in=(owner, spare)).order_by("pk"):
            place = getattr(row, self.place)
            if row.side in leftover and place != wanted[row.side][0]:
                left.append(row)
            else:
                over.append(row.pk)
                changes[place] -= getattr(row, self.amount)
        for place, amount in wanted.values():
            changes[place] += amount
        for place in sorted(changes):
            self.add(place, changes[place])
        self.model.objects.filter(pk__in=over).delete()
        for row in left:
            self.model.objects.filter(pk=row.pk).update(owner=leftover[row.side])
        self.model.objects.bulk_create(
            self.model(owner=owner, side=side, **{self.place: place, self.amount: amount})
            for side, (place, amount) in wanted.items()
        )

    def release(self, *, owner: UUID, kept_at: Collection[tuple[str, int]] = ()) -> None:
        """Release an owner's bookings, except at ``kept_at`` (side, router id). Repeats have no effect."""
        rows = self.model.objects.filter(owner=owner).order_by(self.place, "side")
        for row in rows.values("pk", "side", self.router, self.place, self.amount):
            kept = (row["side"], row[self.router]) in kept_at
            if not kept and self.model.objects.filter(pk=row["pk"]).delete()[0]:
                self.add(row[self.place], -row[self.amount])


# One statement, to save round trips. The constraint port_bandwidth_is_never_overbooked limits the sum by the
# agreed speed. While the link is slower than agreed, new bookings must fit its present speed. Existing
# bookings stay.
_BOOK = """
WITH booked AS (
    UPDATE inventory_port SET booked_bps = booked_bps + %(cir_bps)s
    WHERE id = %(port)s AND booked_bps + %(cir_bps)s <= least(bookable_bps, %(bookable_now_bps)s)
    RETURNING id
)
INSERT INTO allocation_bandwidthbooking (port_id, holder, side, cir_bps)
SELECT id, %(owner)s, %(side)s, %(cir_bps)s FROM booked
"""


def bandwidth_book(
    *, port: Port, owner: UUID | None, side: str, cir_bps: int, own_bps: int = 0, besides_bps: int = 0
) -> None:
    """Book ``cir_bps`` (bit/s) on a port, minus ``own_bps``, the line's present booking there.

    Raises ``PortFull``. The caller has loaded the ports with the speed of their links. It has locked all
    ports that it books, in id order to avoid deadlocks. ``owner`` None checks the booking and writes nothing;
    ``besides_bps`` then count as booked, too.
    """
    if owner is None:
        given_back = own_bps - port.booked_bps - besides_bps
        if cir_bps > port.bookable_now_bps + given_back:
            raise _full(port, side, cir_bps, given_back)
        return
    values: dict[str, Any] = {
        "port": port.pk,
        "owner": owner,
        "side": side,
        "cir_bps": cir_bps - own_bps,
        "bookable_now_bps": port.bookable_now_bps,
    }
    booked = bool(execute(_BOOK, values))
    if not booked:
        found = with_link_speed(Port.objects.select_related("router")).get(pk=port.pk)
        raise _full(found, side, cir_bps, own_bps - found.booked_bps)


def bandwidth_forget(*, port: Port) -> None:
    """Release all bookings on a port that nobody can book any more. The caller has locked the port."""
    BandwidthBooking.objects.filter(port=port).delete()
    Port.objects.filter(pk=port.pk).update(booked_bps=0)


def _full(port: Port, side: str, cir_bps: int, given_back: int) -> PortFull:
    """Return the error for a booking that does not fit.

    ``given_back``: the line's bookings on the port minus the bookings of all lines there (bit/s).
    """
    return PortFull(
        field=f"{side}_end.port",
        port=str(port),
        requested_bps=cir_bps,
        free_bps=max(port.bookable_now_bps + given_back, 0),
        link_bps=port.link_bps if port.is_slow else None,
        bookable_bps=port.bookable_bps,
        speed_bps=port.speed_bps,
    )


def _add(port: int, bps: int) -> None:
    """Add to the sum of a port.

    The SQL names the type, because a bare int is sent as 32 bits (portal.core.db.base).
    """
    bits = Value(bps, output_field=BigIntegerField())
    Port.objects.filter(pk=port).update(booked_bps=F("booked_bps") + bits)


BANDWIDTH = Bookings(
    model=BandwidthBooking, place="port_id", amount="cir_bps", router="port__router_id", add=_add
)
