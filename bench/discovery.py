"""The time from two agents' reports of found lines until the list shows these lines with both ends."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.database import migrated
from bench.figures import Figure
from bench.sizes import sized

LINES, ROUNDS = sized(1_000, smallest=60), sized(5, smallest=1)
_ROUTERS = """
INSERT INTO inventory_site (id, name) VALUES (1, 'site');
INSERT INTO inventory_router (id, name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT n, 'router-' || n, 1, inet '10.255.0.0' + n, '', '', 4, 0 FROM generate_series(1, 2) n;
"""


def measure() -> Iterator[Figure]:
    with migrated():
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(_ROUTERS)
        took = [_measured() for _ in range(ROUNDS)]
        note = f"{LINES} VXLAN lines, both reports stored and all pages of the list read, median of {ROUNDS}"
        yield Figure(f"discovery_{LINES}_ms", median(took) * 1000, "ms", note)


def _measured() -> float:
    from portal.inventory.found_lines import Standing, found_circuits, found_lines
    from portal.inventory.models import ObservedCircuit, Router
    from portal.inventory.observation_store import circuits_store
    from portal.web.page.list_filters import in_order

    ObservedCircuit.objects.all().delete()
    routers = Router.objects.in_bulk()
    reports = {1: _report("10.255.0.1", "10.255.0.2"), 2: _report("10.255.0.2", "10.255.0.1")}
    begun = time.perf_counter()
    for router, circuits in reports.items():
        circuits_store(routers[router], circuits)
    whole, after = 0, ""
    while True:
        page = in_order(found_circuits(), by=("pk",), after=after)
        whole += sum(line.standing == Standing.COMPLETE for line in found_lines(page.rows))
        after = page.after
        if not after:
            break
    took = time.perf_counter() - begun
    if whole != LINES:
        raise RuntimeError(f"{whole} of {LINES} lines were joined")
    return took


def _report(local: str, remote: str) -> list[Any]:
    """Return circuits in the form in which an agent reports them, read from JSON."""
    from msgspec import convert

    from portal.inventory.reported_observation import CircuitReport

    side = {"tag": None, "admin_up": True}
    picks = {"link_up": True, "tags": 1, "dot1ad": False, "inner": 0, "exact": True, "wide": False}
    return [
        convert(
            {
                "near": side
                | {"interface": f"eth{number}.7", "rewrite": 3, "tunnel": None}
                | {"attachment": picks | {"port": f"eth{number}", "outer": 7, "policed": False}},
                "far": side
                | {"interface": f"vxlan_tunnel{number}", "rewrite": 0, "attachment": None}
                | {
                    "tunnel": {"encapsulation": "vxlan", "local": local, "remote": remote}
                    | {"vni": number, "gre_key": None, "standard": True}
                },
                "out": True,
                "in": True,
            },
            CircuitReport,
            dec_hook=lambda kind, value: kind(value),
        )
        for number in range(1, LINES + 1)
    ]
