"""Paths that routers watch, by how each of them stands as its router sees it."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.core.path_watch import PathState
from portal.inventory.models import ObservedPath


def families(now: datetime) -> Iterator[Metric]:
    counted = ObservedPath.objects.values_list("state").annotate(paths=Count("pk")).order_by()
    of_state = dict.fromkeys(PathState, 0) | dict(counted)
    paths = GaugeMetricFamily(
        "longline_watched_paths",
        "Paths that routers watch by BFD, counted at each of their two ends.",
        labels=["state"],
    )
    for state, number in of_state.items():
        paths.add_metric([state], number)
    yield paths
