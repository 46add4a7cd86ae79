"""The traffic of all lines of a customer together: in the newest 5-minute bucket, and in the last frozen
month.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from django.db import connection

from portal.accounts.models import Customer
from portal.telemetry.models import FrozenMonth
from portal.telemetry.port_throughput import ROLLED_UP_AFTER
from portal.telemetry.rollup_tables import FIVE_MINUTES

_NOW = """
SELECT sum(coalesce(a_in_bytes * 8000 / nullif(a_covered_ms, 0), 0)
           + coalesce(z_in_bytes * 8000 / nullif(z_covered_ms, 0), 0)),
       bool_or(simulated)
FROM vll_vll AS line
JOIN telemetry_five_minutes AS counted ON counted.vll_id = line.id AND counted.start_at = %(start)s
WHERE line.customer_id = %(customer)s
"""
# For each end, the last correction of the month. For each line, the larger value of its two ends.
_MONTH = """
SELECT sum(most) FROM (
    SELECT max(max_bps) AS most FROM (
        SELECT DISTINCT ON (frozen.vll_id, side) frozen.vll_id, max_bps
        FROM vll_vll AS line JOIN telemetry_monthlypercentile AS frozen ON frozen.vll_id = line.id
        WHERE line.customer_id = %(customer)s AND month = %(month)s
        ORDER BY frozen.vll_id, side, correction DESC
    ) AS ends
    GROUP BY vll_id
) AS lines
"""


@dataclass(frozen=True, slots=True)
class CustomerTraffic:
    """The traffic of all lines of a customer, in bit/s.

    ``now_bps``: the traffic that entered at both ends of all lines in the 5-minute bucket that begins at
    ``since``; None if the bucket has no counts. ``p95_bps``: the sum of the lines' 95th percentiles of
    ``month``, the last frozen month; None if the month has no values for these lines.
    """

    now_bps: int | None
    since: datetime
    simulated: bool
    p95_bps: int | None
    month: date | None


def customer_traffic(customer: Customer, *, now: datetime) -> CustomerTraffic:
    """Return the traffic of a customer's lines. It takes at most three statements."""
    step_s = FIVE_MINUTES.step_s
    over = int((now - ROLLED_UP_AFTER).timestamp() // step_s) * step_s
    since = datetime.fromtimestamp(over - step_s, tz=UTC)
    newest = FrozenMonth.objects.order_by("-month").first()
    with connection.cursor() as cursor:
        cursor.execute(_NOW, {"start": since, "customer": customer.pk})
        now_bps, simulated = cursor.fetchone()
        p95_bps = None
        if newest is not None:
            cursor.execute(_MONTH, {"month": newest.month, "customer": customer.pk})
            (p95_bps,) = cursor.fetchone()
    return CustomerTraffic(
        None if now_bps is None else round(now_bps),
        since,
        bool(simulated),
        None if p95_bps is None else round(p95_bps),
        None if newest is None else newest.month,
    )
