"""A digest of what routers are told about lines, to see whether a router's plan still holds."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import connection

from portal.vll.states import TERMINAL_LIFECYCLES

# Each line's revision stands for all of its content, but for the end that is kept down because of the other
# one's link.
_DIGESTS = """
WITH told (router, line) AS (
    SELECT port.router_id, concat_ws(' ', line.id, an_end.side, line.revision, line.wanted_present,
                                      nullif(loss.held = an_end.side, false))
    FROM vll_vllend an_end
    JOIN vll_vll line ON line.id = an_end.vll_id
    JOIN inventory_port port ON port.id = an_end.port_id
    LEFT JOIN vll_forwardedlinkloss loss ON loss.vll_id = line.id
    WHERE port.router_id = ANY(%(routers)s) AND line.id <> %(apart)s AND line.lifecycle <> ALL(%(gone)s)
    UNION ALL
    SELECT left_behind.router_id, concat_ws(' ', left_behind.vll_id, left_behind.side, left_behind.revision)
    FROM vll_vlltombstone left_behind
    WHERE left_behind.router_id = ANY(%(routers)s) AND left_behind.vll_id <> %(apart)s
)
SELECT router.id, md5(coalesce(string_agg(told.line, E'\\n' ORDER BY told.line), ''))
FROM unnest(%(routers)s::bigint[]) AS router (id)
LEFT JOIN told ON told.router = router.id
GROUP BY router.id
"""


def intent_digests(routers: Collection[int], *, apart: UUID) -> dict[int, str]:
    """By router id, a digest of every line that it has or is to give up, but for the one called ``apart``.

    Sending the same once more changes nothing here, though it has a generation of its own.
    """
    values: dict[str, Any] = {"routers": sorted(routers), "apart": apart, "gone": sorted(TERMINAL_LIFECYCLES)}
    with connection.cursor() as cursor:
        cursor.execute(_DIGESTS, values)
        return dict(cursor.fetchall())
