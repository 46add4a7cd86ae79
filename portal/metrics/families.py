"""The families of metrics of the whole installation: lines, routers, and the portal's own work.

Each function yields families for one scrape.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import redis
from cryptography import x509
from django.conf import settings
from django.db.models import Count, Exists, F, Max, Min, Model, OuterRef, Q, QuerySet
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from portal.allocation.models import PortVlanLease
from portal.allocation.pool_usage import pool_counts
from portal.core.background_work import queue_names
from portal.core.db.statements import rows_of
from portal.core.network.path_bfd import PathState
from portal.core.redis_servers import broker_client, in_short
from portal.inventory.models import FRESH, ObservedPath, Router, RouterSilence
from portal.notifications.models import Delivery, Mail, Webhook
from portal.telemetry.router_losses import recent_buffers, recent_losses
from portal.vll.models import Order, TunnelPath, Vll
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderAction, OrderState

log = logging.getLogger(__name__)

# The upper bounds of the histogram's buckets, in seconds. The target for the 95th percentile is 2 s. An order
# that takes longer than 110 s causes an alarm.
BOUNDS_S = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0]
# The duration begins with the approval if there was one. The time until a person approves is not counted.
_ENDED = """
SELECT action, state, width_bucket(seconds, %(bounds)s::float8[]), count(*), sum(seconds)
FROM (
    SELECT action, state, extract(epoch FROM state_at - coalesce(approved_at, ordered_at))::float8 AS seconds
    FROM vll_order WHERE state = ANY(%(terminal)s)
) AS ended
GROUP BY 1, 2, 3
"""
# The maximum number of routers that have separate time series. The counts include all routers.
LISTED = 1000
_NAMES_VALID_UNTIL = Max("certificates__expires_at", filter=Q(certificates__revoked_at__isnull=True))
_RECENT = timedelta(days=1)
_CHANNELS: tuple[tuple[str, type[Model]], ...] = (("webhook", Delivery), ("mail", Mail))
_PATIENCE_S = 1.0
# In this hash, kombu keeps the messages that workers have received and not yet acknowledged.
_TAKEN = "unacked"


def _gauges(
    name: str, about: str, labels: Sequence[str], rows: Iterable[Sequence[Any]] = ()
) -> GaugeMetricFamily:
    """Return a family of gauges. Each of ``rows`` has the values of the labels, and the gauge's value."""
    family = GaugeMetricFamily(f"longline_{name}", about, labels=labels)
    for *values, value in rows:
        family.add_metric(values, value)
    return family


def line_families(now: datetime) -> Iterator[Metric]:
    counted = (
        Vll.objects.exclude(lifecycle__in=sorted(TERMINAL_LIFECYCLES))
        .values_list("lifecycle", "oper_status", "in_sync")
        .annotate(lines=Count("pk"))
        .order_by()
    )
    yield _gauges(
        "vlls",
        "Lines that are not gone for good; in_sync: whether the routers have the wanted state.",
        ["lifecycle", "oper_status", "in_sync"],
        [(lifecycle, status, str(in_sync).lower(), number) for lifecycle, status, in_sync, number in counted],
    )


def order_families(now: datetime) -> Iterator[Metric]:
    yield from _open()
    yield from _ended()


def _open() -> Iterator[Metric]:
    overdue = 0
    by_state = dict.fromkeys((state for state in OrderState.values if state not in TERMINAL_ORDER_STATES), 0)
    counted = (
        Order.objects.exclude(state__in=sorted(TERMINAL_ORDER_STATES))
        .values_list("state")
        .annotate(orders=Count("pk"), overdue=Count("pk", filter=Q(alarmed_at__isnull=False)))
        .order_by()
    )
    for state, number, late in counted:
        by_state[state] = number
        overdue += late
    yield _gauges("orders_open", "Orders that have not ended, by state.", ["state"], by_state.items())
    yield GaugeMetricFamily(
        "longline_orders_overdue", "Overdue open orders. The NOC has been notified of them.", overdue
    )


def _ended() -> Iterator[Metric]:
    rows = rows_of(_ENDED, {"bounds": BOUNDS_S, "terminal": sorted(TERMINAL_ORDER_STATES)})
    ended = CounterMetricFamily(
        "longline_orders_ended", "Orders that have ended, by their final state.", labels=["action", "state"]
    )
    totals: dict[tuple[str, str], int] = defaultdict(int)
    for action, state, _, number, _seconds in rows:
        totals[action, state] += number
    for labels, number in sorted(totals.items()):
        ended.add_metric(list(labels), number)
    yield ended
    yield _durations(
        [(action, bucket, n, s) for action, state, bucket, n, s in rows if state == OrderState.COMPLETED]
    )


def _durations(rows: list[tuple[str, int, int, float]]) -> Metric:
    durations = HistogramMetricFamily(
        "longline_order_duration_seconds",
        "Time from the acceptance of an order, or from its approval, to its completion.",
        labels=["action"],
    )
    for action in OrderAction.values:
        own = {bucket: (number, seconds) for of, bucket, number, seconds in rows if of == action}
        below, buckets = 0, []
        for bucket, bound in enumerate([*map(str, BOUNDS_S), "+Inf"]):
            below += own.get(bucket, (0, 0.0))[0]
            buckets.append((bound, below))
        durations.add_metric([action], buckets, sum(seconds for _, seconds in own.values()))
    return durations


def lease_families(now: datetime) -> Iterator[Metric]:
    counts = pool_counts()
    pools = (("vni", counts.vnis), ("gre_key", counts.gre_keys), ("gre_pair", counts.gre_pairs))
    states = ("leased", "resting", "quarantined")
    yield _gauges(
        "leases",
        "Leases: leased, cooling down, or quarantined until a router confirms the removal.",
        ["pool", "state"],
        [
            *((pool, state, getattr(of_pool, state)) for pool, of_pool in pools for state in states),
            # VLAN leases have neither a cool-down nor a quarantine.
            ("port_vlan", "leased", PortVlanLease.objects.count()),
        ],
    )
    yield GaugeMetricFamily("longline_vnis_free", "VNIs that can be leased now.", counts.vni_free)


