"""A digest of the routers' intents, to check whether a plan is still valid."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import connection

from portal.vll.states import TERMINAL_LIFECYCLES

# A line's revision represents its whole content, except for the end that link loss forwarding shuts down.
_DIGESTS = """
WITH intended (router, line) AS (
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
SELECT router.id, md5(coalesce(string_agg(intended.line, E'\\n' ORDER BY intended.line), ''))
FROM unnest(%(routers)s::bigint[]) AS router (id)
LEFT JOIN intended ON intended.router = router.id
GROUP BY router.id
"""


def intent_digests(routers: Collection[int], *, apart: UUID) -> dict[int, str]:
    """Return, by router id, a digest of all lines that the router has or must remove, without ``apart``.

    ``apart``: the id of the line to leave out. Sending the same intent again gives the intent a new
    generation, but does not change the digest.
    """
    values: dict[str, Any] = {"routers": sorted(routers), "apart": apart, "gone": sorted(TERMINAL_LIFECYCLES)}
    with connection.cursor() as cursor:
        cursor.execute(_DIGESTS, values)
        return dict(cursor.fetchall())
