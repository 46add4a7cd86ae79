"""The time to check an order through the API, with 1,000 routers and 2,500 links. Any single link may fail.

For ``validate_p95_ms``, this process has the underlay in its cache. ``validate_cold_p95_ms`` is measured
immediately after a link has changed: the process then has to read the underlay and to build its topology
again.
"""

import json
import random
import time
from collections.abc import Iterator
from typing import Any

from bench import mtu
from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized

PORTS, WARM, COLD = sized(400, smallest=20), sized(200, smallest=10), sized(20, smallest=3)
_TABLES = """
INSERT INTO inventory_site (id, name) VALUES (1, 'site');
INSERT INTO accounts_customer (id, name, created_at) VALUES (1, 'customer', now());
INSERT INTO inventory_router (id, name, site_id, loopback4, loopback6, agent_url, cpu, cores, generation)
SELECT n, 'r' || n, 1, '10.0.0.0'::inet + n, 'fd00::'::inet + n, 'https://127.0.0.1:' || 20000 + n, '', 8, 0
FROM generate_series(0, {routers} - 1) n;
INSERT INTO inventory_observedrouter (router_id, reported_at, boot_id, sent_ms, agent_version, vpp_connected,
                                      vpp_version, simulated, policing)
SELECT id, now() + interval '1 hour', gen_random_uuid(), 0, '', true, '', false, 'none' FROM inventory_router;
INSERT INTO inventory_port (id, router_id, interface, description, kind, customer_id, speed_bps, bookable_bps,
                            booked_bps, max_frame)
SELECT 1 + n, n, 'uni', '', 'uni', 1, 1e11, 1e11, 0, 9022 FROM generate_series(0, {ports} - 1) n;
"""
_INTERFACES = """
INSERT INTO inventory_observedinterface (router_id, name, admin_up, link_up, ip_mtu, linux_cp)
SELECT router, interface, true, true, ip_mtu, '' FROM (
    SELECT a_router_id, a_interface, a_ip_mtu FROM inventory_backbonelink
    UNION ALL SELECT z_router_id, z_interface, z_ip_mtu FROM inventory_backbonelink
) AS sides (router, interface, ip_mtu);
"""


def measure() -> Iterator[Figure]:
    with migrated():
        chance = random.Random(3)
        _fill(chance)
        validate = _requester(chance)
        note = f"{mtu.ROUTERS} routers, {mtu.LINKS} links, POST /api/v1/vlls/validate with a token"
        validate()
        warm, feasible = zip(*(validate() for _ in range(WARM)), strict=True)
        assert sum(feasible) >= WARM / 2, f"only {sum(feasible)} of {WARM} lines are feasible"
        note = f"{note}, {sum(feasible)} of {WARM} feasible"
        yield Figure("validate_p95_ms", percentile(warm, 95), "ms", note)
        cold = []
        for _ in range(COLD):
            _change_a_link(chance)
            took, _ = validate()
            cold.append(took)
        yield Figure("validate_cold_p95_ms", percentile(cold, 95), "ms", f"{note}, after a link was changed")


def _fill(chance: random.Random) -> None:
    from django.db import connection, transaction

    from portal.inventory.models import BackboneLink

    _, links = mtu.facts(chance)
    with connection.cursor() as cursor:
        with transaction.atomic():
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(_TABLES.format(routers=mtu.ROUTERS, ports=PORTS))
            BackboneLink.objects.bulk_create(
                BackboneLink(
                    **{
                        f"{which}_{name}": value
                        for which, side in (("a", link.a), ("z", link.z))
                        for name, value in (
                            ("router_id", side.router),
                            ("interface", side.interface),
                            ("metric", side.metric),
                            ("ip_mtu", side.declared_ip_mtu),
                        )
                    }
                )
                for link in links
            )
            cursor.execute(_INTERFACES)
        cursor.execute("VACUUM ANALYZE")


def _change_a_link(chance: random.Random) -> None:
    from portal.inventory.models import BackboneLink

    pk = chance.choice(list(BackboneLink.objects.values_list("pk", flat=True)))
    BackboneLink.objects.filter(pk=pk).update(a_metric=chance.choice((10, 20, 50)))


def _requester(chance: random.Random) -> Any:
    """Return a function that checks an order for a line between two random ports.

    The function returns the milliseconds of the request, and whether the line is possible. A path that is
    too narrow is a valid result, because the portal has compared all paths. Any other refusal happens
    before this comparison and raises an error.
    """
    from django.conf import settings
    from django.test import Client

    from portal.accounts.models import Membership, User
    from portal.accounts.tokens import token_create
    from portal.core.clock import now

    settings.LONGLINE_API_WRITES_PER_MIN = settings.LONGLINE_API_READS_PER_MIN = 0
    alice = User.objects.create_user("alice")
    Membership.objects.create(user=alice, customer_id=1, role="operator")
    _, token = token_create(user=alice, name="bench", now=now())
    api = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})

    def validate_random() -> tuple[float, bool]:
        a, z = chance.sample(range(1, PORTS + 1), 2)
        end = {"tagging": "dot1q", "outer_vlan": 100}
        body = {
            "svc_mtu": 1500,
            "cir_bps": 1_000_000,
            "a_end": {**end, "port": a},
            "z_end": {**end, "port": z},
        }
        began = time.perf_counter()
        response = api.post("/api/v1/vlls/validate", json.dumps(body), content_type="application/json")
        took = (time.perf_counter() - began) * 1_000
        assert response.status_code == 200, response.content
        reasons = {reason["code"] for reason in response.json()["reasons"]}
        assert reasons <= {"path-too-narrow"}, response.content
        return took, not reasons

    return validate_random
