"""The usage of leased resources: tunnel identifiers, bandwidth, cores of routers, and the VLANs of a port."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q

from portal.allocation.cpu_core_bookings import CoreUse, core_use_of
from portal.allocation.models import GreKeyLease, GrePairLease, PortVlanLease, RouterLoad, VniLease
from portal.allocation.tunnel_leases import FIRST_VNI, LAST_VNI
from portal.allocation.vlan_leases import WHOLE_PORT, foreign_frames
from portal.core.db.statements import rows_of
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN
from portal.inventory.interfaces import booked_ports
from portal.inventory.models import Port, Router

FULLEST = 10

# Ranges may overlap. Each value is counted once.
_RESERVED = """
SELECT coalesce(sum(upper(span) - lower(span)), 0)::bigint
FROM unnest((SELECT range_agg(int4range(first, last, '[]')) FROM allocation_reservedvnirange)) AS span
"""


@dataclass(frozen=True, slots=True)
class Leases:
    """Counts of leases.

    ``resting``: leases in cool-down, which become free automatically. ``quarantined``: leases that wait for a
    router's confirmation.
    """

    leased: int
    resting: int
    quarantined: int

    @property
    def taken(self) -> int:
        return self.leased + self.resting + self.quarantined


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The counts of the pools. ``vni_total`` counts all 24-bit values except 0."""

    vni_total: int
    vni_reserved: int
    vnis: Leases
    gre_keys: Leases
    gre_pairs: Leases

    @property
    def vni_free(self) -> int:
        return max(0, self.vni_total - self.vni_reserved - self.vnis.taken)


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools, with the fullest ports and routers first.

    ``busiest_ports``: the ports with the most VLAN leases, each with the number ``leases``.
    """

    counts: PoolCounts
    fullest_ports: list[Port]
    busiest_ports: list[dict[str, Any]]
    fullest_routers: list[tuple[Router, CoreUse]]


def pool_counts() -> PoolCounts:
    """Return the counts, with four statements that read whole tables."""
    return PoolCounts(
        vni_total=LAST_VNI - FIRST_VNI + 1,
        vni_reserved=int(rows_of(_RESERVED)[0][0]),
        vnis=_leases(VniLease),
        gre_keys=_leases(GreKeyLease),
        gre_pairs=_leases(GrePairLease),
    )


def pools() -> Pools:
    """Return the pools, with a fixed number of statements. The counts read whole tables."""
    return Pools(
        counts=pool_counts(),
        fullest_ports=_fullest_ports(),
        busiest_ports=_busiest_ports(),
        fullest_routers=_fullest_routers(),
    )


def _leases(model: type[VniLease] | type[GreKeyLease] | type[GrePairLease]) -> Leases:
    released = Q(released_at__isnull=False)
    counts = model.objects.aggregate(
        leased=Count("pk", filter=~released),
        resting=Count("pk", filter=released & Q(free_at__isnull=False)),
        quarantined=Count("pk", filter=released & Q(free_at__isnull=True)),
    )
    return Leases(**counts)


def _fullest_ports() -> list[Port]:
    booked = booked_ports(Port.objects.select_related("router", "customer"))
    return list(booked.order_by(F("booked_part").desc(nulls_first=True), "pk")[:FULLEST])


def _busiest_ports() -> list[dict[str, Any]]:
    counted = PortVlanLease.objects.values("port").annotate(leases=Count("pk")).order_by("-leases", "port")
    first = list(counted[:FULLEST])
    ports = Port.objects.select_related("router", "customer").in_bulk([row["port"] for row in first])
    return [{"port": ports[row["port"]], "leases": row["leases"]} for row in first]


def _fullest_routers() -> list[tuple[Router, CoreUse]]:
    """Return the routers with the highest booked share of cores.

    SQL cannot sort by this share, because it depends on each router's CPU. The function therefore reads the
    100 routers with the highest booked load, and compares their shares.
    """
    loads = RouterLoad.objects.filter(booked__gt=0).order_by("-booked", "router").values("router")
    routers = list(Router.objects.filter(pk__in=loads[: 10 * FULLEST]).select_related("observed"))
    use = core_use_of(routers)
    fullest = sorted(routers, key=lambda router: (-use[router.pk].part, router.name))
    return [(router, use[router.pk]) for router in fullest[:FULLEST]]


@dataclass(frozen=True, slots=True)
class VlanRange:
    """The VLANs from ``first`` to ``last``, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}\N{EN DASH}{self.last}"

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class VlanUsage:
    """All VLANs, each in one of three lists.

    ``shared``: lines or foreign interfaces use some inner VLANs of the outer VLAN, and other inner VLANs are
    free. ``whole_port``: one line takes all frames, so nothing is free.
    """

    used: tuple[VlanRange, ...]
    shared: tuple[VlanRange, ...]
    free: tuple[VlanRange, ...]
    whole_port: bool = False


_ALL = VlanRange(MIN_VLAN, MAX_VLAN)


def vlan_usage(port: Port) -> VlanUsage:
    """Return the usage by outer VLAN, for both TPIDs together.

    VLANs that are reserved for an order, or that foreign interfaces take, count as used.
    """
    single: set[int] = set()
    double: set[int] = set()
    leases = PortVlanLease.objects.filter(port=port).values_list("keys__startswith", "keys__endswith")
    for low, high in leases:
        if (low, high) == WHOLE_PORT:
            return VlanUsage(used=(_ALL,), shared=(), free=(), whole_port=True)
        # The key of a frame with one tag has no inner VLAN (portal.allocation.vlan_leases).
        (double if low & 0xFFF else single).add((low >> 12) & 0xFFF)
    for frames in foreign_frames([port])[port.pk].values():
        if frames.most_tags == 0:
            continue
        if frames.outer is None:
            return VlanUsage(used=(_ALL,), shared=(), free=())
        (single if frames.inner is None else double).add(frames.outer)
    shared = double - single
    free = (vlan for vlan in range(MIN_VLAN, MAX_VLAN + 1) if vlan not in single and vlan not in shared)
    return VlanUsage(used=as_ranges(single), shared=as_ranges(shared), free=as_ranges(free))


def as_ranges(vlans: Iterable[int]) -> tuple[VlanRange, ...]:
    """Return the same VLANs as the fewest possible ranges, in order."""
    ranges: list[VlanRange] = []
    for vlan in sorted(vlans):
        if ranges and ranges[-1].last == vlan - 1:
            ranges[-1] = VlanRange(ranges[-1].first, vlan)
        else:
            ranges.append(VlanRange(vlan, vlan))
    return tuple(ranges)
