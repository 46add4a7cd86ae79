"""Figures of routers: reports, certificates, convergence, paths between routers, and losses."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.core.network.path_bfd import PathState
from portal.inventory.models import FRESH, ObservedPath, Router, RouterSilence
from portal.telemetry.router_losses import recent_buffers, recent_losses
from portal.vll.models import TunnelPath

# The maximum number of routers that have separate time series. The counts include all routers.
LISTED = 1000
_NAMES_VALID_UNTIL = Max("certificates__expires_at", filter=Q(certificates__revoked_at__isnull=True))


def router_families(now: datetime) -> Iterator[Metric]:
    with_agent = Router.objects.exclude(agent_url="")
    yield _by_state(with_agent.aggregate(**_states(now)))
    reported = _of_each(
        "last_report_timestamp_seconds", "Time at which the portal accepted the last report of the agent."
    )
    connected = _of_each("vpp_connected", "1 if the agent reports that it is connected to VPP.")
    hangs = _of_each("vpp_hangs", "1 if the agent reports that VPP no longer responds.")
    failures = _of_each("failures", "Failed requests to the agent since the last successful request.")
    valid = _of_each(
        "certificate_expiry_timestamp_seconds", "End of the router's certificate that is valid longest."
    )
    offset = _of_each(
        "clock_offset_seconds", "The portal's clock minus the router's clock at the last report of counters."
    )
    rows = with_agent.annotate(
        reported_at=F("observed__reported_at"),
        connected=F("observed__vpp_connected"),
        hung=F("observed__vpp_hangs"),
        failures=F("convergence__failures"),
        valid_until=_NAMES_VALID_UNTIL,
        offset_ms=F("agent_clock__offset_ms"),
    ).order_by("name")
    for name, reported_at, is_connected, is_hung, failed, valid_until, offset_ms in rows.values_list(
        "name", "reported_at", "connected", "hung", "failures", "valid_until", "offset_ms"
    )[:LISTED]:
        if reported_at is not None:
            reported.add_metric([name], reported_at.timestamp())
            connected.add_metric([name], is_connected)
            hangs.add_metric([name], is_hung)
        failures.add_metric([name], failed or 0)
        if valid_until is not None:
            valid.add_metric([name], valid_until.timestamp())
        if offset_ms is not None:
            offset.add_metric([name], offset_ms / 1000)
    yield from (reported, connected, hangs, failures, valid, offset)


def _states(now: datetime) -> dict[str, Count]:
    fresh = Q(observed__reported_at__gte=now - FRESH)
    return {
        "reporting": Count("pk", filter=fresh),
        "silent": Count("pk", filter=Q(observed__isnull=False) & ~fresh),
        "never_reported": Count("pk", filter=Q(observed__isnull=True)),
        "silent_down": Count("pk", filter=Exists(_silences().filter(counts_as_down=True))),
        "silent_forwarding": Count(
            "pk", filter=Exists(_silences().filter(counts_as_down=False, forwarded_at__isnull=False))
        ),
        "ahead": Count("pk", filter=Q(observed__generation_stored__gt=F("generation"))),
        "held": Count("pk", filter=Q(locked_since__isnull=False)),
        "frozen": Count("pk", filter=Q(frozen_since__isnull=False)),
        "in_maintenance": Count("pk", filter=Q(maintenance_since__isnull=False)),
    }


def _silences() -> QuerySet[RouterSilence]:
    return RouterSilence.objects.filter(router=OuterRef("pk"), until__isnull=True)


def _by_state(counts: dict[str, int]) -> Metric:
    routers = GaugeMetricFamily(
        "longline_routers",
        "Routers with an agent: reporting, silent or never_reported; and routers in other states.",
        labels=["state"],
    )
    for state, number in counts.items():
        routers.add_metric([state], number)
    return routers


def _of_each(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"longline_router_{name}", help_text, labels=["router"])


def path_families(now: datetime) -> Iterator[Metric]:
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


def loss_families(now: datetime) -> Iterator[Metric]:
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
