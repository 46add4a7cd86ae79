"""Settlement and release of bookings: amounts that owners have booked at ports or routers.

The sum of the bookings at a place is stored next to them, and changes in the same transaction.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID


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
        """Release an owner's bookings, except at ``kept_at`` (side, router id). A second call changes
        nothing.
        """
        rows = self.model.objects.filter(owner=owner).order_by(self.place, "side")
        columns = ("pk", "side", self.router, self.place, self.amount)
        for pk, side, router, place, amount in rows.values_list(*columns):
            if (side, router) not in kept_at and self.model.objects.filter(pk=pk).delete()[0]:
                self.add(place, -amount)
