"""Frames of a line that VPP dropped on the routers of its two ends, and not on the path between them."""

from dataclasses import dataclass
from datetime import datetime

from portal.telemetry.bucket_queries import SIDES, rolled_up, starts_of
from portal.telemetry.rollup_tables import FIVE_MINUTES, ROLLUPS, finest_kept
from portal.vll.models import Vll

_PER_END = ("in_drops", "violate_packets", "out_drops")
_COLUMNS = (*(f"{side}_{column}" for side in SIDES for column in _PER_END), "simulated")


@dataclass(frozen=True, slots=True)
class EndDrops:
    """The dropped frames of an end; None if there are no counts of them.

    ``sent_in``: frames from the customer that VPP dropped, without the frames that the policer dropped.
    ``for_customer``: frames for the customer that VPP dropped instead of sending them out of the port.
    """

    sent_in: int | None
    for_customer: int | None

    def as_document(self) -> dict[str, int | None]:
        return {"dropped_in": self.sent_in, "dropped_out": self.for_customer}

    @property
    def is_known(self) -> bool:
        return self.sent_in is not None or self.for_customer is not None

    @property
    def any(self) -> bool:
        return bool(self.sent_in or self.for_customer)


def end_drops(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, EndDrops]:
    """Return the drops by side, over all buckets that touch the range.

    The buckets are the finest ones that are stored for the range, but not shorter than 5 minutes. If an end
    has a policer, its incoming drops only include buckets with counts of the policer. In a bucket without
    these counts, the policer may have caused the drops.
    """
    finest = finest_kept(since, now=now)
    table = finest if finest in ROLLUPS else FIVE_MINUTES
    rows = rolled_up(vll, starts_of(since, until, table.step_s), table, _COLUMNS)
    width = len(_PER_END)
    found = {}
    for at, side in enumerate(SIDES):
        counted = [row[at * width : (at + 1) * width] for row in rows.values()]
        is_policed = any(violate is not None for _, violate, _ in counted)
        sent_in = [
            max(0.0, drops - (violate or 0.0))
            for drops, violate, _ in counted
            if drops is not None and not (is_policed and violate is None)
        ]
        for_customer = [drops for _, _, drops in counted if drops is not None]
        found[side] = EndDrops(
            round(sum(sent_in)) if sent_in else None, round(sum(for_customer)) if for_customer else None
        )
    return found
