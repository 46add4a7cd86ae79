"""The traffic of links now, by what the agents at their two sides counted last."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from portal.inventory.models import ObservedLoad


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """bit/s each way, None where no side tells; ``speed_bps``: the slower side's, None where not known."""

    a_to_z_bps: int | None
    z_to_a_bps: int | None
    speed_bps: int | None

    @property
    def most_bps(self) -> int:
        """The busier direction."""
        return max(self.a_to_z_bps or 0, self.z_to_a_bps or 0)

    def percent_of(self, bps: int | None) -> int | None:
        """What so much is of the link, rounded; None where one of them is not known."""
        return None if bps is None or self.speed_bps is None else round(100 * bps / self.speed_bps)

    @property
    def percent(self) -> int | None:
        """``part`` of 100, rounded."""
        return None if self.part is None else round(self.part * 100)

    @property
    def part(self) -> float | None:
        """The part of the link that the busier direction takes; None where the speed is not known."""
        return None if self.speed_bps is None else self.most_bps / self.speed_bps


def link_traffic(links: Iterable[int], *, since: datetime) -> dict[int, LinkTraffic]:
    """By link, of those of which a side was counted at ``since`` or later.

    Each way the sender counts: what the other side received may lack what the link lost. Where the sender's
    router has no agent, the receiver counts.
    """
    sides: dict[int, dict[str, ObservedLoad]] = {}
    for load in ObservedLoad.objects.filter(link__in=list(links), at__gte=since):
        sides.setdefault(load.link_id, {})[load.side] = load
    return {link: _traffic(seen.get("a"), seen.get("z")) for link, seen in sides.items()}


def _traffic(a: ObservedLoad | None, z: ObservedLoad | None) -> LinkTraffic:
    speeds = [load.speed_bps for load in (a, z) if load is not None and load.speed_bps is not None]
    return LinkTraffic(_sent(a, z), _sent(z, a), min(speeds, default=None))


def _sent(sender: ObservedLoad | None, receiver: ObservedLoad | None) -> int | None:
    if sender is not None:
        return sender.tx_bps
    return None if receiver is None else receiver.rx_bps