def router_families(now: datetime) -> Iterator[Metric]:
    with_agent = Router.objects.exclude(agent_url="")
    yield _gauges(
        "routers",
        "Routers with an agent: reporting, silent or never_reported; and routers in other states.",
        ["state"],
        with_agent.aggregate(**_states(now)).items(),
    )
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
    rows = with_agent.annotate(valid_until=_NAMES_VALID_UNTIL).order_by("name")
    for name, reported_at, is_connected, is_hung, failed, valid_until, offset_ms in rows.values_list(
        "name",
        "observed__reported_at",
        "observed__vpp_connected",
        "observed__vpp_hangs",
        "convergence__failures",
        "valid_until",
        "agent_clock__offset_ms",
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


def _of_each(name: str, about: str) -> GaugeMetricFamily:
    return _gauges(f"router_{name}", about, ["router"])


def path_families(now: datetime) -> Iterator[Metric]:
    counted = ObservedPath.objects.values_list("state").annotate(paths=Count("pk")).order_by()
    of_state = dict.fromkeys(PathState, 0) | dict(counted)
    about = "Paths that routers watch with BFD, counted at both ends."
    yield _gauges("watched_paths", about, ["state"], of_state.items())
    probed = TunnelPath.objects.filter(in_use=True).exclude(probe_transport="")
    found = probed.aggregate(paths=Count("pk"), holes=Count("black_hole_since"))
    about = "Paths of lines that are probed with test frames."
    yield GaugeMetricFamily("longline_probed_paths", about, value=found["paths"])
    about = "Paths that lose large packets but not small ones."
    yield GaugeMetricFamily("longline_mtu_black_holes", about, value=found["holes"])


def loss_families(now: datetime) -> Iterator[Metric]:
    yield _gauges(
        "backbone_interface_loss_ratio",
        "Part of the frames that a link's interface lost in the last 10 minutes, from 0 to 1.",
        ["router", "interface"],
        [(each.router, each.interface, each.ratio) for each in recent_losses(now)],
    )
    yield _gauges(
        "router_free_buffers_ratio",
        "The smallest free part of VPP's buffers in the last 10 minutes, from 0 to 1.",
        ["router"],
        [(each.router, each.ratio) for each in recent_buffers(now)],
    )


def age_s(oldest: datetime | None, *, now: datetime) -> float:
    """Return the age of the oldest row in seconds. It is 0 if there is no row.

    It is also 0 if the row's time is in the future, because the clock of the machine that wrote it is ahead.
    """
    return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())


def notification_families(now: datetime) -> Iterator[Metric]:
    pending: list[tuple[str, int]] = []
    oldest: list[tuple[str, float]] = []
    failed: list[tuple[str, int]] = []
    for name, model in _CHANNELS:
        rows = model._default_manager
        waiting = rows.filter(next_try_at__isnull=False).aggregate(
            number=Count("pk"), since=Min("created_at")
        )
        pending.append((name, waiting["number"]))
        oldest.append((name, age_s(waiting["since"], now=now)))
        failed.append((name, rows.filter(created_at__gte=now - _RECENT, state="failed").count()))
    about = "Webhook messages and mails that wait for their first or next attempt."
    yield _gauges("deliveries_pending", about, ["channel"], pending)
    about = "Age of the oldest waiting webhook message or mail; 0 if none waits."
    yield _gauges("deliveries_oldest_age_seconds", about, ["channel"], oldest)
    about = "Webhook messages and mails of the last day that failed finally."
    yield _gauges("deliveries_failed_lately", about, ["channel"], failed)
    webhooks = Webhook.objects.aggregate(
        enabled=Count("pk", filter=Q(disabled_at__isnull=True)),
        disabled=Count("pk", filter=Q(disabled_at__isnull=False)),
    )
    yield _gauges("webhooks", "Webhooks: enabled or disabled.", ["state"], webhooks.items())


def queue_families() -> Iterator[Metric]:
    names = queue_names()
    try:
        *lengths, taken = _lengths(names)
    except redis.RedisError as error:
        log.warning("metrics: Redis does not answer: %s", in_short(error))
        yield _up(False)
        return
    yield _up(True)
    waiting = zip(names, lengths, strict=True)
    yield _gauges("queue_length", "Messages that wait for a worker.", ["queue"], waiting)
    yield GaugeMetricFamily(
        "longline_messages_taken", "Messages that workers of all queues are processing.", taken
    )


def _lengths(names: list[str]) -> list[int]:
    with broker_client(patience_s=_PATIENCE_S) as broker, broker.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.llen(name)
        pipe.hlen(_TAKEN)
        return [int(length) for length in pipe.execute()]


def _up(answers: bool) -> Metric:
    return GaugeMetricFamily("longline_broker_up", "1 if Redis answered.", answers)


def certificate_families() -> Iterator[Metric]:
    valid: list[tuple[str, float]] = []
    for name in ("ca", "portal"):
        path = settings.LONGLINE_PKI_DIR / f"{name}.pem"
        try:
            # During a rollover, the file contains two CAs. The earlier expiry counts.
            found = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("metrics: %s cannot be read: %s", path, error)
        else:
            valid.append((name, min(each.not_valid_after_utc for each in found).timestamp()))
    about = "End of the CA's certificate (of two, the earlier end) and of the portal's for agents."
    yield _gauges("certificate_expiry_timestamp_seconds", about, ["certificate"], valid)
