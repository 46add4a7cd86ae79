"""The VLANs of a port as a customer counts them: used, shared and free."""

from collections.abc import Iterable
from dataclasses import dataclass

from portal.allocation.models import PortVlanLease
from portal.allocation.vlan_leases import WHOLE_PORT, foreign_frames
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN
from portal.inventory.models import Port


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
