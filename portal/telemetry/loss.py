"""Passive frame loss: frames that went in at one end against those that came out at the other.

Only 5 minutes (hours, days, where no finer are stored) that were counted without a gap at both ends are
compared. The agents' clocks and the way through the network move a few frames across the borders of a
bucket: over many buckets they cancel out; what then still came out too much is no loss.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.telemetry.buckets import buckets_of, starts_of
from portal.telemetry.queries import RangeEmpty, expected_of
from portal.telemetry.series import Bucket
from portal.telemetry.service_time import ServiceTime, service_time
from portal.telemetry.tables import FIVE_MINUTES, HOURS, finest_kept
from portal.telemetry.units import Unit
from portal.vll.models import Vll


@dataclass(slots=True)
class Direction:
    """Frames of one direction."""

    sent: float = 0.0
    delivered: float = 0.0

    def as_document(self) -> dict[str, float | int | None]:
        lost = max(0.0, self.sent - self.delivered)
        return {
            "sent": round(self.sent),
            "delivered": round(self.delivered),
            "loss_ratio": lost / self.sent if self.sent else None,
        }


def frame_loss(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """The answer of ``GET /vlls/<id>/loss``, over the buckets that lie whole in the range.

    ``compared``: buckets that count; ``missing``: buckets of the range that cannot be compared.
    ``loss_ratio`` from 0 to 1, None when no frame was sent. Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    step_s = finest_kept(since, now=now).step_s or FIVE_MINUTES.step_s
    counted, simulated = buckets_of(vll, since, until, step_s, Unit.PACKETS)
    return _compared(service_time(vll), counted, since, until, step_s, now) | {"simulated": simulated}


def frame_loss_by_month(
    *, vll: Vll, months: list[datetime], until: datetime, now: datetime
) -> list[dict[str, Any]]:
    """As ``frame_loss`` for each of ``months`` (their first moments, oldest first), by hours, in one read."""
    step_s = max(HOURS.step_s, finest_kept(months[0], now=now).step_s)
    counted, simulated = buckets_of(vll, months[0], until, step_s, Unit.PACKETS)
    ends, served = [*months[1:], until], service_time(vll)
    return [
        _compared(served, counted, begin, end, step_s, now) | {"simulated": simulated}
        for begin, end in zip(months, ends, strict=True)
    ]


def _compared(
    served: ServiceTime,
    counted: dict[str, dict[int, Bucket]],
    since: datetime,
    until: datetime,
    step_s: int,
    now: datetime,
) -> dict[str, Any]:
    whole = [
        start
        for start in starts_of(since, until, step_s)
        if start >= since.timestamp()
        and start + step_s <= until.timestamp()
        and all(_is_whole(counted[side].get(start), step_s) for side in ("a", "z"))
    ]
    a_to_z, z_to_a = Direction(), Direction()
    for start in whole:
        a, z = counted["a"][start], counted["z"][start]
        a_to_z.sent += a.into
        a_to_z.delivered += z.out
        z_to_a.sent += z.into
        z_to_a.delivered += a.out
    expected = set(expected_of(served, since, until, step_s, now))
    return {
        "step_s": step_s,
        "compared": len(whole),
        "missing": len(expected.difference(whole)),
        "a_to_z": a_to_z.as_document(),
        "z_to_a": z_to_a.as_document(),
    }


def _is_whole(bucket: Bucket | None, step_s: int) -> bool:
    return bucket is not None and bucket.covered_s >= step_s
