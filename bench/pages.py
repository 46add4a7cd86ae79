"""The time that the server needs for each page that a person can open, with 100,000 VLLs."""

import time
from collections.abc import Iterator
from typing import Any

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from bench.vlls import ROUTERS, installation_fill

ROUNDS = sized(20, smallest=1)
# For each page, a text that it must contain. {vll} is the id of a line of customer 1, and {name} its
# description.
EVERYBODY = {
    "/": "{vll}",
    "/?show=all": "{vll}",
    "/ports/": "eth",
    "/ports/100/": "eth100",
    "/orders/": "{vll}",
    "/orders/new/": "<form",
    "/search/?q=line%204712": "line 4712",
    "/vlls/{vll}/": "{name}",
}
NOC = {
    "/noc/": "100",
    "/noc/wall/": "NOC wall",
    "/noc/alarms/history/": "History of alarms",
    "/noc/map/": "router-7",
    "/noc/map/?link=7": "router-7",
    "/noc/map/?router=7": "router-7",
    "/noc/map/?line={vll}": "{name}",
    "/noc/pools/": "VNI",
    "/noc/audit/": "<table",
    "/noc/routers/7/": "router-7",
    "/noc/ports/": "eth",
    "/noc/customers/1/": "customer-1",
    "/noc/orders/": "Orders pending approval",
    "/routers/": "router-1",
}
_RING = """
INSERT INTO inventory_backbonelink (a_router_id, a_interface, a_metric, a_ip_mtu, z_router_id, z_interface,
                                    z_metric, z_ip_mtu, ipv4, ipv6, in_service)
SELECT n, 'bb-next', 10, 9000, 1 + n % {routers}, 'bb-prev', 10, 9000, true, true, true
FROM generate_series(1, {routers}) n;
"""


def measure() -> Iterator[Figure]:
    with migrated():
        installation_fill()
        from django.conf import settings
        from django.db import connection

        # The second factor of the sign-in is not part of the time of a page.
        settings.LONGLINE_NOC_NEEDS_TOTP = False

        from portal.core import clock
        from portal.vll.models import Vll
        from portal.vll.operations.paths import tunnel_paths_keep

        with connection.cursor() as cursor:
            cursor.execute(_RING.format(routers=ROUTERS))
        tunnel_paths_keep(now=clock.now())
        with connection.cursor() as cursor:
            # In production, autovacuum does this within a minute.
            cursor.execute("ANALYZE")
        vll = Vll.objects.filter(customer_id=1).order_by("-created_at", "-pk")[0]
        facts = {"vll": vll.pk, "name": vll.description}
        taken: dict[str, list[float]] = {}
        for who, browser in _browsers().items():
            for page, shown in (EVERYBODY | (NOC if who == "noc" else {})).items():
                taken[f"{page} of {who}"] = _times(browser, page.format(**facts), shown.format(**facts))
        slowest = max(taken, key=lambda page: percentile(taken[page], 95))
        note = ", ".join(f"{page} {percentile(times, 95):.0f}" for page, times in taken.items())
        yield Figure("page_p95_ms", percentile(taken[slowest], 95), "ms", f"the slowest, {slowest}; {note}")


def _browsers() -> dict[str, Any]:
    from django.test import Client

    from portal.accounts.models import Membership, User

    noc = User.objects.create_user("nora", noc_role="noc")
    member = User.objects.create_user("alice")
    Membership.objects.create(user=member, customer_id=1, role="operator")
    browsers = {}
    for name, user in (("noc", noc), ("tenant", member)):
        browsers[name] = Client(headers={"Host": "localhost"})
        browsers[name].force_login(user)
    return browsers


def _times(browser: Any, page: str, shown: str) -> list[float]:
    """Return the milliseconds of each response. Each must contain ``shown``. The first request is
    a warm-up.
    """
    taken = []
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        response = browser.get(page)
        if number:
            taken.append((time.perf_counter() - began) * 1_000)
        assert response.status_code == 200, (page, response.status_code)
        assert shown in response.content.decode(), f"{page} does not contain {shown}"
    return taken
