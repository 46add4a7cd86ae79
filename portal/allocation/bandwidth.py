"""Booking committed bandwidth on ports: a sum that a CHECK constraint guards."""

from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from portal.allocation.errors import PortFull
from portal.allocation.models import BandwidthBooking
from portal.inventory.models import Port


def bandwidth_book(*, port: Port, holder: UUID, side: str, cir_bps: int) -> None:
    """Book ``cir_bps`` (bit/s) or raise ``PortFull``.

    Callers hold the locks of all ports that they book, taken in id order, so that none deadlock.
    """
    try:
        with transaction.atomic():
            BandwidthBooking.objects.create(port=port, holder=holder, side=side, cir_bps=cir_bps)
            Port.objects.filter(pk=port.pk).update(booked_bps=F("booked_bps") + cir_bps)
    except IntegrityError as error:
        if "port_bandwidth_is_never_overbooked" not in str(error):
            raise
        port.refresh_from_db()
        raise PortFull(
            field=f"{side}_end.port", port=str(port), requested_bps=cir_bps, free_bps=port.free_bps
        ) from error


def bandwidth_release(*, holder: UUID) -> None:
    """Give back what a VLL booked; running it twice gives back once."""
    for booking in BandwidthBooking.objects.filter(holder=holder).order_by("port_id", "side"):
        gone, _ = BandwidthBooking.objects.filter(pk=booking.pk).delete()
        if gone:
            Port.objects.filter(pk=booking.port_id).update(booked_bps=F("booked_bps") - booking.cir_bps)
