"""Storage of the loads of the links' interfaces, as agents count them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import connection

from portal.inventory.models import Router
from portal.inventory.reported_observation import InterfaceReport

# Takes the parameters of ``loads_of``; ``condition`` restricts the write.
LOADS_STORE = """
INSERT INTO inventory_observedload (link_id, side, at, rx_bps, tx_bps, speed_bps)
SELECT link.id, link.side, %(now)s, seen.rx_bps, seen.tx_bps, seen.speed_bps
FROM unnest(%(names)s::text[], %(rx)s::bigint[], %(tx)s::bigint[], %(speeds)s::bigint[])
     AS seen (name, rx_bps, tx_bps, speed_bps)
JOIN (SELECT id, 'a' AS side, a_interface AS name FROM inventory_backbonelink WHERE a_router_id = %(router)s
      UNION ALL
      SELECT id, 'z', z_interface FROM inventory_backbonelink WHERE z_router_id = %(router)s) AS link
  USING (name)
WHERE {condition}
ORDER BY link.id, link.side
ON CONFLICT (link_id, side) DO UPDATE
SET at = EXCLUDED.at, rx_bps = EXCLUDED.rx_bps, tx_bps = EXCLUDED.tx_bps, speed_bps = EXCLUDED.speed_bps
"""


def loads_store(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> None:
    """Store the loads of interfaces that are part of a link.

    For an interface without a load, the stored load and its time stay.
    """
    params = loads_of(router, interfaces, now)
    if params["names"]:
        with connection.cursor() as cursor:
            cursor.execute(LOADS_STORE.format(condition="true"), params)


def loads_of(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> dict[str, Any]:
    """Return the parameters of LOADS_STORE."""
    loads = {interface.name: interface.load for interface in interfaces if interface.load is not None}
    return {
        "router": router.pk,
        "now": now,
        "names": list(loads),
        "rx": [load.rx_bps for load in loads.values()],
        "tx": [load.tx_bps for load in loads.values()],
        "speeds": [load.speed_bps for load in loads.values()],
    }
