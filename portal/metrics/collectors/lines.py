"""Figures of lines, orders and leases."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.models import Count, Q
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from portal.allocation.models import PortVlanLease
from portal.allocation.pool_usage import pool_counts
from portal.vll.models import Order, Vll
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderAction, OrderState


def line_families(now: datetime) -> Iterator[Metric]:
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


def order_families(now: datetime) -> Iterator[Metric]:
    yield from _open()
    yield from _ended()


def _open() -> Iterator[Metric]:
    orders = GaugeMetricFamily(
        "longline_orders_open", "Orders that have not ended, by state.", labels=["state"]
    )
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
    for state, number in by_state.items():
        orders.add_metric([state], number)
    yield orders
    yield GaugeMetricFamily(
        "longline_orders_overdue", "Overdue open orders. The NOC has been notified of them.", overdue
    )


def _ended() -> Iterator[Metric]:
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, {"bounds": BOUNDS_S, "terminal": sorted(TERMINAL_ORDER_STATES)})
        rows = cursor.fetchall()
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
    leases = GaugeMetricFamily(
        "longline_leases",
        "Leases: leased, cooling down, or quarantined until a router confirms the removal.",
        labels=["pool", "state"],
    )
    pools = (("vni", counts.vnis), ("gre_key", counts.gre_keys), ("gre_pair", counts.gre_pairs))
    for pool, of_pool in pools:
        leases.add_metric([pool, "leased"], of_pool.leased)
        leases.add_metric([pool, "resting"], of_pool.resting)
        leases.add_metric([pool, "quarantined"], of_pool.quarantined)
    # VLAN leases have neither a cool-down nor a quarantine.
    leases.add_metric(["port_vlan", "leased"], PortVlanLease.objects.count())
    yield leases
    yield GaugeMetricFamily("longline_vnis_free", "VNIs that can be leased now.", counts.vni_free)
