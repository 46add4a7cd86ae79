"""Short ways to read the leases of an owner."""

from uuid import UUID

from portal.allocation.models import (
    BandwidthBooking,
    CoreBooking,
    GreKeyLease,
    GrePairLease,
    PortVlanLease,
    RouterLoad,
    VniLease,
)
from portal.inventory.models import Port


def vlans(owner: UUID) -> list[tuple[str, str, int]]:
    """Return (side, port, outer VLAN) of each VLAN lease."""
    leases = PortVlanLease.objects.filter(owner=owner).select_related("port__router").order_by("side", "pk")
    return [(lease.side, str(lease.port), (lease.keys.lower >> 12) & 0xFFF) for lease in leases]


def booked(owner: UUID) -> list[tuple[str, str, int]]:
    """Return (side, port, bit/s) of each booking."""
    rows = BandwidthBooking.objects.filter(owner=owner).select_related("port__router").order_by("side", "pk")
    return [(row.side, str(row.port), row.cir_bps) for row in rows]


def loads(owner: UUID) -> list[tuple[str, str, int]]:
    """Return (side, router, load) of the load that is booked on cores."""
    rows = CoreBooking.objects.filter(owner=owner).select_related("router").order_by("side")
    return [(row.side, row.router.name, row.load) for row in rows]


def sums_are_right() -> bool:
    """Return whether the sum of each port and router equals the sum of its bookings."""
    bookings, cores = BandwidthBooking.objects.all(), CoreBooking.objects.all()
    return all(
        port.booked_bps == sum(row.cir_bps for row in bookings if row.port_id == port.pk)
        for port in Port.objects.all()
    ) and all(
        total.booked == sum(row.load for row in cores if row.router_id == total.pk)
        for total in RouterLoad.objects.all()
    )


def owners() -> set[UUID]:
    """Return all owners of leases that are not in cool-down."""
    return (
        set(PortVlanLease.objects.values_list("owner", flat=True))
        | set(BandwidthBooking.objects.values_list("owner", flat=True))
        | set(CoreBooking.objects.values_list("owner", flat=True))
        | set(VniLease.objects.filter(released_at=None).values_list("owner", flat=True))
        | set(GreKeyLease.objects.filter(released_at=None).values_list("owner", flat=True))
        | set(GrePairLease.objects.filter(released_at=None).values_list("owner", flat=True))
    )
