"""The rows of the simulated network except its lines: leases and bookings, orders, and people who read."""

from dataclasses import dataclass
from typing import Any

# For each line, create its leases and bookings, and the order that made it.
_RESERVED = """
INSERT INTO allocation_vnilease (holder, leased_at, vni) SELECT id, now(), vni FROM vll_vll;
INSERT INTO allocation_portvlanlease (port_id, holder, side, keys, leased_at)
SELECT port_id, vll_id, side, int8range(outer_vlan::bigint << 12, (outer_vlan::bigint << 12) + 1), now()
FROM vll_vllend;
INSERT INTO allocation_bandwidthbooking (port_id, holder, side, cir_bps)
SELECT port_id, vll_id, side, cir_bps FROM vll_vllend JOIN vll_vll ON vll_vll.id = vll_id;
UPDATE inventory_port SET booked_bps = (
    SELECT coalesce(sum(cir_bps), 0) FROM allocation_bandwidthbooking WHERE port_id = inventory_port.id);
INSERT INTO allocation_corebooking (router_id, holder, side, load)
SELECT router_id, holder, side, 3 * cir_bps
FROM allocation_bandwidthbooking booking JOIN inventory_port ON inventory_port.id = port_id;
INSERT INTO allocation_routerload (router_id, booked)
SELECT router_id, sum(load) FROM allocation_corebooking GROUP BY router_id;
INSERT INTO vll_order (id, vll_id, customer_id, action, state, revision, ordered_by, ordered_at, state_at)
SELECT gen_random_uuid(), id, customer_id, 'add', 'completed', 1, 'simulation', now(), now() FROM vll_vll;
"""


@dataclass(frozen=True, slots=True)
class People:
    """The people who read.

    ``cookies`` maps the id of each customer to a session cookie of a user of this customer, and 0 to a
    session cookie of the NOC. The tokens belong to the NOC and to the user of customer 1.
    """

    cookies: dict[int, str]
    noc_token: str
    customer_token: str


def leases_fill() -> None:
    from django.db import connection, transaction

    with connection.cursor() as cursor:
        with transaction.atomic():
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(_RESERVED)
        cursor.execute("VACUUM ANALYZE")


def people_make(customers: int) -> People:
    from portal.accounts.models import Membership, User
    from portal.accounts.tokens import token_create
    from portal.core.clock import now

    noc = User.objects.create_user("nora", noc_role="noc")
    cookies = {0: _cookie(noc)}
    for customer in range(1, customers + 1):
        user = User.objects.create_user(f"reader-{customer}")
        Membership.objects.create(user=user, customer_id=customer, role="operator")
        cookies[customer] = _cookie(user)
    first = User.objects.get(username="reader-1")
    tokens = [token_create(user=user, name="simulation", now=now())[1] for user in (noc, first)]
    return People(cookies, *tokens)


def _cookie(user: Any) -> str:
    from django.conf import settings
    from django.test import Client

    browser = Client()
    browser.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={browser.cookies[name].value}"
