"""A large installation that is written directly into the tables: 100,000 VLLs of 100 customers."""

from bench.sizes import sized

ROUTERS, PORTS, CUSTOMERS = 100, 2_000, 100
VLLS = sized(100_000, smallest=5_000)
# Customer 1 has half of all VLLs, because one customer can have nearly as many lines as the NOC's list
# contains.
_TABLES = """
INSERT INTO inventory_site (id, name) SELECT n, 'site-' || n FROM generate_series(1, 20) n;
INSERT INTO accounts_customer (id, name, created_at)
SELECT n, 'customer-' || n, now() FROM generate_series(1, {customers}) n;
INSERT INTO inventory_router (id, name, site_id, loopback4, agent_url, cpu, cores, generation)
SELECT n, 'router-' || n, 1 + n % 20, ('10.255.0.' || n)::inet, 'https://127.0.0.1:' || 20000 + n, '', 4, 0
FROM generate_series(1, {routers}) n;
INSERT INTO inventory_port (id, router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT n, 1 + n % {routers}, 'eth' || n, '', 'uni', 1 + n % {customers}, 1e11, 1e11, 0, 9022
FROM generate_series(1, {ports}) n;
CREATE TEMPORARY TABLE made AS
SELECT n, gen_random_uuid() AS id, CASE WHEN n % 2 = 0 THEN 1 ELSE 1 + n % {customers} END AS customer,
       -- Ten at a time share a moment: pages are cut between rows of one moment too.
       timestamptz '2026-01-01' + n / 10 * interval '1 minute' AS at
FROM generate_series(1, {vlls}) n;
INSERT INTO vll_vll (id, customer_id, description, created_at, lifecycle, admin_status, oper_status, in_sync,
                     svc_mtu, cir_bps, eir_bps, requested_transport, encapsulation, family, vni, frame,
                     revision, wanted_present)
SELECT id, customer, 'line ' || n || ' ' || md5(n::text), at, 'active', 'admin-up', 'op-up', true, 1500, 1e6,
       0, 'auto', 'vxlan', 4, n, 1514, 1, true FROM made;
INSERT INTO vll_vllend (vll_id, side, port_id, tagging, requested_outer_vlan, outer_vlan, exact_match,
                        tunnel_address, status, status_revision, status_at, policed, drift)
SELECT id, side, 1 + (n * 2 + offset_) % {ports}, 'dot1q', 1 + n % 4094, 1 + n % 4094, true, '10.255.0.1',
       'verified', 1, at, false, '[]'
FROM made CROSS JOIN (VALUES ('a', 0), ('z', 1)) AS ends (side, offset_);
INSERT INTO vll_order (id, vll_id, customer_id, action, state, revision, ordered_by, ordered_at, state_at)
SELECT gen_random_uuid(), id, customer, 'add', 'completed', 1, 'bench', at, at FROM made;
"""


def installation_fill() -> None:
    """Fill the database of Django, which must be migrated and empty."""
    from django.db import connection, transaction

    statements = _TABLES.format(routers=ROUTERS, ports=PORTS, customers=CUSTOMERS, vlls=VLLS)
    with connection.cursor() as cursor:
        with transaction.atomic():
            # The rows satisfy all constraints and triggers, but checking them would take minutes.
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(statements)
        cursor.execute("VACUUM ANALYZE")
