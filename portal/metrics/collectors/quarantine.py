"""The number of quarantined samples that wait for a decision, by router."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Sum
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.telemetry.models import Quarantine

# The maximum number of routers. If more routers have wrong clocks, a longer list would not help.
LISTED = 1000


def families(now: datetime) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "longline_quarantined_samples",
        "Samples of line ends with a wrong time or count that wait for the NOC's decision.",
        labels=["router"],
    )
    undecided = Quarantine.objects.filter(state=Quarantine.State.UNDECIDED)
    by_router = undecided.values_list("router__name").annotate(Sum("samples")).order_by("router__name")
    for router, samples in by_router[:LISTED]:
        waiting.add_metric([router], samples)
    yield waiting
