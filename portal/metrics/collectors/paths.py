"""The number of paths between routers by the state that routers report, and the results of probes."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.core.network.path_bfd import PathState
from portal.inventory.models import ObservedPath
from portal.vll.models import TunnelPath


def families(now: datetime) -> Iterator[Metric]:
    counted = ObservedPath.objects.values_list("state").annotate(paths=Count("pk")).order_by()
    of_state = dict.fromkeys(PathState, 0) | dict(counted)
    paths = GaugeMetricFamily(
        "longline_watched_paths",
        "Paths that routers watch with BFD, counted at both ends.",
        labels=["state"],
    )
    for state, number in of_state.items():
        paths.add_metric([state], number)
    yield paths
    probed = TunnelPath.objects.filter(in_use=True).exclude(probe_transport="")
    found = probed.aggregate(paths=Count("pk"), holes=Count("black_hole_since"))
    about = "Paths of lines that are probed with test frames."
    yield GaugeMetricFamily("longline_probed_paths", about, value=found["paths"])
    about = "Paths that lose large packets but not small ones."
    yield GaugeMetricFamily("longline_mtu_black_holes", about, value=found["holes"])
