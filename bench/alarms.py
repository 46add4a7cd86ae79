"""The duration of a round of alarms with 100,000 VLLs, and the times of the NOC's pages during a
large outage.
"""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from bench.vlls import ROUTERS, VLLS, installation_fill

ROUNDS = sized(10, smallest=1)
PAGES = ["/noc/", "/noc/wall/", "/noc/alarms/history/"]
# A tenth of the routers is silent, a tenth of the lines is down because of a port, and a tenth of the lines
# is not in sync.
_MUCH_IS_WRONG = """
INSERT INTO inventory_routersilence (router_id, since, down_spans, counts_as_down, judge_again)
SELECT id, now() - interval '1 hour', '[]', true, false FROM inventory_router WHERE id % 10 = 0;
UPDATE vll_vll SET oper_status = 'op-down', oper_since = now() WHERE vni % 10 = 1;
UPDATE vll_vllend SET link_up = false WHERE vll_id IN (SELECT id FROM vll_vll WHERE vni % 10 = 1);
UPDATE vll_vll SET in_sync = false WHERE vni % 10 = 2;
UPDATE vll_vllend SET observed_in_sync = false WHERE vll_id IN (SELECT id FROM vll_vll WHERE vni % 10 = 2);
"""
_ALL_REPORT = """
INSERT INTO inventory_observedrouter (router_id, reported_at, boot_id, sent_ms, agent_version, vpp_connected,
                                      vpp_version, simulated, policing)
SELECT id, now() + interval '1 day', gen_random_uuid(), 0, '', true, '', false, 'none' FROM inventory_router;
"""


def measure() -> Iterator[Figure]:
    with migrated():
        installation_fill()
        from django.conf import settings
        from django.db import connection

        settings.LONGLINE_NOC_NEEDS_TOTP = False
        note = f"{VLLS} VLLs, {ROUTERS} routers"
        _execute(connection, _ALL_REPORT)
        yield Figure("alarms_round_ms", median(_rounds(raised=False)), "ms", f"{note}, nothing wrong")
        _execute(connection, _MUCH_IS_WRONG)
        storm = median(_rounds(raised=True))
        yield Figure("alarms_round_in_a_storm_ms", storm, "ms", f"{note}, a tenth is down")
        taken = {page: percentile(_times(page), 95) for page in PAGES}
        by_page = ", ".join(f"{page} {p95:.0f}" for page, p95 in taken.items())
        yield Figure("alarms_page_p95_ms", max(taken.values()), "ms", by_page)


def _execute(connection: Any, statements: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statements)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE")


def _rounds(*, raised: bool) -> Iterator[float]:
    """Yield the milliseconds of each round. The first round raises and clears alarms; it is a warm-up and not
    yielded.

    ``raised``: whether the rounds are expected to raise alarms. The benchmark fails if the expectation is
    wrong.
    """
    from portal.alarms.models import Alarm
    from portal.alarms.rounds import alarms_watch
    from portal.core import clock

    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        assert alarms_watch(now=clock.now())
        if number:
            yield (time.perf_counter() - began) * 1_000
    kinds = set(Alarm.objects.filter(cleared_at=None).values_list("kind", flat=True))
    assert bool(kinds) == raised, f"alarms are raised of the kinds {kinds}"


def _times(page: str) -> list[float]:
    """Return the milliseconds of each response. The first request is a warm-up and not included."""
    from django.test import Client

    from portal.accounts.models import User

    noc, _ = User.objects.get_or_create(username="nora", defaults={"noc_role": "noc"})
    browser = Client(headers={"Host": "localhost"})
    browser.force_login(noc)
    taken = []
    for number in range(2 * ROUNDS + 1):
        began = time.perf_counter()
        response = browser.get(page)
        if number:
            taken.append((time.perf_counter() - began) * 1_000)
        assert response.status_code == 200, (page, response.status_code)
    return taken
