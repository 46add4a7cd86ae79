"""The present traffic of links, from the last counters of the agents at both sides."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from portal.inventory.models import ObservedLoad


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The traffic of a link in each direction (bit/s); None if neither side reports it.

    ``speed_bps``: the speed of the slower side; None if unknown.
    """

    a_to_z_bps: int | None
    z_to_a_bps: int | None
    speed_bps: int | None

    @property
    def most_bps(self) -> int:
        """Return the rate of the busier direction."""
        return max(self.a_to_z_bps or 0, self.z_to_a_bps or 0)

    def percent_of(self, bps: int | None) -> int | None:
        """Return ``bps`` as a rounded percentage of the link's speed; None if ``bps`` or the speed is
        unknown.
        """
        return None if bps is None or self.speed_bps is None else round(100 * bps / self.speed_bps)

    @property
    def percent(self) -> int | None:
        """Return ``part`` as a rounded percentage."""
        return None if self.part is None else round(self.part * 100)

    @property
    def part(self) -> float | None:
        """Return the fraction of the speed that the busier direction uses; None if the speed is unknown."""
        return None if self.speed_bps is None else self.most_bps / self.speed_bps


def link_traffic(links: Iterable[int], *, since: datetime) -> dict[int, LinkTraffic]:
    """Return the traffic of each link for which at least one side has counts from ``since`` or later.

    For each direction, the sender's count is used, because the receiver does not count frames that the link
    lost. If the sender's side has no counts, the receiver's count is used.
    """
    sides: dict[int, dict[str, ObservedLoad]] = {}
    for load in ObservedLoad.objects.filter(link__in=list(links), at__gte=since):
        sides.setdefault(load.link_id, {})[load.side] = load
    return {link: _traffic(counted.get("a"), counted.get("z")) for link, counted in sides.items()}


def _traffic(a: ObservedLoad | None, z: ObservedLoad | None) -> LinkTraffic:
    speeds = [load.speed_bps for load in (a, z) if load is not None and load.speed_bps is not None]
    return LinkTraffic(_sent(a, z), _sent(z, a), min(speeds, default=None))


def _sent(sender: ObservedLoad | None, receiver: ObservedLoad | None) -> int | None:
    if sender is not None:
        return sender.tx_bps
    return None if receiver is None else receiver.rx_bps
