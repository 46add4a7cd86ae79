"""Losses of backbone interfaces in the last ten minutes, and the free buffers of routers.

The metrics are ratios, because agents report differences and not totals (ADR 1). VPP's totals are in the
agents' own /metrics.
"""

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.telemetry.router_losses import recent_buffers, recent_losses


def families(now: datetime) -> Iterator[Metric]:
    lost = GaugeMetricFamily(
        "longline_backbone_interface_loss_ratio",
        "Part of the frames that a link's interface lost in the last 10 minutes, from 0 to 1.",
        labels=["router", "interface"],
    )
    for each in recent_losses(now):
        lost.add_metric([each.router, each.interface], each.ratio)
    yield lost
    buffers = GaugeMetricFamily(
        "longline_router_free_buffers_ratio",
        "The smallest free part of VPP's buffers in the last 10 minutes, from 0 to 1.",
        labels=["router"],
    )
    for router in recent_buffers(now):
        buffers.add_metric([router.router], router.ratio)
    yield buffers
