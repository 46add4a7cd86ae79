"""Storage, with one statement, of a report that equals the router's last report. Nearly all reports are equal
to the last one.
"""

from datetime import datetime
from typing import Any

from django.db import connection

from portal.inventory.models import ObservedRouter, Router
from portal.inventory.operations.observation_store import LOADS_STORE, is_unchanged, loads_of
from portal.inventory.reported_observation import ObservedReport

# Stores nothing in three cases: another report was stored since ``last`` was read; the router was found
# silent; a line of the router has changed and must be compared with the next report.
_STORE = f"""
WITH repeated AS (
    UPDATE inventory_observedrouter SET reported_at = %(now)s, sent_ms = %(sent_ms)s
    WHERE router_id = %(router)s AND reported_at = %(last_at)s AND sent_ms = %(last_sent_ms)s
      AND NOT found_silent
      AND NOT EXISTS (SELECT FROM vll_vllend e JOIN inventory_port p ON p.id = e.port_id
                      WHERE p.router_id = %(router)s AND e.changed_since_report)
    RETURNING id
), loads AS ({LOADS_STORE.format(condition="EXISTS (SELECT FROM repeated)")})
SELECT count(*) FROM repeated
"""  # noqa: S608 - constants


def unchanged_store(
    *,
    router: Router,
    last: ObservedRouter,
    report: ObservedReport,
    facts: dict[str, Any],
    now: datetime,
) -> bool:
    """Store a report that equals ``last``. Return False if the report needs the full handling instead.

    The report needs the full handling if it differs from ``last``, or if another report was stored meanwhile.
    It also needs the full handling after a silence of the router, and if one of the router's lines has
    changed since the last report.
    """
    if not is_unchanged(last=last, report=report, facts=facts):
        return False
    params = loads_of(router, report.interfaces, now)
    params |= {"sent_ms": report.sent_ms, "last_at": last.reported_at, "last_sent_ms": last.sent_ms}
    with connection.cursor() as cursor:
        cursor.execute(_STORE, params)
        return bool(cursor.fetchone()[0])
