"""The number of lines by lifecycle, op-status and whether they are in sync. Lines that have ended
are left out.
"""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES


def families(now: datetime) -> Iterator[Metric]:
    counted = (
        Vll.objects.exclude(lifecycle__in=sorted(TERMINAL_LIFECYCLES))
        .values_list("lifecycle", "oper_status", "in_sync")
        .annotate(lines=Count("pk"))
        .order_by()
    )
    lines = GaugeMetricFamily(
        "longline_vlls",
        "Lines that are not gone for good; in_sync: whether the routers have the wanted state.",
        labels=["lifecycle", "oper_status", "in_sync"],
    )
    for lifecycle, oper_status, in_sync, number in counted:
        lines.add_metric([lifecycle, oper_status, str(in_sync).lower()], number)
    yield lines
