"""Use the figures of a calibration for a router, or return to the shipped cost table.

The portal then recalculates the bookings of the router's lines. It locks the router, then the lines, then the
router's sum of bookings (ADR 76), so that no order changes a booking meanwhile.
"""

from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.allocation.cpu_core_bookings import cores_revalue, cores_suffice
from portal.allocation.models import CoreBooking
from portal.allocation.packet_capacity import Weights, weights_of
from portal.core.network.encapsulations import Transport
from portal.events.outbox import announce
from portal.inventory.calibration_document import Calibration
from portal.inventory.errors import Retired
from portal.inventory.models import Router
from portal.vll.models import Vll
from portal.vll.operations.state_compare_and_swap import lines_lock


@transaction.atomic
def router_calibration_set(
    *,
    router: Router,
    calibration: Calibration | None,
    user: User,
    now: datetime,
    accept_affected: bool = False,
) -> None:
    """Use this calibration for the weights of the router's ends from now on; None restores the shipped cost
    table.

    Raises Retired. Raises CoresBelowBooked if a transport becomes heavier and the bookings then exceed the
    router's cores, unless ``accept_affected`` is True. Nothing changes if the router has these figures
    already.
    """
    locked = (
        Router.objects.select_for_update(of=("self",), no_key=True)
        .select_related("observed")
        .get(pk=router.pk)
    )
    if locked.retired_at is not None:
        raise Retired(what="router", name=locked.name)
    kept = None if calibration is None else calibration.kept()
    if kept == locked.calibration:
        return
    before = weights_of(locked)
    locked.calibration = kept
    locked.save(update_fields=["calibration"])
    booked_lines_lock(locked)
    heavier = lines_revalue(locked, before=before)
    if heavier and not accept_affected:
        cores_suffice(locked)
    kind = "router.calibration_returned" if kept is None else "router.calibration_taken"
    announce(kind, now=now, router_id=locked.pk, actor=user.username, data=kept)


def booked_lines_lock(router: Router) -> None:
    """Lock the lines that have booked cores of this router, so that no order changes their bookings.

    The caller has locked the router.
    """
    booked = CoreBooking.objects.filter(router=router).values_list("owner", flat=True)
    lines_lock(set(booked))


def lines_revalue(router: Router, *, before: Weights) -> bool:
    """Recalculate the bookings of the router's lines. Return whether any transport has become heavier.

    The caller has locked the lines.
    """
    after = weights_of(router)
    booked = CoreBooking.objects.filter(router=router).values("owner")
    lines = {line.pk: (Transport(line.transport), line.cir_bps) for line in Vll.objects.filter(pk__in=booked)}
    cores_revalue(router=router, lines=lines, before=before, after=after)
    return any(after[transport] > before[transport] for transport in Transport)
