"""A large network in addition to the network with agents. Its lines in service are written directly into the
tables.

The tables have all bookings of each line, so that the drill can recount them. These are the order, the VNI,
the VLANs, bandwidth, cores and recent counters. The routers of these lines have no agents, so the portal
sends no intents to them.
"""

from typing import Any

import psycopg

LINES_A_ROUTER = 100
# The rate of each line in bit/s, and the number of 5-minute counters of each line.
CIR_BPS, COUNTED = 1_000_000, 12

_ROUTERS = """
INSERT INTO inventory_site (name) VALUES ('seeded');
INSERT INTO accounts_customer (name, created_at) VALUES ('Seeded', now());
INSERT INTO inventory_router (name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT 'seeded-' || n, s.id, inet '10.200.0.0' + n, '', '', 4, 1
FROM generate_series(1, {routers}) n CROSS JOIN inventory_site s WHERE s.name = 'seeded';
INSERT INTO inventory_port (router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT r.id, 'eth0', '', 'uni', c.id, 1e11, 1e11, 0, 9022
FROM inventory_router r CROSS JOIN accounts_customer c WHERE r.name LIKE 'seeded-%' AND c.name = 'Seeded';
"""
# The lines are in blocks. A block has as many lines as there are routers. In each block, every router has one
# A end and one Z end.
_LINES = """
CREATE TEMPORARY TABLE place AS
SELECT substr(r.name, 8)::int AS place, r.id AS router, r.loopback4 AS address, p.id AS port,
       p.customer_id AS customer
FROM inventory_router r JOIN inventory_port p ON p.router_id = r.id WHERE r.name LIKE 'seeded-%';
CREATE TEMPORARY TABLE made AS
SELECT n, gen_random_uuid() AS id, n / {routers} AS block, 1 + n % {routers} AS a,
       1 + (n + 1 + n / {routers} % ({routers} - 1)) % {routers} AS z, now() - interval '1 minute' * n AS at
FROM generate_series(0, {lines} - 1) n;
CREATE TEMPORARY TABLE made_end AS
SELECT m.*, side, p.*, CASE side WHEN 'a' THEN 1 ELSE 2001 END + block AS vlan
FROM made m CROSS JOIN (VALUES ('a'), ('z')) AS sides (side)
JOIN place p ON p.place = CASE side WHEN 'a' THEN a ELSE z END;
INSERT INTO vll_vll (id, customer_id, description, created_at, lifecycle, admin_status, oper_status, in_sync,
                     svc_mtu, cir_bps, eir_bps, requested_transport, encapsulation, family, vni, frame,
                     revision, wanted_present)
SELECT id, (SELECT min(customer) FROM place), 'seeded ' || n, at, 'active', 'admin-up', 'op-unknown', true,
       1500, {cir}, 0, 'auto', 'vxlan', 4, 1 + n, 1514, 1, true FROM made;
INSERT INTO vll_vllend (vll_id, side, port_id, tagging, requested_outer_vlan, outer_vlan, exact_match,
                        tunnel_address, status, status_revision, status_at, policed, drift,
                        changed_since_report)
SELECT id, side, port, 'dot1q', vlan, vlan, true, address, 'verified', 1, at, false, '[]', false
FROM made_end;
INSERT INTO vll_order (id, vll_id, customer_id, action, state, revision, ordered_by, ordered_at, state_at)
SELECT gen_random_uuid(), id, (SELECT min(customer) FROM place), 'add', 'completed', 1, 'seeded', at, at
FROM made;
INSERT INTO events_event (at, kind, customer_id, vll_id, data, actor, request_id)
SELECT at, kind, (SELECT min(customer) FROM place), id, '{{}}', 'seeded', ''
FROM made CROSS JOIN (VALUES ('order.acknowledged'), ('order.completed'), ('vll.active')) AS kinds (kind);
INSERT INTO allocation_vnilease (vni, holder, leased_at) SELECT 1 + n, id, at FROM made;
INSERT INTO allocation_portvlanlease (port_id, holder, side, keys, leased_at)
SELECT port, id, side, int8range(vlan << 12, (vlan << 12) + 1), at FROM made_end;
INSERT INTO allocation_bandwidthbooking (port_id, holder, side, cir_bps)
SELECT port, id, side, {cir} FROM made_end;
INSERT INTO allocation_corebooking (router_id, holder, side, load)
SELECT router, id, side, ceil(2 * {cir} * 14.88 / 14.15) FROM made_end;
INSERT INTO allocation_routerload (router_id, booked)
SELECT router_id, sum(load) FROM allocation_corebooking c
WHERE router_id IN (SELECT router FROM place) GROUP BY router_id;
UPDATE inventory_port p SET booked_bps = booked
FROM (SELECT port_id, sum(cir_bps) AS booked FROM allocation_bandwidthbooking GROUP BY port_id) b
WHERE b.port_id = p.id AND p.id IN (SELECT port FROM place);
INSERT INTO telemetry_five_minutes (start_at, vll_id, a_in_bytes, a_in_packets, a_out_bytes, a_out_packets,
                                    z_in_bytes, z_in_packets, z_out_bytes, z_out_packets, a_covered_ms,
                                    z_covered_ms, simulated)
SELECT to_timestamp(300 * (extract(epoch FROM now())::bigint / 300 - bucket)), id, 37e6, 5e4 + n, 37e6, 5e4,
       37e6, 5e4, 37e6, 5e4 + n, 300000, 300000, true
FROM made CROSS JOIN generate_series(1, {counted}) AS bucket;
"""
# A digest of rows that no order changes. It must be the same in a restored database.
_DIGEST = """
SELECT count(*), md5(string_agg(
    concat_ws(' ', v.id, v.description, v.lifecycle, v.revision, v.cir_bps, v.vni,
              a.port_id, a.outer_vlan, z.port_id, z.outer_vlan, l.vni, l.holder), ',' ORDER BY v.id))
FROM vll_vll v
JOIN vll_vllend a ON a.vll_id = v.id AND a.side = 'a'
JOIN vll_vllend z ON z.vll_id = v.id AND z.side = 'z'
JOIN allocation_vnilease l ON l.holder = v.id
WHERE v.customer_id = (SELECT id FROM accounts_customer WHERE name = 'Seeded')
"""


def lines_seed(database_url: str, lines: int) -> None:
    """Write this number of lines, at least a hundred. There is one router per hundred lines."""
    values = {"routers": max(2, lines // LINES_A_ROUTER), "lines": lines, "cir": CIR_BPS, "counted": COUNTED}
    with psycopg.connect(database_url) as database:
        database.execute(_ROUTERS.format(**values))
        # The rows satisfy all constraints and triggers, but checking them would take minutes. PostgreSQL
        # checks the foreign keys when a dump is restored.
        database.execute("SET LOCAL session_replication_role = replica")
        database.execute(_LINES.format(**values))
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute("VACUUM ANALYZE")


def seeded_digest(database_url: str) -> tuple[int, str]:
    """Return the number of seeded lines, and a digest of their orders and leases."""
    with psycopg.connect(database_url) as database:
        row: Any = database.execute(_DIGEST).fetchone()
    return row[0], row[1] or ""
