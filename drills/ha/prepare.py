"""Write certificates and rows. Run it on a portal machine whose database has the tables: `python -m
drills.ha.prepare <JSON>`.

The argument is {"world": address, "virtual_ip": address, "pairs": number of ports of each router with an
agent, "agent_ports": {router: TCP port}, "synthetic": number of simulated routers}. The program prints the
result of `devstack.load.load` with the additional member "ends": {synthetic router: [[line, side]]}.
"""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from devstack.isp import ALPINE_DAIRY, Port, small_isp
from drills.ha.cluster import PORTAL_NAME

# A number above all ids that sequences assign during a drill.
FIRST = 100_001
LINES_A_PAIR = 2
_ROWS = """
SET LOCAL session_replication_role = replica;
INSERT INTO inventory_site (id, name) VALUES ({first}, 'reporting');
INSERT INTO inventory_router (id, name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT {first} + n, 'router-' || n, {first}, inet '10.254.0.1' + n, '', '', 4, 0
FROM generate_series(0, {routers} - 1) n;
INSERT INTO inventory_port (id, router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT {first} + n, {first} + n, 'eth0', '', 'uni', {customer}, 1e11, 1e11, 0, 9022
FROM generate_series(0, {routers} - 1) n;
CREATE TEMPORARY TABLE made ON COMMIT DROP AS
SELECT n, gen_random_uuid() AS id, {first} + 2 * (n / {lines}) AS a, {first} + 2 * (n / {lines}) + 1 AS z
FROM generate_series(0, {routers} / 2 * {lines} - 1) n;
INSERT INTO vll_vll (id, customer_id, description, created_at, lifecycle, admin_status, oper_status, in_sync,
                     svc_mtu, cir_bps, eir_bps, requested_transport, encapsulation, family, vni, frame,
                     revision, wanted_present)
SELECT id, {customer}, 'reporting ' || n, now(), 'active', 'admin-up', 'op-up', true, 1500, 1e6,
       0, 'auto', 'vxlan', 4, 16000000 + n, 1514, 1, true FROM made;
INSERT INTO vll_vllend (vll_id, side, port_id, tagging, requested_outer_vlan, outer_vlan, exact_match,
                        tunnel_address, status, status_revision, status_at, link_up, reachable,
                        observed_in_sync, policed, drift)
SELECT id, side, CASE side WHEN 'a' THEN a ELSE z END, 'dot1q', 1 + n % 4094, 1 + n % 4094, true,
       '10.254.0.1', 'verified', 1, now(), true, true, true, false, '[]'
FROM made CROSS JOIN (VALUES ('a'), ('z')) AS ends (side);
"""


def prepare(
    *, world: str, virtual_ip: str, pairs: int, synthetic: int, agent_ports: dict[str, int]
) -> dict[str, Any]:
    from devstack.load import load
    from portal.core.clock import now

    pki = Path(os.environ["LONGLINE_PKI_DIR"])
    _run("pki", "init", "--dir", str(pki))
    _run("pki", "issue", "--dir", str(pki), "--role", "portal", "--dns", PORTAL_NAME, "--ip", virtual_ip)
    isp = small_isp(extra_ports=tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, pairs + 1)))
    urls = {name: f"https://{world}:{port}" for name, port in agent_ports.items()}
    loaded = load(isp, agent_urls=urls, now=now())
    for name in urls:
        _run("pki", "issue", "--dir", str(pki), "--role", "router", "--name", name, "--ip", world)
    return loaded | {"ends": _reporting(synthetic, pki)}


def _reporting(routers: int, pki: Path) -> dict[str, list[tuple[str, str]]]:
    """Create pairs of synthetic routers with lines in service between the two routers, and a certificate for
    each router.
    """
    from django.db import connection, transaction

    from portal.accounts.models import Customer
    from portal.core.clock import now
    from portal.telemetry.partitioned_tables import partitions_keep

    customer = Customer.objects.order_by("pk").values_list("pk", flat=True)[0]
    text = _ROWS.format(first=FIRST, routers=routers, lines=LINES_A_PAIR, customer=customer)
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in text.strip().removesuffix(";").split(";\n"):
            cursor.execute(statement)
    partitions_keep(now=now())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.name, e.vll_id::text, e.side FROM vll_vllend e JOIN inventory_router r"
            " ON r.id = e.port_id WHERE e.port_id >= %s ORDER BY 1, 2, 3",
            [FIRST],
        )
        rows = cursor.fetchall()
    ends: dict[str, list[tuple[str, str]]] = {f"router-{n}": [] for n in range(routers)}
    for router, vll, side in rows:
        ends[router].append((vll, side))
    for name in ends:
        _run("pki", "issue", "--dir", str(pki), "--role", "router", "--name", name, "--dns", name)
    return ends


def _run(command: str, *arguments: str) -> None:
    """Run a management command without its output, because standard output is for the result."""
    call_command(command, *arguments, stdout=io.StringIO())


if __name__ == "__main__":
    django.setup()
    json.dump(prepare(**json.loads(sys.argv[1])), sys.stdout)
