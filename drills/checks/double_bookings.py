"""Find VNIs, GRE keys, VLANs, bandwidth and cores that are booked twice. The bookings are calculated again
from the VLLs.
"""

from typing import Any

import psycopg
from psycopg.rows import dict_row

# A VLL keeps its resources until both routers have confirmed that they have deleted it.
_LIVE = """
WITH live AS (SELECT * FROM vll_vll WHERE lifecycle NOT IN ('terminated', 'cancelled')),
     live_end AS (SELECT e.*, v.cir_bps FROM vll_vllend e JOIN live v ON v.id = e.vll_id),
     load AS (SELECT p.router_id, sum(ceil(CASE v.encapsulation WHEN 'l2xc' THEN e.cir_bps
                ELSE 2 * e.cir_bps * 14.88 / CASE v.encapsulation || v.family
                  WHEN 'vxlan4' THEN 14.15 WHEN 'geneve4' THEN 13.74 WHEN 'gre4' THEN 14.34
                  WHEN 'vxlan6' THEN 8.54 WHEN 'geneve6' THEN 8.32 WHEN 'gre6' THEN 9.93 END END)) AS needed
              FROM live_end e JOIN live v ON v.id = e.vll_id JOIN inventory_port p ON p.id = e.port_id
              GROUP BY p.router_id),
     gre AS (SELECT v.id, v.gre_key, a.tunnel_address AS a, z.tunnel_address AS z FROM live v
             JOIN live_end a ON a.vll_id = v.id AND a.side = 'a'
             JOIN live_end z ON z.vll_id = v.id AND z.side = 'z' WHERE v.encapsulation = 'gre')
"""

_QUESTIONS = {
    "{n} VLLs have VNI {vni}": """
        SELECT vni, count(*) AS n FROM live WHERE vni IS NOT NULL GROUP BY vni HAVING count(*) > 1""",
    "VLL {id} has VNI {vni} without a lease of it": """
        SELECT id, vni FROM live v WHERE vni IS NOT NULL AND NOT EXISTS (
          SELECT FROM allocation_vnilease WHERE holder = v.id AND vni = v.vni AND released_at IS NULL)""",
    "VNI {vni} is leased for good by {owner}, which does not live": """
        SELECT vni, holder AS owner FROM allocation_vnilease
        WHERE released_at IS NULL AND holder NOT IN (SELECT id FROM live)""",
    "{n} VLLs have GRE key {gre_key}": """
        SELECT gre_key, count(*) AS n FROM live WHERE gre_key IS NOT NULL
        GROUP BY gre_key HAVING count(*) > 1""",
    "{first} and {second} share a pair of GRE addresses and have no keys": """
        SELECT g.id AS first, h.id AS second FROM gre g
        JOIN gre h ON g.id < h.id AND (g.a, g.z) IN ((h.a, h.z), (h.z, h.a))
          AND g.gre_key IS NULL AND h.gre_key IS NULL""",
    "port {port} serves the same frames for {first} and {second}": """
        SELECT e.port_id AS port, e.vll_id AS first, f.vll_id AS second
        FROM live_end e JOIN live_end f ON f.port_id = e.port_id AND f.id > e.id
        WHERE e.tagging = 'untagged' OR f.tagging = 'untagged'
          OR ((e.tagging = 'dot1ad') = (f.tagging = 'dot1ad') AND e.outer_vlan = f.outer_vlan
              AND e.inner_vlan IS NOT DISTINCT FROM f.inner_vlan)""",
    "{owner} has {leases} VLAN leases and {ends} live ends": """
        SELECT holder AS owner, coalesce(leases, 0) AS leases, coalesce(ends, 0) AS ends
        FROM (SELECT holder, count(*) AS leases FROM allocation_portvlanlease GROUP BY holder) l
        FULL JOIN (SELECT vll_id AS holder, count(*) AS ends FROM live_end GROUP BY vll_id) e USING (holder)
        WHERE leases IS DISTINCT FROM ends""",
    "port {id} says {booked_bps} of {bookable_bps} bit/s are booked, its VLLs need {needed}": """
        SELECT p.id, p.booked_bps, p.bookable_bps, coalesce(sum(e.cir_bps), 0) AS needed
        FROM inventory_port p LEFT JOIN live_end e ON e.port_id = p.id GROUP BY p.id
        HAVING coalesce(sum(e.cir_bps), 0) <> p.booked_bps OR p.booked_bps > p.bookable_bps""",
    "the cores of router {id} have a load of {booked} booked, its VLLs need {needed}": """
        SELECT r.router_id AS id, coalesce(l.booked, 0) AS booked, r.needed
        FROM load r LEFT JOIN allocation_routerload l USING (router_id)
        WHERE r.needed > coalesce(l.booked, 0)""",
    "router {id} says that a load of {said} is booked, its bookings add up to {booked}": """
        SELECT r.id, coalesce(l.booked, 0) AS said, coalesce(sum(c.load), 0) AS booked
        FROM inventory_router r LEFT JOIN allocation_routerload l ON l.router_id = r.id
        LEFT JOIN allocation_corebooking c ON c.router_id = r.id GROUP BY r.id, l.booked
        HAVING coalesce(sum(c.load), 0) <> coalesce(l.booked, 0)""",
    "port {id} says {booked_bps} bit/s are booked, its bookings add up to {booked}": """
        SELECT p.id, p.booked_bps, coalesce(sum(b.cir_bps), 0) AS booked
        FROM inventory_port p LEFT JOIN allocation_bandwidthbooking b ON b.port_id = p.id GROUP BY p.id
        HAVING coalesce(sum(b.cir_bps), 0) <> p.booked_bps""",
}


def double_bookings(database: psycopg.Connection[Any]) -> list[str]:
    """Return a sentence for each violation. All queries read the same snapshot of the database."""
    found = []
    with database.transaction(), database.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for sentence, question in _QUESTIONS.items():
            found += [sentence.format(**row) for row in cursor.execute(_LIVE + question).fetchall()]
    return found
