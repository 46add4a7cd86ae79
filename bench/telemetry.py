"""The rate of stored samples, the response time of a year's graph, and a VLL's disk space per year."""

import json
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized

VLLS, REPORTS, GRAPHS = sized(30, smallest=2), sized(20, smallest=2), sized(100, smallest=2)
ENDS_A_REPORT = sized(30, smallest=4)
SAMPLES_A_REPORT = 30
_FILL = """
INSERT INTO {table} SELECT start_at, vll, n, n, n, n, n, n, n, n, {ms}, {ms}, false
FROM (SELECT start_at, vll, random() * 1e9 AS n
      FROM generate_series(%(since)s::timestamptz, %(until)s::timestamptz, %(step)s::interval) AS start_at,
           unnest(%(vlls)s::uuid[]) AS vll) AS counted
"""


def measure() -> Iterator[Figure]:
    with migrated():
        router, vlls = _network()
        yield _rows_per_s(router, vlls)
        yield from _year(vlls)


def _network() -> tuple[Any, list[Any]]:
    from django.db import transaction

    from portal.accounts.models import Customer
    from portal.core.clock import now
    from portal.inventory.models import Port, Router, Site
    from portal.vll.models import Vll, VllEnd

    at = now() - timedelta(days=400)
    router = Router.objects.create(name="rhino", site=Site.objects.create(name="Bern"))
    customer = Customer.objects.create(name="Alpine Dairy", created_at=at)
    port = Port.objects.create(
        router=router, interface="eth0", customer=customer, speed_bps=10**10, bookable_bps=10**10
    )
    with transaction.atomic():
        vlls = Vll.objects.bulk_create(
            Vll(
                customer=customer,
                created_at=at,
                svc_mtu=1500,
                cir_bps=10**6,
                requested_transport="l2xc",
                encapsulation="l2xc",
                frame=1514,
            )
            for _ in range(VLLS)
        )
        VllEnd.objects.bulk_create(
            VllEnd(vll=vll, side=side, port=port, tagging="dot1q", outer_vlan=2 * number + offset)
            for number, vll in enumerate(vlls, start=1)
            for offset, side in enumerate("az")
        )
    return router, vlls


def _rows_per_s(router: Any, vlls: list[Any]) -> Figure:
    from portal.core.clock import now
    from portal.core.strict_json import reader
    from portal.telemetry.counter_ingest import counters_store
    from portal.telemetry.partitioned_tables import partitions_keep
    from portal.telemetry.reported_counters import CounterReport
    from portal.telemetry.rollups import roll_up

    partitions_keep(now=now())
    bodies = [json.dumps(_report(vlls, number)).encode() for number in range(REPORTS)]
    read = reader(CounterReport)
    began = time.perf_counter()
    stored = 0
    for body in bodies:
        report = read(body)
        stored += counters_store(router=router, report=report, now=now()).accepted
    took = time.perf_counter() - began
    began = time.perf_counter()
    rolled = roll_up(now=now() + timedelta(hours=1))
    rolling = time.perf_counter() - began
    assert stored == REPORTS * SAMPLES_A_REPORT * ENDS_A_REPORT, f"{stored} rows were accepted"
    assert rolled > 0, "nothing was rolled up"
    note = (
        f"from the JSON body to the commit, without TLS; then {rolled} buckets rolled up in {rolling:.2f} s"
    )
    return Figure("telemetry_rows_per_s", stored / took, "1/s", note)


def _report(vlls: list[Any], number: int) -> dict[str, Any]:
    end_ms = int(time.time() * 1000) - number * SAMPLES_A_REPORT * 10_000
    ends = [(vll, side) for vll in vlls for side in "az"][:ENDS_A_REPORT]
    counts = {"in_bytes": 12_500_000, "in_packets": 10_000, "out_bytes": 1, "out_packets": 1}
    return {
        "boot_id": str(uuid4()),
        "sent_ms": end_ms,
        "simulated": False,
        "dropped": 0,
        "samples": [
            {
                "seq": seq,
                "from_ms": end_ms - (seq + 1) * 10_000,
                "to_ms": end_ms - seq * 10_000,
                "ends": [{"vll": str(vll.pk), "end": side, "policer": None, **counts} for vll, side in ends],
            }
            for seq in range(SAMPLES_A_REPORT)
        ],
    }


def _year(vlls: list[Any]) -> Iterator[Figure]:
    from django.db import connection

    from portal.core.clock import now
    from portal.telemetry.partitioned_tables import DAYS, FIVE_MINUTES, HOURS, partitions_ensure

    midnight = datetime.combine(now().date(), datetime.min.time(), UTC)
    days = {FIVE_MINUTES: 40, HOURS: 365, DAYS: 365}
    size = 0
    with connection.cursor() as cursor:
        for table, kept in days.items():
            since = midnight - timedelta(days=kept)
            partitions_ensure((since.date() + timedelta(days=day) for day in range(kept + 1)), table)
            cursor.execute(f"DELETE FROM {table.name}")  # noqa: S608 - a constant
            cursor.execute(
                _FILL.format(table=table.name, ms=table.step_s * 1000),
                {
                    "since": since,
                    "until": midnight - timedelta(seconds=table.step_s),
                    "step": f"{table.step_s} seconds",
                    "vlls": [vll.pk for vll in vlls],
                },
            )
            cursor.execute(
                "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits"
                " WHERE inhparent = %s::regclass",
                [table.name],
            )
            size += int(cursor.fetchone()[0])
        cursor.execute("ANALYZE")
    request = _requester()
    took = {
        step_s: [request(random.choice(vlls), step_s) for _ in range(GRAPHS)] for step_s in (86_400, 14_400)
    }
    finer = percentile(took[14_400], 95)
    note = f"GET with a token, {VLLS} VLLs, by day as the page asks; in steps of 4 hours {finer:.0f} ms"
    yield Figure("year_graph_p95_ms", percentile(took[86_400], 95), "ms", note)
    yield Figure(
        "telemetry_mb_per_vll_year",
        size / len(vlls) / 1e6,
        "MB",
        "rollups of both ends: 40 days by 5 minutes, a year by hour and day; samples come on top",
    )


def _requester() -> Callable[[Any, int], float]:
    """Return a function that requests a year's graph of a VLL from the API. Its arguments are the VLL and the
    step (s).

    The function returns the milliseconds of the response. Server and client are in this process.
    """
    from django.conf import settings
    from django.test import Client

    from portal.accounts.models import User
    from portal.accounts.tokens import token_create
    from portal.core.clock import now

    settings.LONGLINE_API_READS_PER_MIN = 0
    nora = User.objects.create_user("nora", noc_role="noc")
    _, token = token_create(user=nora, name="bench", now=now())
    api = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})

    def request_graph(vll: Any, step_s: int) -> float:
        until = int(now().timestamp())
        since = until - int(timedelta(days=365).total_seconds())
        began = time.perf_counter()
        response = api.get(f"/api/v1/vlls/{vll.pk}/throughput?from={since}&to={until}&step={step_s}")
        took = time.perf_counter() - began
        assert response.status_code == 200, response.content
        drawn = [point for point in response.json()["a_end"] if point[1] is not None]
        assert len(drawn) > 360 * 86_400 / step_s, f"only {len(drawn)} points of {step_s} s"
        return took * 1000

    return request_graph
